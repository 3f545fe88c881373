"""The audit itself: every metric of the policy, in its order."""

from collections.abc import Sequence

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.rng import KEY_BYTES
from cobasis.linalg.threads import one_blas_thread
from cobasis.privacy.attacks.attribute import Inferred, infer_attribute
from cobasis.privacy.attacks.structure import score_structure
from cobasis.privacy.audit.checks import checked
from cobasis.privacy.audit.collusion import colluded, linked
from cobasis.privacy.audit.distances import distances, swept
from cobasis.privacy.audit.grading import ATTRIBUTE, Figures, Finding, graded
from cobasis.privacy.audit.report import About, AuditReport
from cobasis.privacy.audit.settings import Setting, settings_of
from cobasis.privacy.audit.spans import Spans
from cobasis.privacy.audit.strangers import acquainted, curious
from cobasis.privacy.audit.subject import Facts, Subject
from cobasis.privacy.audit.what_if import effects
from cobasis.privacy.audit.wording import (
    UNTESTED,
    effect_sentences,
    guarantee_words,
    sentences,
    verdict_of,
    verdict_words,
)
from cobasis.privacy.audit.words import per_cent

_KNOWN = 20
_NEIGHBOURS, _ROWS = 10, 1000


def audit(
    subject: Subject,
    *,
    facts: Facts,
    about: About,
    rng: np.random.Generator,
    settings: Sequence[Setting] | None = None,
) -> AuditReport:
    """Measure what an upload gives away, before it leaves.

    Figures are lower bounds: what our attacks find, others find as well.

    Chen and Liu, "Privacy preserving data classification with rotation perturbation", ICDM 2005;
    Imakura et al., arXiv:2208.14611; Nguyen et al., arXiv:1902.10799 for epsilon-DR.
    """
    with one_blas_thread():
        seed = int(rng.integers(2**32))
        found = _findings(subject, facts, seed=seed, rng=rng)
        known = {each.id: each for each in found}
        asked = settings_of(subject) if settings is None else settings
        sizes = swept(subject, asked)
        spans = Spans(subject, own=facts.basis, largest=sizes[-1], key=rng.bytes(KEY_BYTES))
        measured = effects(
            subject, settings=asked, kind=facts.basis, task=facts.task, spans=spans, seed=seed
        )
        return AuditReport(
            about=about,
            verdict=verdict_of(facts),
            verdict_words=verdict_words(facts, known),
            sentences=sentences(known, facts),
            findings=found,
            distances=distances(subject, sizes=sizes, rng=rng),
            effects=measured,
            changes=effect_sentences(measured, task=facts.task),
            untested=_untested(subject, facts),
        )


def _findings(
    subject: Subject, facts: Facts, *, seed: int, rng: np.random.Generator
) -> tuple[Finding, ...]:
    """Return P1 to P6, H1 to H6 and D1."""
    few, inferred = rng.spawn(2)  # so that no metric moves another's numbers
    guarantee = Finding(
        id="D1", title="Formal guarantee", grade="told", words=guarantee_words(facts)
    )
    return (
        colluded(subject),
        curious(subject, seed=seed),
        linked(subject),
        acquainted(subject, rng=few),
        attributes(subject, rng=inferred),
        structure(subject),
        *checked(subject, facts),
        guarantee,
    )


def _untested(subject: Subject, facts: Facts) -> tuple[str, ...]:
    """Return what was not looked at, of this table in particular first."""
    told = []
    if subject.n_rows < facts.n_rows:
        told.append(
            f"{facts.n_rows - subject.n_rows:,} of {facts.n_rows:,} rows: {subject.n_rows:,} were "
            "drawn at random and looked at. A list of all people is longer, and the right one "
            "harder to pick."
        )
    if not subject.sensitive:
        told.append(
            "What can be inferred about a sensitive column: none was named. Name one with "
            "--sensitive."
        )
    return (*told, *UNTESTED)


def attributes(subject: Subject, *, rng: np.random.Generator) -> Finding:
    """Infer sensitive columns from 20 known people: P5."""
    title = "Sensitive columns, if 20 people are known"
    found = {
        name: inferred
        for name, values in subject.sensitive.items()
        if (inferred := _inferred(subject, values, rng)) is not None
    }
    if not found:
        asked = "too few people, or they are all alike" if subject.sensitive else "none was named"
        words = f"Nothing was tried: {asked}."
        return Finding(id="P5", title=title, grade="told", words=words)
    worst = max(found, key=lambda name: found[name].gain)
    gain, auc, labels = found[worst].gain, found[worst].auc, found[worst].from_labels
    words = (
        f"Whoever knows {_KNOWN} people's value of '{worst}' tells for {per_cent(auc)} of all "
        f"pairs of others who is above the median and who below; from the labels alone "
        f"{per_cent(labels)}, by guessing 50 %."
    )
    figures: Figures = {
        "column": worst,
        "gain": gain,
        "auc": auc,
        "auc_from_labels": labels,
        "n_columns": len(found),
    }
    grade = graded(gain, ATTRIBUTE)
    return Finding(id="P5", title=title, grade=grade, words=words, figures=figures)


def structure(subject: Subject) -> Finding:
    """Say what distances between released rows show to whoever opens them: P6."""
    title = "What distances show, to anybody who opens the file"
    if subject.n_rows <= _NEIGHBOURS:
        words = f"With {subject.n_rows} rows there is nothing to compare."
        return Finding(id="P6", title=title, grade="told", words=words)
    some = subject.some(_ROWS, seed=0)
    found = score_structure(some.release, some.rows, n_neighbours=_NEIGHBOURS)
    words = (
        f"Of each person's {_NEIGHBOURS} nearest, {per_cent(found.neighbours_kept.value)} are the "
        f"same in the upload (chance: {per_cent(found.neighbours_kept.chance)}). {found.alone:,} "
        f"of {some.n_rows:,} people stand alone there, {found.alone_in_truth:,} in truth."
    )
    figures = {
        "neighbours_kept": found.neighbours_kept.value,
        "chance": found.neighbours_kept.chance,
        "distance_correlation": found.distance_correlation.value,
        "alone": found.alone,
        "alone_in_truth": found.alone_in_truth,
    }
    return Finding(id="P6", title=title, grade="told", words=words, figures=figures)


def _inferred(subject: Subject, values: Matrix, rng: np.random.Generator) -> Inferred | None:
    """Infer one column; None where it cannot be tried."""
    if subject.n_rows < 2 * _KNOWN:
        return None
    try:
        return infer_attribute(subject.release, values, rng=rng, n_known=_KNOWN)
    except ShapeError:  # all people alike, or nearly
        return None
