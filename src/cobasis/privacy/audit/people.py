"""P5 and P6: what is inferred about a sensitive column, and what distances alone show."""

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix
from cobasis.privacy.attacks.attribute import Inferred, infer_attribute
from cobasis.privacy.attacks.structure import score_structure
from cobasis.privacy.audit.grading import ATTRIBUTE, Figures, Finding, graded
from cobasis.privacy.audit.subject import Subject
from cobasis.privacy.audit.words import per_cent

_KNOWN = 20
_NEIGHBOURS, _ROWS = 10, 1000


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
