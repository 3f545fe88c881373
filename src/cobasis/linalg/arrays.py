"""Arrays as callers hand them in, checked and never cast silently."""

import sys

import numpy as np
import numpy.typing as npt

from cobasis.errors import DtypeError, NotFiniteError, ShapeError

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
    if type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == 2:  # noqa: PLR2004
        _refuse_shape(values, name, columns)
        return values
    array = _as_array(values, name)
    _refuse_dtype(array, name)
    _refuse_shape(array, name, columns)
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


def _refuse_shape(array: npt.NDArray[np.generic], name: str, columns: int | None) -> None:
    """Raise ShapeError unless `array` is a non-empty table of the right width."""
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
