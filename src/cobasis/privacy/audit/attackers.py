"""P1 to P6: what a colluder, an analyst alone and an acquaintance find out of an upload."""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.known_records import (
    fewest_known,
    infer_attribute,
    match_list,
    read_through,
)
from cobasis.privacy.attacks.public_sample import match_sample
from cobasis.privacy.attacks.scores import (
    NEIGHBOURS,
    Content,
    Share,
    explained,
    score_content,
    score_linkage,
    score_structure,
)
from cobasis.privacy.audit.counted import bits_of_record, bits_sent, tried
from cobasis.privacy.audit.report import (
    ATTRIBUTE,
    CONTENT,
    LINKAGE,
    Finding,
    graded,
    graded_bits,
    graded_known,
    per_cent,
    worst,
)
from cobasis.privacy.audit.subject import Subject

FEWEST = 40  # with fewer rows nothing is split: what an attack makes of so few says nothing

_ROWS, _ROWS_OF_STRUCTURE = 600, 1000
"""People whom P2 and P4, and P6, are tried on, at most: they find nearly as much with more."""

_NARROW = 100  # so many columns are looked at as they are, too
_LEADING = 8  # an attacker that leaves out directions keeps so many
_ENOUGH = 100  # with fewer records of the same kind the attack that is played here is weak

_SMALL, _SPLITS = 200, 3
"""Tables of so few rows are split more than once: one split of them says little."""

_DRAWS, _DIGITS = 3, 9
_KNOWN = 20


def findings(subject: Subject, *, seed: int, rng: np.random.Generator) -> tuple[Finding, ...]:
    few, inferred = rng.spawn(2)  # so that no metric moves another's numbers
    return (
        colluded(subject),
        curious(subject, seed=seed),
        linked(subject),
        acquainted(subject, rng=few),
        attributes(subject, rng=inferred),
        structure(subject),
    )


def colluded(subject: Subject) -> Finding:
    """Rebuild the rows as a party with the anchor, and an analyst with the uploads, can: P1."""
    found = score_content(rebuilt(subject), subject.columns)
    sent, needed, exact = bits_sent(subject), bits_of_record(subject), tried(subject)
    words = (
        f"If one partner helps the analyst, {per_cent(found.explained.value)} of the information "
        f"in each record can be rebuilt on average, {per_cent(found.worst_explained)} for the 1 % "
        f"of people who are rebuilt best; {per_cent(found.cells.value)} of all values are met to "
        f"10 % of a column's range (guessing the average person: {per_cent(found.cells.chance)}). "
        f"{_count_in_words(sent, needed, exact)}"
    )
    figures = {
        **_shown(found),
        "explained_worst_percent": found.worst_explained,
        "cells_chance": found.cells.chance,
        "named_chance": found.named.chance,
        "bits_sent": sent,
        "bits_of_record": needed,
        "exact": exact,
    }
    counted = worst(graded_bits(sent, needed), graded(exact or 0.0, LINKAGE))
    return Finding("P1", worst(graded(found.explained.value, CONTENT), counted), words, figures)


def _shown(found: Content) -> dict[str, float]:
    return {name: getattr(found, name).value for name in ("explained", "cells", "named")}


def _count_in_words(sent: float, needed: float, exact: float | None) -> str:
    """Say whether what leaves is enough to tell a record from all others that are valid."""
    enough = {
        "red": "enough to give records back whole, so take them for rebuilt",
        "amber": "which may be enough to give some records back whole",
        "green": "too few to give a record back to its last decimal",
    }[graded_bits(sent, needed)]
    words = (
        f"Counted by the values that columns may have, a record is one of about 2^{needed:.0f}; "
        f"{sent:.0f} bits of it leave, {enough}."
    )
    if exact is not None:
        words += f" Whoever tries all valid records finds {per_cent(exact)} of people exactly."
    return words


def rebuilt(subject: Subject) -> Recovered:
    """Rebuild rows with the true basis, in the best of two ways; mapped ones by the second."""
    plain = read_through(subject.basis, subject.release.rows)
    # The other is told the party's own covariance C, which no attacker knows better: F' C gives
    # what goes together, and Cov(x~)^+ the least mean squared error, for the noise is inside it.
    mean, centre = subject.columns.mean(axis=0), subject.release.rows.mean(axis=0)
    prior, seen = subject.rows - subject.rows.mean(axis=0), subject.release.rows - centre
    told = (prior @ subject.basis).T @ (subject.columns - mean)
    back = np.linalg.lstsq(seen.T @ seen, told, rcond=None)[0]
    informed = Recovered(rows=mean + seen @ back, basis=subject.basis)
    if subject.unmapped is not None:
        return informed
    return max((plain, informed), key=lambda each: explained(each.rows, subject.rows))


def linkage(subject: Subject, *, rows: Matrix | None = None, basis: Matrix | None = None) -> Share:
    seen = subject.release.rows if rows is None else rows
    axes, places = subject.basis if basis is None else basis, np.arange(subject.n_rows)
    return score_linkage(seen, axes, candidates=subject.listed, places=places)


def linked(subject: Subject) -> Finding:
    share = linkage(subject)
    words = (
        "Whoever has the secret basis and a list with these people on it picks out "
        f"{per_cent(share.value)} of them (chance: {per_cent(share.chance)}). Only noise changes "
        "this."
    )
    figures = {"linked": share.value, "chance": share.chance}
    return Finding("P3", graded(share.value, LINKAGE), words, figures)


def guessed(
    subject: Subject, *, seed: int, quick: bool = False
) -> tuple[Content | None, Share] | None:
    """Play an analyst with similar records: half of the rows are the attacker's public sample."""
    # Two ways need nobody's help: the list itself, since people are as far from each other in the
    # upload as on the list; and the public sample.
    if subject.n_rows < FEWEST:
        return None
    rng = np.random.default_rng(seed)
    # a search finds or does not: of few rows one split alone may say 30 % where others say 90
    few = quick or subject.n_rows <= _SMALL
    found = [_of_halves(subject, rng=rng, quick=quick) for _ in range(_SPLITS if few else 1)]
    return sorted(found, key=lambda each: each[1].value)[len(found) // 2]


def _of_halves(
    subject: Subject, *, rng: np.random.Generator, quick: bool
) -> tuple[Content | None, Share]:
    own, other = np.array_split(rng.permutation(subject.n_rows), 2)
    victims, public = subject.only(other), subject.listed[own]
    labels = None if subject.labels is None or subject.classes is None else subject.labels[own]
    sent = None if labels is None else victims.release.labels
    contents, linkages = [], [_by_list(victims)]
    if quick and linkages[0].value > LINKAGE[1]:  # red already, and costs little
        return None, linkages[0]
    for shown, seen in _views(victims.release.rows, public, quick=quick):
        release = Release(rows=_rounded(victims.release.rows @ shown), labels=sent)
        guess = match_sample(release, public @ seen, labels=labels, rng=rng).basis
        found = read_through(seen @ guess, release.rows, prior_rows=public)
        linkages.append(linkage(victims, rows=release.rows, basis=found.basis))
        if not quick:
            contents.append(score_content(found, victims.rows))
    best = max(contents, key=lambda each: each.explained.value, default=None)
    return best, max(linkages, key=lambda each: each.value)


def _by_list(victims: Subject) -> Share:
    if min(victims.rows.shape) < victims.n_components:
        return Share(value=0.0, chance=1 / victims.n_rows)
    rows = _rounded(victims.release.rows @ _leading(victims.release.rows))
    return linkage(victims, rows=rows, basis=match_list(rows, victims.listed).basis)


def _views(released: Matrix, public: Matrix, *, quick: bool) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield along which directions an attacker looks at released rows, and at its own sample."""
    # An attacker need not use all that it sees: along the leading half or quarter of the released
    # directions, and twice as many of its own sample, the two clouds are laid over each other more
    # surely than in all 784 columns of Fashion-MNIST.
    shown, seen, n_features = _leading(released), _leading(public), public.shape[1]
    size, wide = min(shown.shape[1], seen.shape[1]), n_features > _NARROW
    k = min(size, max(_LEADING, size // 2 if wide and not quick else size // 4))
    yield shown[:, :k], seen[:, : 2 * k]
    if not wide and not quick:
        yield shown, np.eye(n_features)


def _rounded(rows: Matrix) -> Matrix:
    """Drop the last digits, which depend on the rotation, so that each look finds the same."""
    # a search from matches to matches amplifies a last bit: two audits of one table would differ
    scale = 2.0 ** np.ceil(np.log2(np.abs(rows).max(initial=1e-300)))
    return np.asarray(np.round(rows / scale, _DIGITS) * scale)


def _leading(rows: Matrix) -> Matrix:
    """Return leading directions, signs from the scores: no rotation of the rows changes these."""
    axes = np.linalg.svd(rows, full_matrices=False)[2].T
    return axes * np.where(np.sum((rows @ axes) ** 3, axis=0) < 0, -1.0, 1.0)


def curious(subject: Subject, *, seed: int) -> Finding:
    part = subject.some(_ROWS, seed=seed)
    content, linkage = guessed(part, seed=seed) or (None, None)
    if content is None or linkage is None:
        words = (
            "What an analyst with similar records finds out alone cannot be tried on so few rows; "
            "take it that the right person can be picked."
        )
        return Finding("P2", "red", words)
    words = (
        f"An analyst with {part.n_rows // 2:,} records of other people of the same kind, acting "
        f"alone, rebuilds {per_cent(content.explained.value)} of the information, and of a list "
        f"of {round(1 / linkage.chance):,} people picks out {per_cent(linkage.value)} rightly "
        f"(chance: {per_cent(linkage.chance)})."
    )
    few = part.n_rows < 2 * _ENOUGH
    if few:
        words += f" So few records were all that was there to try; with {_ENOUGH} it does better."
    figures = {
        "linked": linkage.value,
        "chance": linkage.chance,
        **_shown(content),
        "n_public": part.n_rows // 2,
    }
    grade = worst("amber" if few else "green", graded(linkage.value, LINKAGE))
    return Finding("P2", grade, words, figures)


def acquainted(subject: Subject, *, rng: np.random.Generator) -> Finding:
    if subject.n_rows < FEWEST:
        words = "How many people somebody has to know cannot be measured on so few rows."
        return Finding("P4", "red", words)
    some = subject.some(_ROWS, seed=int(rng.integers(2**32)))
    explained, named, tried = fewest_known(some.release, some.listed, rng=rng, draws=_DRAWS)
    more = f"more than {tried:,}"  # the most that were tried
    words = (
        f"It takes the records of {named or more} of your people to name one in eleven of the "
        f"rest, and of {explained or more} to rebuild half of everybody's."
    )
    figures = {"explained_from": explained, "named_from": named, "tried": tried}
    grade = worst(*(graded_known(each, tried) for each in (explained, named)))
    return Finding("P4", grade, words, figures)


def attributes(subject: Subject, *, rng: np.random.Generator) -> Finding:
    found = dict[str, tuple[float, float]]()
    for name, values in subject.sensitive.items() if subject.n_rows >= FEWEST else ():
        with suppress(ShapeError):  # all people alike, or nearly
            found[name] = infer_attribute(subject.release, values, rng=rng, n_known=_KNOWN)
    if not found:
        asked = "too few people, or they are all alike" if subject.sensitive else "none was named"
        return Finding("P5", "told", f"Nothing was tried: {asked}.")
    name = max(found, key=lambda each: found[each][0] - found[each][1])
    auc, labels = found[name]
    words = (
        f"Whoever knows {_KNOWN} people's value of '{name}' tells for {per_cent(auc)} of all "
        f"pairs of others who is above the median and who below; from the labels alone "
        f"{per_cent(labels)}, by guessing 50 %."
    )
    gain = auc - labels  # what the rows add to the labels
    figures = {"column": name, "gain": gain, "auc": auc, "auc_from_labels": labels}
    return Finding("P5", graded(gain, ATTRIBUTE), words, {**figures, "n_columns": len(found)})


def structure(subject: Subject) -> Finding:
    if subject.n_rows <= NEIGHBOURS:
        return Finding("P6", "told", f"With {subject.n_rows} rows there is nothing to compare.")
    some = subject.some(_ROWS_OF_STRUCTURE, seed=0)
    found = score_structure(some.release, some.columns)
    words = (
        f"Of each person's {NEIGHBOURS} nearest, {per_cent(found['neighbours_kept'])} are the "
        f"same in the upload (chance: {per_cent(found['chance'])}). {found['alone']:,} of "
        f"{some.n_rows:,} people stand alone there, {found['alone_in_truth']:,} in truth."
    )
    return Finding("P6", "told", words, found)
