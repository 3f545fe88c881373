"""The encoded columns of features: the one place that turns cells into numbers.

Arrays, data frames, batches of a file and the chain for raw rows all go through what stands
here. Everything is a constant of the agreement; nothing is learned from rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Discriminator, Tag

from cobasis.errors import FeatureError, NotFiniteError, OptionError, ShapeError
from cobasis.features.category import CategoryFeature
from cobasis.features.numeric import NumericFeature
from cobasis.features.raw_columns import (
    SHOWN,
    Array,
    as_frame,
    numbers_of,
    refuse_codes,
    refuse_names,
    refuse_words,
    words_of,
)
from cobasis.linalg.arrays import Matrix, as_matrix, as_table

if TYPE_CHECKING:
    import narwhals as nw

LARGEST = 1e50
"""Above this, sums of squares and cubes over the rows would not stay finite."""


def _kind(feature: object) -> str | None:
    """Return what a feature says it is; a table without a word of it is a number."""
    given = (
        feature.get("kind", "number")
        if isinstance(feature, Mapping)
        else getattr(feature, "kind", None)
    )
    return given if isinstance(given, str) else None


Feature: TypeAlias = Annotated[
    Annotated[NumericFeature, Tag("number")] | Annotated[CategoryFeature, Tag("category")],
    Discriminator(_kind),
]
"""Either kind of feature, told by ``kind``."""


@dataclass(frozen=True, kw_only=True)
class EncodedColumn:
    """One column of what enters the round."""

    name: str  # for people: age, sex=female, ward: any other, ward: missing
    feature: NumericFeature | CategoryFeature
    level: int | None = None  # None for a number; else the position in the feature's levels


def encoded_columns(
    features: Iterable[NumericFeature | CategoryFeature],
) -> tuple[EncodedColumn, ...]:
    """Describe the columns that features become, in their order."""
    return tuple(column for feature in features for column in _columns_of(feature))


def _columns_of(feature: NumericFeature | CategoryFeature) -> list[EncodedColumn]:
    if isinstance(feature, NumericFeature):
        return [EncodedColumn(name=feature.name, feature=feature)]
    words = {"": ": any other", None: ": missing"}
    return [
        EncodedColumn(
            name=feature.name + words.get(level, f"={level}"), feature=feature, level=position
        )
        for position, level in enumerate(feature.levels)
    ]


def listed_features(
    features: Iterable[NumericFeature | CategoryFeature],
) -> tuple[NumericFeature | CategoryFeature, ...]:
    """Return features as a tuple, unless there are none or something else is among them."""
    listed = tuple(features)
    other = [each for each in listed if not isinstance(each, NumericFeature | CategoryFeature)]
    if other or not listed:
        what = f"holds {other[0]!r:.60}" if other else "is empty"
        raise OptionError(
            f"features {what}, and every column is a NumericFeature or a CategoryFeature. Make "
            "numbers by numeric_features(names), or leave features out to take columns as they are."
        )
    return listed


def width_of(features: Iterable[NumericFeature | CategoryFeature]) -> int:
    """Return how many columns features become: m."""
    return sum(1 if isinstance(each, NumericFeature) else len(each.levels) for each in features)


class Scaling:
    """``(value - centre) / scale`` of one number or of a whole table of them."""

    def __init__(self, features: Sequence[NumericFeature]) -> None:
        self._centre = np.array([feature.centre for feature in features])
        self._scale = np.array([feature.scale for feature in features])
        fills = [feature.fill for feature in features]
        self._fill = np.array([np.nan if fill is None else fill for fill in fills])
        self.fills = any(fill is not None for fill in fills)
        self._shifts = bool(self._centre.any())
        self._stretches = bool((self._scale != 1).any())

    def put(self, values: Array, out: Matrix) -> None:
        """Write values on the agreed scale, NaN filled where that is agreed."""
        with np.errstate(over="ignore", invalid="ignore"):
            np.copyto(out, values)
            if self.fills:
                np.copyto(out, self._fill, where=np.isnan(out))
            if self._shifts:
                np.subtract(out, self._centre, out=out)
            if self._stretches:
                np.divide(out, self._scale, out=out)


class Encoder:
    """All features' encoding, to be applied column by column and block by block."""

    def __init__(self, features: Iterable[NumericFeature | CategoryFeature]) -> None:
        self.features = tuple(features)
        self.width = width_of(self.features)
        self._scaling = cache(self._scaling_of)

    @property
    def names(self) -> list[str]:
        """The raw columns' names, in their order."""
        return [feature.name for feature in self.features]

    def read(self, frame: "nw.DataFrame[Any]", *, what: str) -> list[Array]:
        """Return the raw columns of a frame as arrays: numbers, and the codes of categories."""
        floating = {name for name, kind in frame.schema.items() if kind.is_float()}
        found: list[Array] = []

        def is_float(feature: NumericFeature | CategoryFeature) -> bool:
            return isinstance(feature, NumericFeature) and feature.name in floating

        for floats, run in groupby(self.features, is_float):
            if floats:
                found.append(frame[[each.name for each in run]].to_numpy().T)
                continue
            for each in run:
                series = frame.get_column(each.name)
                if isinstance(each, NumericFeature):
                    found.append(numbers_of(series, what=what))
                    continue
                refuse_words(series, what=what)
                found.append(words_of(series, each))
                refuse_codes(found[-1], each.name, what=what)
        return found

    def put(self, columns: Iterable[Array], out: Matrix) -> bool:
        """Write raw columns, encoded, into the rows of `out`."""
        at = done = 0
        for column in columns:
            feature, count = self.features[done], len(column) if column.ndim > 1 else 1
            if isinstance(feature, CategoryFeature):
                for position in range(len(feature.levels)):
                    np.equal(column, position, out=out[at + position])
                at += len(feature.levels)
            else:
                self._scaling(done, count).put(np.atleast_2d(column).T, out[at : at + count].T)
                at += count
            done += count
        if done != len(self.features):
            raise ValueError(f"columns of {done} features in place of {len(self.features)}")
        flat = out.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = float(flat @ flat)
            return squares <= LARGEST**2 or bool(np.abs(out).max() <= LARGEST)

    def _scaling_of(self, first: int, count: int) -> Scaling:
        """Return that of some numbers that follow each other."""
        run = self.features[first : first + count]
        return Scaling([each for each in run if isinstance(each, NumericFeature)])


def encode(
    rows: npt.ArrayLike,
    features: Sequence[NumericFeature | CategoryFeature],
    *,
    party: str,
) -> Matrix:
    """Check a party's rows against the features and encode them."""
    what = f"the rows of party '{party}'"
    # what another library calls columns may be the cells themselves, as pyarrow does
    frame = as_frame(rows) if hasattr(rows, "columns") else None
    names = getattr(rows if frame is None else frame, "columns", None)
    if names is not None:
        refuse_names([str(name) for name in names], [each.name for each in features], party=party)
    if frame is not None:
        encoder = Encoder(features)
        return _of_columns(encoder.read(frame, what=what), encoder, name=what)
    numbers = [each for each in features if isinstance(each, NumericFeature)]
    if len(numbers) < len(features):
        words = next(each.name for each in features if isinstance(each, CategoryFeature))
        raise FeatureError(
            f"{what} are no data frame, and the agreement has categories ('{words}'), which an "
            "array has no place for. Give a data frame, with the agreement's columns by name."
        )
    scaling = Scaling(numbers)
    check = as_table if scaling.fills else as_matrix
    table = check(rows, name=what, columns=len(numbers))
    encoded: Matrix = np.empty_like(table)
    scaling.put(table, encoded)
    if scaling.fills:
        as_matrix(encoded, name=what)
    refuse_huge(encoded, name=what)
    return encoded


def _of_columns(raw: list[Array], encoder: Encoder, *, name: str) -> Matrix:
    """Encode a frame's columns."""
    n_rows = raw[0].shape[-1]
    if not n_rows:
        raise ShapeError(f"{name} are empty: 0 rows. Leave the party out, or give it rows.")
    out = np.empty((encoder.width, n_rows))
    if not encoder.put(raw, out):
        raise not_whole(name, bad_cells(raw, encoder), n_rows=n_rows)
    return out.T


def bad_cells(raw: list[Array], encoder: Encoder) -> dict[str, int]:
    """Count, for each column of numbers, the cells that nothing stands for."""
    counts = {}
    columns = (column for each in raw for column in np.atleast_2d(each))
    for feature, column in zip(encoder.features, columns, strict=True):
        if isinstance(feature, NumericFeature):
            fine = np.isfinite(column)
            if feature.missing == "fill":
                fine |= np.isnan(column)
            counts[feature.name] = int(len(column) - np.count_nonzero(fine))
    return counts


def refuse_huge(table: Matrix, *, name: str) -> None:
    """Raise NotFiniteError for a scaled table whose squares would not stay finite."""
    if not max(table.max(), -table.min()) <= LARGEST:
        raise too_large(name)


def too_large(name: str) -> NotFiniteError:
    """Return the error for entries whose squares would leave float64's range."""
    msg = (
        f"an entry of {name} is above {LARGEST:.0e} after centre and scale, so sums of "
        "squares leave float64's range. Agree on scales that suit the units."
    )
    return NotFiniteError(msg)


def not_whole(name: str, cells: Mapping[str, int], *, n_rows: int) -> NotFiniteError:
    """Return the error for columns that lack numbers, or hold NaN or infinity."""
    found = [f"'{column}' ({n:,} cells)" for column, n in cells.items() if n]
    if not found:
        return too_large(name)
    more = f" and {len(found) - SHOWN} more columns" if len(found) > SHOWN else ""
    msg = (
        f"{name} is missing numbers, or has NaN or infinity, in {', '.join(found[:SHOWN])}{more} "
        f"of {n_rows:,} rows, so no projection of it is defined. Fill or drop them by a rule that "
        'all parties share: missing = "fill" in the agreement\'s feature.'
    )
    return NotFiniteError(msg)
