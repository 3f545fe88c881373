"""H1 to H6: what can be told from what was agreed and uploaded before, without an attack."""

import numpy as np

from cobasis.algorithms.bases import BASES
from cobasis.models.families import FAMILIES
from cobasis.privacy.audit.grading import (
    ROWS_PER_COMPONENT_GREEN,
    ROWS_PER_COMPONENT_RED,
    SMALLEST_CHANGE,
    SMALLEST_CHANGED_SHARE,
    SMALLEST_CLASS,
    WORST_CONDITION,
    Finding,
    Grade,
)
from cobasis.privacy.audit.subject import Facts, Subject

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
