"""What is seen of rows before they are trained on: how many of each class, and their axes."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from cobasis.errors import LabelError, NotFiniteError, StepError
from cobasis.linalg.arrays import Matrix
from cobasis.models.chain import Integers
from cobasis.models.families import Task
from cobasis.models.passes import LabelledRows, Pass, Threads, WholeRows, chunks


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What one pass has shown of rows."""

    n_rows: int
    second: Matrix
    counts: Integers

    @property
    def present(self) -> Integers:
        """The classes that some row has."""
        return np.flatnonzero(self.counts)


def look(rows: LabelledRows, over: Pass, *, task: Task, n_classes: int | None) -> Seen:
    """Go through all rows once."""
    seen = list(over(partial(_look, task=task, n_classes=n_classes), rows, step="looking at rows"))
    counts = np.zeros(n_classes or max(len(each.counts) for each in seen), dtype=np.int64)
    for each in seen:
        counts[: len(each.counts)] += each.counts
    n_rows = sum(each.n_rows for each in seen)
    if not n_rows:
        raise StepError("there are no rows, so nothing can be trained. Receive uploads first.")
    return Seen(n_rows=n_rows, second=np.sum([each.second for each in seen], axis=0), counts=counts)


def _look(rows: LabelledRows, index: int, *, task: Task, n_classes: int | None) -> Seen:
    """See one block, and refuse labels that are not the task's."""
    block = rows.block(index)
    kind = block.labels.dtype.kind
    counts = np.zeros(0, dtype=np.int64)
    if task == "classification":
        strange = kind not in "iu" or (block.labels.size and int(block.labels.min()) < 0)
        counts = counts if strange else np.bincount(block.labels, minlength=n_classes or 0)
        if strange or (n_classes is not None and len(counts) > n_classes):
            raise LabelError(
                f"the labels are no positions in {n_classes or 'the'} classes: classification "
                "needs integers from 0. Number the classes, as np.unique(labels, "
                "return_inverse=True) does."
            )
    elif kind not in "iuf" or task != "regression":
        raise LabelError(
            f"labels of type {block.labels.dtype} are no numbers to learn for task='{task}'. "
            "Choose the task that the parties agreed on."
        )
    elif not np.isfinite(block.labels).all():
        raise NotFiniteError("the labels are not all finite. Drop the rows that have none.")
    return Seen(n_rows=len(block.rows), second=block.rows.T @ block.rows, counts=counts)


def principal_axes(rows: Matrix) -> Matrix:
    """Return the principal axes of aligned rows, each with its sign fixed by the rows.

    The aligned frame is arbitrary, and trees or per-feature scalers depend on it. These axes
    do not: they follow the rows.
    """
    source = WholeRows(rows=rows, labels=np.zeros(len(rows)))
    seen = look(source, Threads(), task="regression", n_classes=None)
    return axes_of(source, seen, over=Threads())


def axes_of(rows: LabelledRows, seen: Seen, *, over: Pass) -> Matrix:
    """Return the same of all rows."""
    _, vectors = np.linalg.eigh(seen.second)
    axes = vectors[:, ::-1]
    third = over(partial(_third, axes=axes), rows, step="principal axes")
    return with_signs(axes, sum(third, start=np.zeros(len(axes))))


def _third(rows: LabelledRows, index: int, *, axes: Matrix) -> Matrix:
    """Return the third moments of a block's rows along the axes."""
    third = np.zeros(len(axes))
    for chunk in chunks(rows.block(index), width=len(axes)):
        along = chunk.rows @ axes
        third += np.einsum("ij,ij,ij->j", along, along, along)
    return third


def with_signs(axes: Matrix, third_moments: Matrix) -> Matrix:
    """Return axes with signs such that the third moments of the rows along them are positive."""
    signed: Matrix = axes * np.where(third_moments < 0, -1.0, 1.0)
    return signed


def variance_of(rows: LabelledRows, axes: Matrix, *, over: Pass) -> float:
    """Return the variance of all numbers of all rows along the axes, about their one mean."""
    parts = list(over(partial(_spread, axes=axes), rows, step="variance"))
    size = sum(each[0] for each in parts)
    mean = sum(each[0] * each[1] for each in parts) / size
    return float(sum(each[0] * (each[2] + (each[1] - mean) ** 2) for each in parts) / size)


def _spread(rows: LabelledRows, index: int, *, axes: Matrix) -> tuple[int, float, float]:
    """Return how many numbers a block has along the axes, their mean, and their variance."""
    turned = rows.block(index).rows @ axes
    return (
        (turned.size, float(turned.mean()), float(turned.var())) if turned.size else (0, 0.0, 0.0)
    )
