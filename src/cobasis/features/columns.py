"""The encoded columns of features: the one place that turns cells into numbers.

Arrays, data frames, batches of a file and the graph for raw rows all go through what stands
here. Everything is a constant of the agreement; nothing is learned from rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from pydantic import Discriminator, Tag

from cobasis.features.category import CategoryFeature
from cobasis.features.numeric import NumericFeature
from cobasis.features.reading import Array, codes_of, numbers_of
from cobasis.features.refusals import LARGEST
from cobasis.linalg.arrays import Matrix

if TYPE_CHECKING:
    import narwhals as nw


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
    """One column of what enters the round.

    Attributes
    ----------
    name : str
        For people: ``age``, ``sex=female``, ``ward: any other``, ``ward: missing``.
    feature : NumericFeature or CategoryFeature
        The raw column it is made of.
    level : int or None
        None for a number: NaN becomes ``fill``, then ``(value - centre) / scale``. For a
        category the position in ``feature.levels``: 1 where the cell is of that level, else 0.
    """

    name: str
    feature: NumericFeature | CategoryFeature
    level: int | None = None


def encoded_columns(
    features: Iterable[NumericFeature | CategoryFeature],
) -> tuple[EncodedColumn, ...]:
    """Describe the columns that features become, in their order.

    Examples
    --------
    >>> ward = CategoryFeature(name="ward", values=("icu",), unknown="other", missing="level")
    >>> [column.name for column in encoded_columns([NumericFeature(name="age"), ward])]
    ['age', 'ward=icu', 'ward: any other', 'ward: missing']
    """
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
    """All features' encoding, to be applied column by column and block by block.

    Attributes
    ----------
    features : tuple
        The same.
    width : int
        m, the number of encoded columns.
    """

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
        types, found = frame.schema, list[Array]()

        def is_float(feature: NumericFeature | CategoryFeature) -> bool:
            return isinstance(feature, NumericFeature) and types[feature.name].is_float()

        for floats, run in groupby(self.features, is_float):
            if floats:
                found.append(frame[[each.name for each in run]].to_numpy().T)
                continue
            found += [
                numbers_of(frame.get_column(each.name), what=what)
                if isinstance(each, NumericFeature)
                else codes_of(frame.get_column(each.name), each, what=what)
                for each in run
            ]
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
