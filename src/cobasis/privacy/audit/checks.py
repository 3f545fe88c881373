"""Every check and metric of the policy, in its order; H1 to H6 need no attack."""

from collections.abc import Sequence

import numpy as np

from cobasis.algorithms.bases import BASES
from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.rng import KEY_BYTES
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.families import FAMILIES
from cobasis.privacy.attacks.attribute import Inferred, infer_attribute
from cobasis.privacy.attacks.structure import score_structure
from cobasis.privacy.audit.attackers import acquainted, colluded, curious, linked
from cobasis.privacy.audit.distances import distances, swept
from cobasis.privacy.audit.grades import (
    ATTRIBUTE,
    ROWS_PER_COMPONENT_GREEN,
    ROWS_PER_COMPONENT_RED,
    SMALLEST_CHANGE,
    SMALLEST_CHANGED_SHARE,
    SMALLEST_CLASS,
    WORST_CONDITION,
    Figures,
    Finding,
    Grade,
    graded,
    per_cent,
)
from cobasis.privacy.audit.report import (
    UNTESTED,
    About,
    AuditReport,
    effect_sentences,
    guarantee_words,
    sentences,
    verdict_of,
    verdict_words,
)
from cobasis.privacy.audit.subject import Facts, Setting, Spans, Subject, settings_of
from cobasis.privacy.audit.what_if import effects

_SAFE_ANCHORS = {"isometric", "gaussian"}
_BINARY = 2


def checked(subject: Subject, facts: Facts) -> tuple[Finding, ...]:
    """Return H1 to H6."""
    return (
        _anchor(subject, facts),
        _rows_per_component(subject, facts),
        _smallest_class(facts),
        _history(facts),
        _models(facts),
        _labels(subject, facts),
    )


def _anchor(subject: Subject, facts: Facts) -> Finding:
    """H1: the anchor's kind, and whether its image has full rank."""
    title = "Anchor"
    if facts.anchor not in _SAFE_ANCHORS:
        words = (
            f"The agreed anchor is '{facts.anchor}': its image alone gives the secret basis away, "
            'or its rows can be found. Agree on anchor = "isometric" or "gaussian".'
        )
        return Finding(id="H1", title=title, grade="red", words=words)
    image = subject.release.anchor_image
    condition = float("inf") if image is None else float(np.linalg.cond(image))
    figures = {"condition": condition if np.isfinite(condition) else None}
    if condition >= WORST_CONDITION:
        words = (
            f"The anchor is '{facts.anchor}', but its image is nearly rank-deficient, which no "
            "honest draw is. Do not send this; ask for a new consortium secret and round."
        )
        return Finding(id="H1", title=title, grade="red", words=words, figures=figures)
    words = (
        f"The anchor is '{facts.anchor}', drawn from a secret of 256 random bits that the analyst "
        "does not have; its image by itself tells nothing of the basis."
    )
    return Finding(id="H1", title=title, grade="green", words=words, figures=figures)


def _rows_per_component(subject: Subject, facts: Facts) -> Finding:
    """H2: with few rows per component, the basis tells who was in the table."""
    ratio = facts.n_rows / subject.n_components
    title = "Rows for each component"
    rule = BASES[facts.basis]
    own = rule.span.startswith("own") or rule.exchanges > 1
    figures = {"rows_per_component": ratio}
    if not own:
        words = (
            f"{facts.n_rows:,} rows, {subject.n_components:,} components. The basis is not made of "
            "your rows, so it says nothing about who is in the table."
        )
        return Finding(id="H2", title=title, grade="green", words=words, figures=figures)
    grade: Grade = "green" if ratio > ROWS_PER_COMPONENT_GREEN else "amber"
    if ratio < ROWS_PER_COMPONENT_RED:
        grade = "red"
    words = (
        f"{facts.n_rows:,} rows make a basis of {subject.n_components:,} components, "
        f"{ratio:.1f} rows for each. Whoever learns the basis can tell who is in the table the "
        "better, the fewer there are: nearly surely at 3, hardly at 20."
    )
    return Finding(id="H2", title=title, grade=grade, words=words, figures=figures)


def _smallest_class(facts: Facts) -> Finding:
    """H3: few people with one label stand out, whatever their numbers are."""
    title = "Smallest class"
    if not facts.class_counts:
        return Finding(id="H3", title=title, grade="green", words="No classes are sent.")
    least = min(facts.class_counts)
    grade: Grade = "green" if least >= SMALLEST_CLASS else "red"
    words = (
        f"The smallest class that is sent has {least:,} {_people(least)}; "
        f"fewer than {SMALLEST_CLASS} stand out."
    )
    figures = {"smallest_class": least, "n_classes": len(facts.class_counts)}
    return Finding(id="H3", title=title, grade=grade, words=words, figures=figures)


def _history(facts: Facts) -> Finding:
    """H4: rows that were uploaded before go through the span of then, and few do not change."""
    title = "Earlier uploads of these rows"
    figures = {"n_uploads": facts.n_uploads, "added": facts.added, "gone": facts.gone}
    if facts.span == "forced":
        words = (
            "Some of these rows were uploaded before, and now go through a second span. Every "
            "further span shows them from another side, until nothing is hidden."
        )
        return Finding(id="H4", title=title, grade="red", words=words, figures=figures)
    if facts.added is None or facts.gone is None:
        words = "None of these rows was uploaded before from this home folder."
        return Finding(id="H4", title=title, grade="green", words=words, figures=figures)
    words = (
        f"These rows go through the basis that they went through before. Since the last upload "
        f"{facts.added:,} came and {facts.gone:,} went."
    )
    return Finding(
        id="H4", title=title, grade=_grade_of_changes(facts), words=words, figures=figures
    )


def _grade_of_changes(facts: Facts) -> Grade:
    """Return red for 1 to 10 rows that came or went, amber below a twentieth of all rows."""
    changes = [each for each in (facts.added, facts.gone) if each]
    if any(each < SMALLEST_CHANGE for each in changes):
        return "red"
    few = any(each < SMALLEST_CHANGED_SHARE * facts.n_rows for each in changes)
    return "amber" if few else "green"


def _models(facts: Facts) -> Finding:
    """H5: what may come back."""
    title = "The model that comes back"
    carrying = [name for name in facts.models if FAMILIES[name].carries_rows]
    if carrying:
        words = (
            f"The agreement allows {', '.join(carrying)}, whose file holds records of every party: "
            "each of you could read the others'. Agree on logistic, ridge, mlp or rff."
        )
        return Finding(id="H5", title=title, grade="red", words=words)
    if not facts.models:
        words = "No model is trained; a change of basis comes back, and nothing that can run."
        return Finding(id="H5", title=title, grade="green", words=words)
    trees = not {"boosted_trees", "xgboost"}.isdisjoint(facts.models)
    words = (
        f"What may come back is {', '.join(facts.models)}, as a checked model file: weights, "
        "no records, nothing that could run by itself."
    )
    if trees:
        words += " Thresholds of boosted trees are single values of somebody's projected rows."
    return Finding(id="H5", title=title, grade="amber" if trees else "green", words=words)


def _labels(subject: Subject, facts: Facts) -> Finding:
    """H6: labels travel beside the rows."""
    title = "Labels"
    if subject.release.labels is None:
        return Finding(id="H6", title=title, grade="green", words="No labels are sent.")
    treated = None if facts.guarantee is None else facts.guarantee.labels
    if facts.sensitive_label:
        words = "The label was declared sensitive, and the analyst sees it, one for each row."
        return Finding(id="H6", title=title, grade="red", words=words)
    if treated is not None:
        words = f"Labels: {treated}."
        return Finding(id="H6", title=title, grade="green", words=words)
    n_classes = len(facts.class_counts)
    kind = "one of two" if n_classes == _BINARY else f"one of {n_classes:,}"
    what = f"{kind} classes" if n_classes else "a number"
    words = (
        f"The analyst sees the label of each row, {what}, as it is. If the label itself is "
        "sensitive, name it with --sensitive."
    )
    figures = {"n_classes": n_classes or None}
    return Finding(id="H6", title=title, grade="amber", words=words, figures=figures)


def _people(number: int) -> str:
    return "person" if number == 1 else "people"


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
