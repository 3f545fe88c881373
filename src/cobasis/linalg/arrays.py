"""Tables as callers hand them in, checked and never cast silently; ranks, spans, and blocks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from cobasis.errors import DtypeError, NotFiniteError, SecretError, ShapeError
from cobasis.linalg.threads import in_order, one_blas_thread

Matrix = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]
Done = TypeVar("Done")

EXACT_INTEGER = 2**53
"""Up to here float64 holds every integer."""


def as_matrix(values: npt.ArrayLike, *, name: str, columns: int | None = None) -> Matrix:
    """Check that `values` is a finite two-dimensional table and return it as float64."""
    converted = as_table(values, name=name, columns=columns)
    if not np.isfinite(converted).all():
        raise NotFiniteError(
            f"{name} contains NaN or infinity, so no projection of it is defined. Fill or drop "
            "them by a rule that all parties share."
        )
    return converted


def as_table(values: npt.ArrayLike, *, name: str, columns: int | None = None) -> Matrix:
    """Do what `as_matrix` does, but for the pass that looks for NaN and infinity.

    For callers whose first product or sum over the table shows them anyway.
    """
    array = values
    if type(array) is not np.ndarray or array.dtype != np.float64:
        array = _as_array(values, name)
    if array.ndim != 2:  # noqa: PLR2004 -- a table has two dimensions
        raise ShapeError(
            f"{name} has {array.ndim} dimensions (shape {array.shape}), a table has 2. "
            "Reshape your data to (n_rows, n_columns)."
        )
    if 0 in array.shape:
        empty = "sample" if array.shape[0] == 0 else "feature"
        raise ShapeError(
            f"{name} is empty: 0 {empty}(s) (shape={array.shape}) while a minimum of 1 is "
            "required. Leave the party out, or give it rows."
        )
    if columns is not None and array.shape[1] != columns:
        hint = " It looks transposed." if array.shape[0] == columns else ""
        raise ShapeError(
            f"{name} has {array.shape[1]} columns (shape {array.shape}), expected {columns}."
            f"{hint} Rows are records, columns are features."
        )
    return np.asarray(array, dtype=np.float64)


def _as_array(values: npt.ArrayLike, name: str) -> npt.NDArray[np.generic]:
    """Return `values` as an array of which float64 holds every entry exactly, or refuse them."""
    if np.ma.is_masked(values):
        raise NotFiniteError(
            f"{name} contains masked entries, and the numbers under a mask are not data. "
            "Fill or drop them by a rule that all parties share."
        )
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ShapeError(
            f"{name} has rows that are not of one length, so it is no table. Fill or drop some."
        ) from error
    kind = array.dtype.kind
    if kind == "c":
        reason = "Complex data not supported: the method is defined for real numbers"
    elif kind not in "fiub":
        reason = f"dtype {array.dtype} holds something else than numbers"
    elif not array.dtype.isnative:
        reason = f"dtype {array.dtype} has the byte order of another machine"
    elif kind == "f" and array.dtype.itemsize > np.dtype(np.float64).itemsize:
        reason = f"dtype {array.dtype} is wider than float64"
    elif kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > EXACT_INTEGER:
        reason = "it holds integers above 2**53, which float64 would round"
    else:
        return array
    raise DtypeError(
        f"{name} cannot be used: {reason}, and cobasis never casts silently. "
        "Convert it to float64 yourself, where you can see what happens to the values."
    )


EPS = float(np.finfo(np.float64).eps)

ORTHONORMAL = 1e-10
"""How far C' C may be from I in columns that are called orthonormal."""


def numerical_rank(singular_values: Matrix, shape: tuple[int, ...]) -> int:
    # LAPACK's error in every singular value is of about that size: what is smaller may be zero.
    # Relative to the largest, the rank does not depend on units; strictly above, it is 0 for 0.
    return int(np.count_nonzero(singular_values > max(shape) * EPS * singular_values[0]))


def orthonormality_defect(columns: Matrix) -> float:
    gram = columns.T @ columns
    return float(np.max(np.abs(gram - np.eye(gram.shape[0]))))


def is_orthonormal(columns: Matrix) -> bool:
    return orthonormality_defect(columns) <= ORTHONORMAL


class Hidden:
    """Refuses to be printed, pickled or copied; what it holds can only be used."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, hidden>"

    def __reduce_ex__(self, protocol: object = 2) -> NoReturn:
        raise SecretError(
            f"a {type(self).__name__} does not travel: pickle and copy would put it into files and "
            "processes that nobody protects. Keep the object where it was made."
        )

    __reduce__ = __getstate__ = __reduce_ex__


PART_CELLS = 2**20
"""Cells of a part of a table in memory: a product of some milliseconds."""


class Blocks(ABC):
    """A table of finite numbers that can be gone through again and again."""

    shape: tuple[int, int]

    @abstractmethod
    def over(self, work: Callable[[int, Iterator[Matrix]], Done], *, step: str) -> Iterator[Done]:
        """Go through the table once and yield what `work` made of each part, in order."""


class WholeTable(Blocks):
    """A table in memory, in parts that the cores share."""

    def __init__(self, table: Matrix) -> None:
        self.table = table
        self.shape = (table.shape[0], table.shape[1])

    def over(
        self,
        work: Callable[[int, Iterator[Matrix]], Done],
        *,
        step: str,  # noqa: ARG002 -- there is nothing to wait for
    ) -> Iterator[Done]:
        # The size is the table's alone: parts are added in their order, so that a sum over them
        # is the same to the last bit with one thread or with many.
        size = max(256, PART_CELLS // self.shape[1])
        with one_blas_thread():
            yield from in_order(
                lambda first: work(first, iter([self.table[first : first + size]])),
                range(0, self.shape[0], size),
            )


def gathered(rows: Blocks, places: Places | None = None, *, step: str = "reading rows") -> Matrix:
    """Return a table in memory, or some of its rows, whose places are sorted."""

    def copied(first: int, blocks: Iterator[Matrix]) -> list[Matrix]:
        found = []
        for block in blocks:
            if places is None:
                found.append(block.copy())
            else:
                start, stop = np.searchsorted(places, [first, first + len(block)])
                found.append(block[places[start:stop] - first])
            first += len(block)
        return found

    parts = [block for part in rows.over(copied, step=step) for block in part]
    return np.vstack(parts) if parts else np.empty((0, rows.shape[1]))
