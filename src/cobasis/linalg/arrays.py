"""Tables as callers hand them in, checked and never cast silently; their ranks and their spans."""

import sys
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dtrcon

from cobasis.errors import DtypeError, NotFiniteError, SecretError, ShapeError

Matrix = npt.NDArray[np.float64]

_NATIVE = "<" if sys.byteorder == "little" else ">"
EXACT_INTEGER = 2**53
"""Up to here float64 holds every integer."""


def as_matrix(values: npt.ArrayLike, *, name: str, columns: int | None = None) -> Matrix:
    """Check that `values` is a finite two-dimensional table and return it as float64."""
    converted = as_table(values, name=name, columns=columns)
    bad = int(converted.size - np.count_nonzero(np.isfinite(converted)))
    if bad:
        raise NotFiniteError(
            f"{name} contains NaN or infinity in {bad} of {converted.size} entries, so no "
            "projection of it is defined. Fill or drop them by a rule that all parties share."
        )
    return converted


def as_table(values: npt.ArrayLike, *, name: str, columns: int | None = None) -> Matrix:
    """Do what `as_matrix` does, but for the pass that looks for NaN and infinity.

    For callers whose first product or sum over the table shows them anyway.
    """
    array = values
    if type(array) is not np.ndarray or array.dtype != np.float64:
        array = _as_array(values, name)
        _refuse_dtype(array, name)
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
    """Return `values` as an array, unless NumPy would drop a mask or cannot line up the rows."""
    if np.ma.is_masked(values):
        raise NotFiniteError(
            f"{name} contains masked entries, and the numbers under a mask are not data. "
            "Fill or drop them by a rule that all parties share."
        )
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ShapeError(
            f"{name} has rows that are not of one length, so it is no table. Fill or drop some."
        ) from error


def _refuse_dtype(array: npt.NDArray[np.generic], name: str) -> None:
    """Raise DtypeError unless float64 holds every entry of `array` exactly."""
    kind, order = array.dtype.kind, array.dtype.byteorder
    if kind == "c":
        reason = "Complex data not supported: the method is defined for real numbers"
    elif kind not in "fiub":
        reason = f"dtype {array.dtype} holds something else than numbers"
    elif order not in {"=", "|", _NATIVE}:
        reason = f"dtype {array.dtype} has the byte order of another machine"
    elif kind == "f" and array.dtype.itemsize > np.dtype(np.float64).itemsize:
        reason = f"dtype {array.dtype} is wider than float64"
    elif kind in "iu" and array.size and _too_large(array):
        reason = "it holds integers above 2**53, which float64 would round"
    else:
        return
    raise DtypeError(
        f"{name} cannot be used: {reason}, and cobasis never casts silently. "
        "Convert it to float64 yourself, where you can see what happens to the values."
    )


def _too_large(array: npt.NDArray[np.generic]) -> bool:
    """Whether some integer of `array` is out of float64's exact range."""
    return int(array.max()) > EXACT_INTEGER or int(array.min()) < -EXACT_INTEGER


EPS = float(np.finfo(np.float64).eps)

ORTHONORMAL = 1e-10
"""How far C' C may be from I in columns that are called orthonormal."""

_WELL = 1e-3
"""Reciprocal condition number down to which a Gram matrix costs a cosine at most 1e-10."""


@dataclass(frozen=True, kw_only=True)
class RightSingular:
    """Leading right singular vectors of a table, and its numerical rank."""

    directions: Matrix  # orthonormal, strongest first
    singular_values: Matrix
    rank: int  # how many stand above rounding; the directions after that are LAPACK's filling


def right_singular(table: Matrix) -> RightSingular:
    """Return all right singular vectors of `table`, uncentred."""
    _, values, right = np.linalg.svd(table, full_matrices=False)
    return RightSingular(
        directions=right.T, singular_values=values, rank=numerical_rank(values, table.shape)
    )


def numerical_rank(singular_values: Matrix, shape: tuple[int, ...]) -> int:
    """Count the singular values above ``max(shape) * eps * largest``."""
    return int(np.count_nonzero(singular_values > max(shape) * EPS * singular_values[0]))


def principal_cosines(first: Matrix, second: Matrix) -> Matrix:
    """Return the cosines of the principal angles between two column spans."""
    return cosines_to(np.linalg.qr(first)[0], second)


def cosines_to(axes: Matrix, columns: Matrix) -> Matrix:
    """Return `principal_cosines` to a span of which `axes` is an orthonormal basis.

    Well-conditioned columns go by the Cholesky factor R of their Gram matrix: Q is ``C R^-1``.
    """
    found = triangle_of(columns, least=_WELL)
    if found:
        seen = solve_triangular(found[0], columns.T @ axes, trans=1, check_finite=False)
    else:
        seen = np.linalg.qr(columns)[0].T @ axes
    return np.clip(np.linalg.svd(seen, compute_uv=False), 0.0, 1.0)


def orthonormality_defect(columns: Matrix) -> float:
    """Return ``max |C' C - I|``, zero for orthonormal columns."""
    gram = columns.T @ columns
    return float(np.max(np.abs(gram - np.eye(gram.shape[0]))))


def complete_orthonormal(columns: Matrix, extra: Matrix) -> Matrix:
    """Append directions of `extra` to orthonormal `columns`, made orthogonal to them."""
    rest = extra
    for _ in range(2):
        rest = np.linalg.qr(rest - columns @ (columns.T @ rest))[0]
    return np.hstack([columns, rest])


class Hidden:
    """Refuses to be printed, pickled or copied; what it holds can only be used."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide the value."""
        return f"<{type(self).__name__}, hidden>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise SecretError(
            f"a {type(self).__name__} does not travel: pickle and copy would put it into files and "
            "processes that nobody protects. Keep the object where it was made."
        )

    def __reduce__(self) -> NoReturn:
        """Refuse, as above."""
        self.__reduce_ex__(2)

    def __getstate__(self) -> NoReturn:
        """Refuse, as above."""
        self.__reduce_ex__(2)


WELL = 1e-5
"""Reciprocal condition number down to which a Gram matrix tells a third of all digits."""


def triangle_of(table: Matrix, *, least: float = WELL) -> tuple[Matrix, float] | None:
    """Return the Cholesky factor of ``W' W`` and how well it is conditioned.

    R has a relative error of about the squared condition number times 2e-16.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gram = table.T @ table
    if not np.isfinite(np.trace(gram)):
        return None
    triangle, failed = dpotrf(gram)
    if failed:
        return None
    condition = float(dtrcon(triangle)[0])
    return (triangle, condition) if condition > least else None
