"""The audit itself: every metric of the policy, in its order."""

from collections.abc import Sequence

import numpy as np

from cobasis.linalg.rng import KEY_BYTES
from cobasis.linalg.threads import one_blas_thread
from cobasis.privacy.audit.checks import checked
from cobasis.privacy.audit.collusion import colluded, linked
from cobasis.privacy.audit.distances import distances, swept
from cobasis.privacy.audit.grading import Finding
from cobasis.privacy.audit.people import attributes, structure
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
