"""Passes over partitions: what every model out of core is made of.

A pass calls one function with the number of each partition and hands back what it returned,
in order: here in a pool of threads, on a cluster in its workers. What is summed over a pass is
summed in the same order everywhere.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from cobasis.engine.partitions import AlignedRows, Labels, Rows
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.pool import in_order
from cobasis.models.training import with_signs
from cobasis.progress import Report

Result = TypeVar("Result")

CHUNK = 8_192
"""Rows that are float64 at a time: they stay in the processor's cache."""


class Pass(Protocol):
    """One pass over all partitions."""

    def __call__(self, work: Callable[[int], Result], step: str | None = None) -> Iterator[Result]:
        """Yield ``work(index)`` for each partition, in order; with a step's name, report it."""
        ...


def here(aligned: AlignedRows, report: Report) -> Pass:
    """Return passes in this process, by a pool of threads."""
    n_partitions = len(aligned.partitions)

    def run(work: Callable[[int], Result], step: str | None = None) -> Iterator[Result]:
        for done, result in enumerate(in_order(work, range(n_partitions)), 1):
            if step is not None:
                report(step, done, n_partitions)
            yield result

    return run


def total(results: Iterator[Any]) -> Any:  # noqa: ANN401 -- arrays, or tuples of them as one array
    """Add up what a pass yields."""
    first = next(results)
    for each in results:
        first = first + each
    return first


def chunks(rows: Rows) -> Iterator[tuple[slice, Matrix]]:
    """Yield places and float64 copies of a few thousand rows at a time."""
    for start in range(0, len(rows), CHUNK):
        place = slice(start, start + CHUNK)
        yield place, rows[place].astype(np.float64, copy=False)


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The principal axes of all aligned rows, and their moments.

    Attributes
    ----------
    axes : ndarray of shape (n_components, n_components)
        Orthogonal; the first step of a model. The same as `models.training.principal_axes`
        of all rows at once.
    mean : ndarray of shape (n_components,)
        Of the rows as they are on disk.
    covariance : ndarray of shape (n_components, n_components)
        Same; divided by the number of rows.
    """

    axes: Matrix
    mean: Matrix
    covariance: Matrix


def find_frame(aligned: AlignedRows, over: Pass) -> Frame:
    """Find the principal axes in two passes: second moments, then the third for the signs."""
    moments = total(over(partial(_second, aligned), "moments"))
    n_rows, mean = moments[-1, -1], moments[-1, :-1] / moments[-1, -1]
    _, vectors = np.linalg.eigh(moments[:-1, :-1])
    axes = vectors[:, ::-1]
    third = total(over(partial(_third, aligned, axes), "principal axes"))
    return Frame(
        axes=with_signs(axes, third),
        mean=mean,
        covariance=moments[:-1, :-1] / n_rows - np.outer(mean, mean),
    )


def _second(aligned: AlignedRows, index: int) -> Matrix:
    """Return the second moments of a partition's rows and a column of ones."""
    rows, _ = aligned.read(index)
    moments = np.zeros((aligned.n_components + 1,) * 2)
    for _, chunk in chunks(rows):
        moments[:-1, :-1] += chunk.T @ chunk
        moments[-1, :-1] += chunk.sum(axis=0)
    moments[:-1, -1], moments[-1, -1] = moments[-1, :-1], len(rows)
    return moments


def _third(aligned: AlignedRows, axes: Matrix, index: int) -> Matrix:
    """Return the third moments of a partition's rows along the axes."""
    rows, _ = aligned.read(index)
    third = np.zeros(aligned.n_components)
    for _, chunk in chunks(rows):
        scores = chunk @ axes
        third += np.einsum("ij,ij,ij->j", scores, scores, scores)
    return third


@dataclass(frozen=True, kw_only=True)
class TurnedRows:
    """Aligned rows along their principal axes, and the rows that are held out.

    Attributes
    ----------
    aligned : AlignedRows
        On disk.
    axes : ndarray of shape (n_components, n_components)
        To turn them by.
    n_held : int
        About how many rows training never sees, because early stopping is judged by them.
    """

    aligned: AlignedRows
    axes: Matrix
    n_held: int = 0

    def first(self, n_rows: int, over: Pass) -> tuple[Rows, Labels]:
        """Read about `n_rows` rows, the first of every partition: a random sample."""
        read = list(over(partial(self._first, n_rows)))
        return np.concatenate([rows for rows, _ in read]), np.concatenate([y for _, y in read])

    def rest(self, index: int) -> tuple[Rows, Labels]:
        """Read a partition without the rows that are held out."""
        rows, labels = self._read(index)
        kept = slice(self._share(self.n_held, index), None)
        return self._turned(rows[kept]), labels[kept]

    def _first(self, n_rows: int, index: int) -> tuple[Rows, Labels]:
        rows, labels = self._read(index)
        kept = slice(self._share(n_rows, index))
        return self._turned(rows[kept]), labels[kept].copy()

    def _read(self, index: int) -> tuple[Rows, Labels]:
        rows, labels = self.aligned.read(index)
        return rows, cast("Labels", labels)

    def _turned(self, rows: Rows) -> Rows:
        turned: Rows = rows @ self.axes.astype(rows.dtype)
        return turned

    def _share(self, n_rows: int, index: int) -> int:
        """Return how many of `n_rows` fall to a partition."""
        size, everything = self.aligned.partitions[index].n_rows, self.aligned.n_rows
        return min(size, -(-n_rows * size // everything))
