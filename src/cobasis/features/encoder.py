"""Cells that become numbers: the one place, for arrays, data frames, and batches of a file.

Everything is a constant of the agreement; nothing is learned from rows. Data frames of any library
are read through narwhals: numbers as they are, words as codes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product, zip_longest
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy

from cobasis.errors import DtypeError, FeatureError, NotFiniteError, ShapeError
from cobasis.features.contract import (
    UNKNOWN,
    CategoryFeature,
    Feature,
    Interaction,
    NumericFeature,
    columns_in,
)
from cobasis.linalg.arrays import EXACT_INTEGER, Array, Matrix, as_table

if TYPE_CHECKING:
    import narwhals as nw

SHOWN = 5
"""How many names or words a message shows."""


def as_frame(table: object) -> "nw.DataFrame[Any] | None":
    """Return a data frame in memory in narwhals' clothes, or None for whatever else."""
    import narwhals as nw  # noqa: PLC0415 -- 0.1 s that `import cobasis` does not take

    try:
        found = nw.from_native(table, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise FeatureError("X has several columns of one name. Rename or drop them.") from None
    return found if isinstance(found, nw.DataFrame) else None


def column_names(table: object) -> tuple[str, ...] | None:
    frame = as_frame(table) if hasattr(table, "columns") else None
    names = list(getattr(table, "columns", ()) if frame is None else frame.columns)
    named = sum(isinstance(name, str) for name in names)
    if named not in {0, len(names)}:
        raise FeatureError(
            f"{len(names)} columns, of which {named} with a name that is text, cannot be "
            "compared with another table's. Write X.columns = X.columns.astype(str)."
        )
    return tuple(names) if named else None


def is_number(dtype: "nw.dtypes.DType") -> bool:
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
            f"column '{series.name}' of {what} is of type {series.dtype}. As numbers only "
            "integers of up to 64 bits, floats and booleans are read, and cobasis never casts "
            "silently. Convert it yourself, decimals to float64, or make it a CategoryFeature."
        )
    wide = series.dtype in {nw.Int64, nw.UInt64}
    if wide and (series.min() < -EXACT_INTEGER or series.max() > EXACT_INTEGER):
        raise rounded(series.name, what=what)
    if empty or series.dtype == nw.Boolean:
        series = series.cast(nw.Float64)
    return series.to_numpy()


def rounded(column: str, *, what: str) -> DtypeError:
    return DtypeError(
        f"column '{column}' of {what} holds integers above 2**53, which float64 "
        "would round. Convert it to float64 yourself, where you can see what happens; in "
        "a CSV file, write it with a decimal point from the first row on."
    )


def words_of(series: "nw.Series[Any]", feature: CategoryFeature) -> npt.NDArray[np.int16]:
    """Return the codes of a column of words, below zero where the agreement has none."""
    cells = series.to_list()
    if series.null_count():  # what stands for nothing differs from library to library
        empty = series.is_null().to_list()
        cells = [None if none else cell for cell, none in zip(cells, empty, strict=True)]
    codes = {cell: feature.code(cell) for cell in set(cells)}  # a NaN is itself, so it is found
    return np.fromiter(map(codes.__getitem__, cells), dtype=np.int16, count=len(cells))


def _refuse_words(series: "nw.Series[Any]", codes: Array, of: CategoryFeature, what: str) -> None:
    if series.null_count() < len(series) and not is_wordlike(series.dtype):
        raise DtypeError(
            f"column '{series.name}' of {what} is of type {series.dtype}, and a category is text, "
            "whole numbers or booleans. Convert it to text."
        )
    lowest = int(codes.min(initial=0))
    if lowest < 0:
        has, then = "empty cells", 'Drop those rows, or agree on missing = "level"'
        if lowest == UNKNOWN:
            has = f"words that are not agreed (agreed: {quoted(of.values)})"
            then = 'Correct them, or agree on them or on unknown = "other"'
        raise FeatureError(
            f"column '{series.name}' of {what} has {has}, so its rows cannot be encoded as the "
            f"others' are. {then}."
        )


def refuse_names(names: Sequence[str], expected: Sequence[str], *, party: str) -> None:
    if list(names) == list(expected):
        return
    given, agreed = set(names), set(expected)
    missing = [name for name in expected if name not in given]
    unknown = [name for name in names if name not in agreed]
    if missing or unknown:
        reason = f"missing: {quoted(missing)}; not agreed: {quoted(unknown)}"
    else:
        pairs = enumerate(zip_longest(names, expected, fillvalue="nothing"), start=1)
        at, (found, wanted) = next(each for each in pairs if each[1][0] != each[1][1])
        reason = f"column {at} is '{found}', agreed is '{wanted}'"
    raise FeatureError(
        f"the columns of party '{party}' are not the agreement's: {reason}. Every party needs the "
        "same features in the same order, or its rows mean something else. Select and order them."
    )


def quoted(names: Sequence[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names[:SHOWN]) or "none"
    return f"{listed} and {len(names) - SHOWN} more" if len(names) > SHOWN else listed


LARGEST = 1e50
"""Above this, sums of squares and cubes over the rows would not stay finite."""


@dataclass(frozen=True, kw_only=True)
class EncodedColumn:
    name: str  # for people: age, age[60], sex=female, ward: any other, ward: missing, age:sex=f
    feature: Feature
    level: int | None = None  # None for a line; else the position in the feature's levels or knots
    centre: float = 0.0
    scale: float = 1.0
    of: tuple[int, ...] = ()  # of a product: the places of what is multiplied


def encoded_columns(features: Iterable[Feature]) -> tuple[EncodedColumn, ...]:
    found: list[EncodedColumn] = []
    places: dict[str, range] = {}
    words = {"": ": any other", None: ": missing"}
    for feature in features:
        first, name = len(found), feature.name
        if isinstance(feature, Interaction):
            for of in product(*(places.get(each, ()) for each in feature.of)):
                parts = [found[place] for place in of]
                title, scale = ":".join(each.name for each in parts), prod(x.scale for x in parts)
                found.append(EncodedColumn(name=title, feature=feature, scale=scale, of=of))
        elif isinstance(feature, CategoryFeature):
            found += (
                EncodedColumn(name=name + words.get(level, f"={level}"), feature=feature, level=at)
                for at, level in enumerate(feature.levels)
                if level is None or level != feature.base
            )
        elif feature.knots:
            found += (
                EncodedColumn(name=f"{name}[{knot:g}]", feature=feature, level=at)
                for at, knot in enumerate(feature.knots[1:], start=1)
            )
        else:
            constants: Any = {"centre": feature.centre, "scale": feature.scale}
            found.append(EncodedColumn(name=name, feature=feature, **constants))
        places[name] = range(first, len(found))
    return tuple(found)


@lru_cache(maxsize=64)
def spline_through(knots: tuple[float, ...]) -> "scipy.interpolate.CubicSpline":
    """Return natural cubic splines, each 1 at one knot and 0 at others; none for the first."""
    return scipy.interpolate.CubicSpline(knots, np.eye(len(knots))[:, 1:], bc_type="natural")


def bent(values: Array, knots: tuple[float, ...]) -> Matrix:
    """Return the columns of a spline at values: beyond the outer knots it goes on as a line."""
    spline, inner = spline_through(knots), np.clip(values, knots[0], knots[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        beyond: Matrix = (values - inner)[:, np.newaxis] * spline(inner, 1)
        return spline(inner) + beyond


class Encoder:
    """All features' encoding, to be applied column by column and block by block."""

    def __init__(self, features: Iterable[Feature]) -> None:
        whole = tuple(features)
        self.features, self._encoded = columns_in(whole), encoded_columns(whole)
        self.width = len(self._encoded)

    def read(self, frame: "nw.DataFrame[Any]", *, what: str) -> list[Array]:
        found: list[Array] = []
        for each in self.features:
            series = frame.get_column(each.name)
            if isinstance(each, NumericFeature):
                found.append(numbers_of(series, what=what))
            else:
                found.append(words_of(series, each))
                _refuse_words(series, found[-1], each, what=what)
        return found

    @np.errstate(over="ignore", invalid="ignore")
    def put(self, columns: Iterable[Array], out: Matrix) -> bool:
        raw = dict(zip((each.name for each in self.features), columns, strict=True))
        for each, row in zip(self._encoded, out, strict=True):
            feature, cells = each.feature, raw.get(each.feature.name, row)  # a product has none
            if isinstance(feature, NumericFeature) and feature.fill is not None:
                cells = np.where(np.isnan(cells), feature.fill, cells)
            if isinstance(feature, Interaction):
                np.prod(out[[*each.of]], axis=0, out=row)
            elif each.level is None:
                np.subtract(cells, each.centre, out=row, dtype=np.float64)
                np.divide(row, each.scale, out=row)
            elif isinstance(feature, CategoryFeature):
                np.equal(cells, each.level, out=row)
            else:
                if each.level == 1:  # the columns of one spline follow each other
                    curves = bent(cells, feature.knots)
                row[:] = curves[:, each.level - 1]
        flat = out.reshape(-1, order="A")
        return float(flat @ flat) <= LARGEST**2 or bool(np.abs(out).max() <= LARGEST)

    def not_whole(self, columns: Iterable[Array], *, what: str) -> NotFiniteError:
        bad = [
            each.name
            for each, column in zip(self.features, columns, strict=True)
            if isinstance(each, NumericFeature)
            and not (np.isfinite(column) | (np.isnan(column) & (each.missing == "fill"))).all()
        ]
        if not bad:
            return too_large(what)
        return NotFiniteError(
            f"{what} is missing numbers, or has NaN or infinity, in {quoted(bad)}, so no "
            "projection of it is defined. Fill or drop them by a rule that all parties share: "
            'missing = "fill" and a number in fill, in the feature.'
        )


def encode(
    rows: npt.ArrayLike, features: Sequence[Feature], *, party: str, table: str = "table"
) -> Matrix:
    what = f"the {table} of party '{party}'"
    # what another library calls columns may be the cells themselves, as pyarrow does
    frame = as_frame(rows) if hasattr(rows, "columns") else None
    names = getattr(rows if frame is None else frame, "columns", None)
    if names is not None:
        agreed = [each.name for each in columns_in(features)]
        refuse_names([str(name) for name in names], agreed, party=party)
    encoder = Encoder(features)
    if frame is not None:
        raw = encoder.read(frame, what=what)
    elif words := [each.name for each in features if isinstance(each, CategoryFeature)]:
        raise FeatureError(
            f"{what} is no data frame, and the agreement has categories ('{words[0]}'), which an "
            "array has no place for. Give a data frame, with the agreement's columns by name."
        )
    else:
        cells = as_table(rows, name=what, columns=len(encoder.features))
        raw = [*np.ascontiguousarray(cells.T)]  # one pass, where each column would be one
    n_rows = len(raw[0])
    if not n_rows:
        raise ShapeError(f"{what} is empty: 0 rows. Leave the party out, or give it rows.")
    out = np.empty((encoder.width, n_rows))
    if not encoder.put(raw, out):
        raise encoder.not_whole(raw, what=what)
    return out.T


def too_large(name: str) -> NotFiniteError:
    return NotFiniteError(
        f"an entry of {name} is above {LARGEST:.0e} after centre and scale, so sums of "
        "squares leave float64's range. Agree on scales that suit the units."
    )
