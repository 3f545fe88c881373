"""Does a model carry training rows? Then every party that gets it can read the others'.

All parties share one map into the aligned space, so a support vector or a stored neighbour
is a record that each of them can project back with its own ``F_i G_i``.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from cobasis.errors import RowCarryingError
from cobasis.linalg.arrays import Matrix
from cobasis.models import Estimator

_FAMILIES = (
    "sklearn.svm._classes.SVC",
    "sklearn.svm._classes.NuSVC",
    "sklearn.svm._classes.SVR",
    "sklearn.svm._classes.NuSVR",
    "sklearn.svm._classes.OneClassSVM",
    "sklearn.neighbors",
    "sklearn.gaussian_process",
    "sklearn.kernel_ridge",
    "sklearn.semi_supervised",
    "sklearn.kernel_approximation.Nystroem",
    "sklearn.decomposition._kernel_pca",
    "sklearn.cross_decomposition",
    "sklearn.impute._knn",
)
_SHARE_OF_ROWS = 0.01


def refuse_row_carrying(
    estimator: Estimator,
    rows: Matrix | None = None,
) -> None:
    """Refuse an estimator that carries rows, by its family or by what it holds."""
    parts = list(_parts(estimator, seen=set()))
    for part in parts:
        name = f"{type(part).__module__}.{type(part).__qualname__}"
        if name.startswith(_FAMILIES):
            _refuse(f"{type(part).__name__} stores training rows")
    if rows is None:
        return
    known = {row.tobytes() for row in rows}
    for part in parts:
        if isinstance(part, np.ndarray) and _holds(part, known, rows.shape[1]):
            _refuse(f"{type(estimator).__name__} holds training rows in an array of {part.shape}")


def _refuse(reason: str) -> None:
    """Raise the error."""
    raise RowCarryingError(
        f"{reason}: each party could project the others' records back with its own basis. Use "
        "model='rff' (same accuracy, no rows) or 'mlp'; in simulation, allow_row_carrying=True."
    )


def _holds(array: "np.ndarray[Any, Any]", known: set[bytes], width: int) -> bool:
    """Whether at least one in a hundred of `array`'s rows, or columns, is a training row."""
    if array.ndim != 2 or array.dtype != np.float64:  # noqa: PLR2004
        return False
    for table in (array, array.T):
        if table.shape[1] == width and len(table):
            found = sum(row.tobytes() in known for row in np.ascontiguousarray(table))
            if found >= _SHARE_OF_ROWS * len(table):
                return True
    return False


def _parts(value: object, *, seen: set[int]) -> Iterator[object]:
    """Yield `value` and everything inside it, each object once."""
    if id(value) in seen or isinstance(value, str | bytes | int | float):
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list | tuple | set):
        inner = list(value)
    elif isinstance(value, np.ndarray):
        inner = value.ravel().tolist() if value.dtype == object else []
    else:
        inner = list(getattr(value, "__dict__", {}).values())
    for each in inner:
        yield from _parts(each, seen=seen)


def stored_bytes(estimator: Estimator) -> int:
    """Return the bytes of all arrays inside a fitted estimator: what its weights weigh."""
    parts = _parts(estimator, seen=set())
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
