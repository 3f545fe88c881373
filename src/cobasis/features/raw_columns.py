"""Raw columns of any data frame, through narwhals: numbers as they are, words as codes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cobasis.errors import DtypeError, FeatureError
from cobasis.features.category import MISSING, CategoryFeature
from cobasis.linalg.arrays import EXACT_INTEGER

if TYPE_CHECKING:
    import narwhals as nw

Array = npt.NDArray[Any]

SHOWN = 5
"""How many names or words a message shows."""


def as_frame(table: object) -> "nw.DataFrame[Any] | None":
    """Return a data frame in memory in narwhals' clothes, or None for whatever else."""
    import narwhals as nw  # noqa: PLC0415 -- 0.1 s that `import cobasis` does not take

    found = nw.from_native(table, eager_only=True, pass_through=True)
    return found if isinstance(found, nw.DataFrame) else None


def column_names(table: object) -> tuple[str, ...] | None:
    """Return the names of a data frame's columns, or None where there are none."""
    frame = as_frame(table) if hasattr(table, "columns") else None
    names = list(getattr(table, "columns", ()) if frame is None else frame.columns)
    named = sum(isinstance(name, str) for name in names)
    if named not in {0, len(names)}:
        raise FeatureError(
            f"{named} of the {len(names)} columns have a name that is text, so they cannot be "
            "compared with another table's. Write X.columns = X.columns.astype(str)."
        )
    return tuple(names) if named else None


def is_number(dtype: "nw.dtypes.DType") -> bool:
    """Whether every value of a column is a number that NumPy has a type for."""
    import narwhals as nw  # noqa: PLC0415 -- as above

    large = dtype in {nw.Int128, nw.UInt128}
    return dtype.is_float() or dtype == nw.Boolean or (dtype.is_integer() and not large)


def is_wordlike(dtype: "nw.dtypes.DType") -> bool:
    """Whether a column may hold a category: text, numbers for words, booleans."""
    import narwhals as nw  # noqa: PLC0415 -- as above

    return is_number(dtype) or isinstance(dtype, nw.String | nw.Categorical | nw.Enum | nw.Object)


def numbers_of(series: "nw.Series[Any]", *, what: str) -> Array:
    """Return a column of numbers, NaN where there is none."""
    import narwhals as nw  # noqa: PLC0415 -- as above

    empty = series.null_count()
    if empty == len(series):  # of whatever type: a column that a site does not keep at all
        return np.full(len(series), np.nan)
    if not is_number(series.dtype):
        raise DtypeError(
            f"column '{series.name}' of {what} is of type {series.dtype} and no number. Only "
            "integers of up to 64 bits, floats and booleans are read, and cobasis never casts "
            "silently. Convert it yourself, or make it a CategoryFeature."
        )
    wide = series.dtype in {nw.Int64, nw.UInt64}
    if wide and (series.min() < -EXACT_INTEGER or series.max() > EXACT_INTEGER):
        raise rounded(series.name, what=what)
    if empty or series.dtype == nw.Boolean:
        series = series.cast(nw.Float64)
    return series.to_numpy()


def rounded(column: str, *, what: str) -> DtypeError:
    """Return the error for a column of integers that float64 would round."""
    msg = (
        f"column '{column}' of {what} holds integers above 2**53, which float64 "
        "would round. Convert it to float64 yourself, where you can see what happens; in "
        "a CSV file, write it with a decimal point from the first row on."
    )
    return DtypeError(msg)


def words_of(series: "nw.Series[Any]", feature: CategoryFeature) -> npt.NDArray[np.int16]:
    """Return the codes of a column of words, below zero where the agreement has none."""
    cells = series.to_list()
    if series.null_count():  # what stands for nothing differs from library to library
        empty = series.is_null().to_list()
        cells = [None if none else cell for cell, none in zip(cells, empty, strict=True)]
    codes = {cell: feature.code(cell) for cell in set(cells)}  # a NaN is itself, so it is found
    return np.fromiter(map(codes.__getitem__, cells), dtype=np.int16, count=len(cells))


def refuse_words(series: "nw.Series[Any]", *, what: str) -> None:
    """Raise DtypeError for a column whose type no category is written in."""
    if series.null_count() < len(series) and not is_wordlike(series.dtype):
        raise DtypeError(
            f"column '{series.name}' of {what} is of type {series.dtype}, and a category is text, "
            "whole numbers or booleans. Convert it to text."
        )


def refuse_codes(codes: Array, name: str, *, what: str) -> None:
    """Raise FeatureError for a column with cells that the agreement has no place for."""
    lowest = int(codes.min(initial=0))
    if lowest >= 0:
        return
    has, then = (
        ("empty cells", 'Drop those rows, or agree on missing = "level"')
        if lowest == MISSING
        else (
            "words that are not agreed",
            'Correct them, or agree on them or on unknown = "other"',
        )
    )
    raise FeatureError(
        f"column '{name}' of {what} has {has}, so its rows cannot be encoded as the others' are. "
        f"{then}."
    )


def refuse_names(names: Sequence[str], expected: Sequence[str], *, party: str) -> None:
    """Raise FeatureError unless `names` are exactly `expected`, in that order."""
    if list(names) == list(expected):
        return
    given, agreed = set(names), set(expected)
    missing = [name for name in expected if name not in given]
    unknown = [name for name in names if name not in agreed]
    if missing or unknown:
        reason = f"missing {_short(missing)}; not agreed {_short(unknown)}"
    elif len(names) != len(expected):
        reason = f"{len(names)} columns, some of one name, where {len(expected)} are agreed"
    else:
        first = next(i for i, (a, b) in enumerate(zip(names, expected, strict=False)) if a != b)
        reason = f"column {first + 1} is '{names[first]}', agreed is '{expected[first]}'"
    raise FeatureError(
        f"the columns of party '{party}' are not the agreement's: {reason}. Every party needs the "
        "same features in the same order, or its rows mean something else. Select and order them."
    )


def _short(names: Sequence[str]) -> str:
    """Return at most five names."""
    listed = ", ".join(f"'{name}'" for name in names[:SHOWN]) or "none"
    return f"{listed} and {len(names) - SHOWN} more" if len(names) > SHOWN else listed
