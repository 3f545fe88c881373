"""P1 to P4: what a colluder finds out, and what somebody who works with no party does."""

from collections.abc import Iterator

import numpy as np

from cobasis.linalg.arrays import Matrix
from cobasis.privacy.attacks.collusion import LeakedBasis
from cobasis.privacy.attacks.known_records import fewest_known
from cobasis.privacy.attacks.linkage import CandidatesAlone
from cobasis.privacy.attacks.public_sample import PublicSample
from cobasis.privacy.attacks.release import Recovered, Release
from cobasis.privacy.attacks.scores import Content, Share, score_content, score_linkage
from cobasis.privacy.audit.grades import (
    CONTENT,
    KNOWN_GREEN,
    KNOWN_RED,
    LINKAGE,
    Figures,
    Finding,
    Grade,
    graded,
    per_cent,
    times,
    worst,
)
from cobasis.privacy.audit.subject import Subject


def colluded(subject: Subject) -> Finding:
    """Rebuild the rows as a party with the anchor, and an analyst with the uploads, can: P1."""
    recovered = rebuilt(subject)
    found = score_content(recovered, subject.rows)
    column, most = most_explained(recovered, subject)
    words = (
        f"If one party helps the analyst, {per_cent(found.explained.value)} of the variance of the "
        f"rows is rebuilt; {per_cent(found.cells.value)} of all values land within a tenth of "
        f"their column's range (guessing the average person: {per_cent(found.cells.chance)}). Of "
        f"the best rebuilt 1 % of people it is {per_cent(found.worst_explained)}, of the column "
        f"'{column}' {per_cent(most)}."
    )
    figures: Figures = {
        "explained": found.explained.value,
        "explained_worst_percent": found.worst_explained,
        "cells": found.cells.value,
        "cells_chance": found.cells.chance,
        "named": found.named.value,
        "named_chance": found.named.chance,
        "worst_column": column,
        "worst_column_explained": most,
    }
    grade = graded(found.explained.value, CONTENT)
    title = "Content, if one party helps the analyst"
    return Finding(id="P1", title=title, grade=grade, words=words, figures=figures)


def rebuilt(subject: Subject) -> Recovered:
    """Rebuild rows with the true basis, in the best of two ways."""
    plain = LeakedBasis(basis=subject.basis).recover(subject.release)
    mean, centre = subject.rows.mean(axis=0), subject.release.rows.mean(axis=0)
    prior, seen = subject.rows - mean, subject.release.rows - centre
    # Cov(x~)^+ F' C: the least mean squared error, with the noise inside Cov(x~)
    back = np.linalg.lstsq(seen.T @ seen, (prior @ subject.basis).T @ prior, rcond=None)[0]
    informed = Recovered(rows=mean + seen @ back, basis=subject.basis)
    return max((plain, informed), key=lambda each: explained(subject, each))


def explained(subject: Subject, recovered: Recovered) -> float:
    """Return R2: the share of the rows' variance that was rebuilt."""
    truth = subject.rows
    spread = float(((truth - truth.mean(axis=0)) ** 2).sum())
    missed = float(((truth - recovered.rows) ** 2).sum())
    return 1 - missed / spread if spread > 0 else float(missed == 0)


def linkage(subject: Subject) -> Share:
    """Link released rows with a list of these people, by the true basis."""
    listed = subject.listed
    known = Recovered(rows=listed, basis=subject.basis)
    return score_linkage(subject.release.rows, known, candidates=listed, places=subject.places)


def linked(subject: Subject) -> Finding:
    """Grade what is linked if the basis leaks: P3."""
    share = linkage(subject)
    words = (
        "Whoever has the secret basis and a list with these people on it picks the right person "
        f"{times(share.value)} (chance: {times(share.chance)}). Only noise changes this."
    )
    figures = {"linked": share.value, "chance": share.chance}
    title = "Linkage, if the secret basis leaks"
    grade = graded(share.value, LINKAGE)
    return Finding(id="P3", title=title, grade=grade, words=words, figures=figures)


def most_explained(recovered: Recovered, subject: Subject) -> tuple[str, float]:
    """Return the column of which most was rebuilt, and its R2; columns that vary only."""
    truth = subject.rows
    spread = ((truth - truth.mean(axis=0)) ** 2).sum(axis=0)
    missed = ((truth - recovered.rows) ** 2).sum(axis=0)
    varies = spread > 1e-12 * max(1.0, float(spread.max(initial=0.0)))
    if not varies.any():
        return "none", 0.0
    explained = np.where(varies, 1 - missed / np.where(varies, spread, 1.0), -np.inf)
    best = int(explained.argmax())
    return subject.called(best), float(explained[best])


FEWEST = 40
"""With fewer rows nothing is split: what an attack makes of so few says nothing."""

_ROWS_OF_P2, _ROWS_OF_P4 = 600, 600
"""People whom the two attacks are tried on, at most; both find nearly as much with more."""

_NARROW = 100
"""So many columns are looked at as they are, too."""

_LEADING = 8
"""An attacker that leaves out directions keeps so many."""

_ENOUGH = 100
"""With fewer records of the same kind the attack that is played here is weak."""

_SMALL, _SPLITS = 200, 3
"""Tables of so few rows are split more than once: one split of them says little."""

_DRAWS, _DIGITS = 3, 9


def guessed(
    subject: Subject, *, seed: int, quick: bool = False
) -> tuple[Content | None, Share] | None:
    """Play an analyst with similar records: half of the rows are the attacker's public sample.

    Two ways need nobody's help: the list itself, since people are as far from each other in the
    upload as on the list; and the public sample. An attacker need not use all that it sees: along
    the leading half or quarter of the released directions, and twice as many of its own sample,
    the two clouds are laid over each other more surely than in all 784 columns of Fashion-MNIST.
    """
    if subject.n_rows < FEWEST:
        return None
    rng = np.random.default_rng(seed)
    small = subject.n_rows <= _SMALL and not quick
    found = [_of_halves(subject, rng=rng, quick=quick) for _ in range(_SPLITS if small else 1)]
    return sorted(found, key=lambda each: each[1].value)[len(found) // 2]


def _of_halves(
    subject: Subject, *, rng: np.random.Generator, quick: bool
) -> tuple[Content | None, Share]:
    """Attack one half of the rows with the other."""
    own, other = np.array_split(rng.permutation(subject.n_rows), 2)
    victims, public = subject.only(other), subject.listed[own]
    labels = None if subject.labels is None or subject.classes is None else subject.labels[own]
    sent = None if labels is None else victims.release.labels
    contents, linkages = [], [_by_list(victims)]
    if quick and linkages[0].value > LINKAGE.red:  # which says enough, and costs little
        return None, linkages[0]
    for shown, seen in _views(victims.release.rows, public, quick=quick):
        release = Release(rows=_rounded(victims.release.rows @ shown), labels=sent)
        guess = PublicSample(rows=public @ seen, labels=labels, rng=rng).recover(release).basis
        basis = seen @ (np.zeros((seen.shape[1], shown.shape[1])) if guess is None else guess)
        found = LeakedBasis(basis=basis, prior_rows=public).recover(release)
        linkages.append(
            score_linkage(release.rows, found, candidates=victims.listed, places=victims.places)
        )
        if not quick:
            contents.append(score_content(found, victims.rows))
    best = max(contents, key=lambda each: each.explained.value, default=None)
    return best, max(linkages, key=lambda each: each.value)


def _by_list(victims: Subject) -> Share:
    """Link people with the list itself, by their distances to all others on it."""
    if min(victims.rows.shape) < victims.n_components:
        return Share(value=0.0, chance=1 / victims.n_rows)
    release = Release(rows=_rounded(victims.release.rows @ _leading(victims.release.rows)))
    found = CandidatesAlone(candidates=victims.listed).recover(release)
    return score_linkage(release.rows, found, candidates=victims.listed, places=victims.places)


def _views(released: Matrix, public: Matrix, *, quick: bool) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield along which directions an attacker looks at released rows, and at its own sample."""
    shown, seen, n_features = _leading(released), _leading(public), public.shape[1]
    size, wide = min(shown.shape[1], seen.shape[1]), n_features > _NARROW
    k = min(size, max(_LEADING, size // 2 if wide and not quick else size // 4))
    yield shown[:, :k], seen[:, : 2 * k]
    if not wide and not quick:
        yield shown, np.eye(n_features)


def _rounded(rows: Matrix) -> Matrix:
    """Drop the last digits, which depend on the rotation, so that each look finds the same."""
    scale = 2.0 ** np.ceil(np.log2(np.abs(rows).max(initial=1e-300)))
    rounded: Matrix = np.round(rows / scale, _DIGITS) * scale
    return rounded


def _leading(rows: Matrix) -> Matrix:
    """Return leading directions, signs from the scores: no rotation of the rows changes these."""
    axes = np.linalg.svd(rows, full_matrices=False)[2].T
    signed: Matrix = axes * np.where(np.sum((rows @ axes) ** 3, axis=0) < 0, -1.0, 1.0)
    return signed


def curious(subject: Subject, *, seed: int) -> Finding:
    """Say what an analyst with similar public records would find out, alone: P2."""
    title = "A curious analyst with similar public records, alone"
    part = subject.some(_ROWS_OF_P2, seed=seed)
    found = guessed(part, seed=seed)
    content, linkage = found or (None, None)
    if content is None or linkage is None:
        words = f"With {subject.n_rows} rows this cannot be tried; take it for possible."
        return Finding(id="P2", title=title, grade="red", words=words)
    words = (
        f"Nobody helps, and the analyst has {part.n_rows // 2:,} records of other people of the "
        f"same kind: it rebuilds {per_cent(content.explained.value)} of the variance. Given a "
        f"list of {round(1 / linkage.chance):,} people, it picks the right one "
        f"{times(linkage.value)} (chance: {times(linkage.chance)})."
    )
    if part.n_rows < 2 * _ENOUGH:
        words += f" So few records were all that was there to try; with {_ENOUGH} it does better."
    figures = {
        "linked": linkage.value,
        "chance": linkage.chance,
        "explained": content.explained.value,
        "cells": content.cells.value,
        "named": content.named.value,
        "n_public": part.n_rows // 2,
    }
    least: Grade = "amber" if part.n_rows < 2 * _ENOUGH else "green"
    grade = worst(least, graded(linkage.value, LINKAGE))
    return Finding(id="P2", title=title, grade=grade, words=words, figures=figures)


def acquainted(subject: Subject, *, rng: np.random.Generator) -> Finding:
    """Find how few of the party's people somebody has to know: P4."""
    title = "People whose records have to be known"
    if subject.n_rows < FEWEST:
        words = (
            f"With {subject.n_rows} rows this cannot be tried; take one known person for enough."
        )
        return Finding(id="P4", title=title, grade="red", words=words)
    some = subject.some(_ROWS_OF_P4, seed=int(rng.integers(2**32)))
    found = fewest_known(some.release, some.listed, rng=rng, draws=_DRAWS)
    words = (
        f"{_from(found.explained, found.tried)} half of the variance of everybody else's rows is "
        f"rebuilt; {_from(found.named, found.tried).lower()} one in eleven is named among "
        f"{some.n_rows:,}."
    )
    figures = {"explained_from": found.explained, "named_from": found.named, "tried": found.tried}
    grade = worst(*(_grade(each, found.tried) for each in (found.explained, found.named)))
    return Finding(id="P4", title=title, grade=grade, words=words, figures=figures)


def _from(number: int | None, tried: int) -> str:
    if number is None:
        return f"With {tried:,} known people, the most that were tried, it does not happen that"
    return f"From {number:,} known {'person' if number == 1 else 'people'} on"


def _grade(number: int | None, tried: int) -> Grade:
    """Return the grade of a number of people who have to be known; None is more than was tried."""
    least = tried + 1 if number is None else number
    if least > KNOWN_GREEN:
        return "green"
    if number is None:
        return "amber"  # it is more than was tried, which says no more
    return "amber" if least >= KNOWN_RED else "red"
