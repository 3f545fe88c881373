"""The columns that an agreement can hold, their products, and the constants that all share.

Centre and scale are constants of the agreement. A party that centred by its own mean would add an
offset that no change of basis can undo. What stands for a missing number is a constant as well,
and not the mean of one party's rows. A category is a closed vocabulary of words, the same for all.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations, pairwise
from math import prod
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Discriminator, Field, Tag, model_validator

from cobasis.errors import FeatureError, OptionError
from cobasis.strict_json import IF_ANY, Strict

Finite = Annotated[float, Field(allow_inf_nan=False)]
ColumnName = Annotated[str, Field(min_length=1, max_length=200)]
# Absent and not null where nothing is agreed: older agreements keep their digest.
Source = Annotated[str, Field(max_length=200), IF_ANY]
BlankShare = Annotated[float | None, Field(ge=0, le=1, exclude_if=lambda share: share is None)]


def day_in(unit: str) -> date | None:
    """Return since which day a unit counts days, if it does."""
    named = re.search(r"days since (\d{4}-\d\d-\d\d)", unit)
    return date.fromisoformat(named[1]) if named else None


class NumericFeature(Strict):
    """One numeric column of the agreement: ``(value - centre) / scale`` goes into the round.

    Attributes
    ----------
    name : str
        The column's name.
    centre, scale : float
        Public constants, the scale above zero.
    unit : str
        What a 1 stands for, in words; nothing is converted.
    low, high : float or None
        What values lie between; the check before an upload leaves refuses others.
    missing : {"refuse", "fill"}
        Whether a party may have cells without a number.
    fill : float or None
        What stands for them, in the column's unit; given if missing is "fill", and only then.
    blanks_at_most : float or None
        The share of empty cells, from 0 to 1, above which a party is asked whether that is right.
    source : str
        Where the constants come from.
    knots : tuple of float
        Three or more, rising: the number enters as a natural cubic spline through them, linear
        beyond the outer ones, in a column for each but the first: 1 at its own knot, 0 at others.

    Notes
    -----
    **Who sees what.** Public: a field of the agreement. Take the constants from a code book, and
    not from the rows of one party.

    **Cost.** None.
    """

    name: ColumnName
    kind: Literal["number"] = "number"
    centre: Finite = 0.0
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    unit: Annotated[str, Field(max_length=100)] = ""
    low: Finite | None = None
    high: Finite | None = None
    missing: Literal["refuse", "fill"] = "refuse"
    fill: Finite | None = None
    blanks_at_most: BlankShare = None
    source: Source = ""
    knots: Annotated[tuple[Finite, ...], IF_ANY] = ()

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.knots and not (len(self.knots) > 2 and all(a < b for a, b in pairwise(self.knots))):  # noqa: PLR2004 -- two make a line
            raise ValueError(f"knots={self.knots} are to be three or more, and to rise")
        if (self.missing == "fill") != (self.fill is not None):
            raise ValueError('missing="fill" goes with a number in fill, and only with one')
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low={self.low} is above high={self.high}")
        day_in(self.unit)  # raises ValueError where there is no such day
        return self

    def __repr_args__(self) -> "Iterable[tuple[str | None, Any]]":
        told = {"name", "centre", "scale", *self.model_dump(exclude_defaults=True)}
        return [(name, value) for name, value in self if name in told]


Word = Annotated[str, Field(min_length=1, max_length=200)]

UNKNOWN, MISSING = -1, -2
"""The codes of cells that the agreement has no place for."""


class CategoryFeature(Strict):
    """One column of words: each agreed word has a column of zeros and ones in the round.

    Attributes
    ----------
    name : str
        The column's name.
    values : tuple of str
        The vocabulary, from 1 to 1000 words, told apart by every letter and blank.
    unknown : {"refuse", "other"}
        Whether a party may have other words, which then share one column more.
    missing : {"refuse", "level"}
        Whether a party may have empty cells, which then have one column more.
    blanks_at_most : float or None
        The share of empty cells, from 0 to 1, above which a party is asked whether that is right.
    base : str or None
        The word that has no column of its own. The columns of all levels add up to one in every
        row, so of two categories with all their columns one column follows from the others.
    source : str
        Where the words come from.

    Notes
    -----
    **Who sees what.** Public: a field of the agreement. **Cost.** None.

    Examples
    --------
    >>> ward = CategoryFeature(name="ward", values=("icu", "surgery"), missing="level")
    >>> ward.levels, ward.code("surgery"), ward.code(""), ward.code("Surgery")
    (('icu', 'surgery', None), 1, 2, -1)
    >>> width_of([ward, CategoryFeature(name="sex", values=("female", "male"), base="female")])
    4
    """

    name: ColumnName
    kind: Literal["category"] = "category"
    values: Annotated[tuple[Word, ...], Field(min_length=1, max_length=1000)]
    unknown: Literal["refuse", "other"] = "refuse"
    missing: Literal["refuse", "level"] = "refuse"
    blanks_at_most: BlankShare = None
    base: Annotated[Word | None, IF_ANY] = None
    source: Source = ""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if len(set(self.values)) != len(self.values):
            raise ValueError("values holds a word more than once")
        if self.base is not None and (self.base not in self.values or len(self.levels) == 1):
            raise ValueError(f"base={self.base!r} is to be one of several levels, a word of values")
        return self

    @property
    def levels(self) -> tuple[str | None, ...]:
        """What a cell may stand for: the words, ``""`` for all others, None for empty cells."""
        other = ("",) if self.unknown == "other" else ()
        empty = (None,) if self.missing == "level" else ()
        return (*self.values, *other, *empty)

    def code(self, cell: object) -> int:
        """Return the position of a cell's level, -1 for an unknown word, -2 for an empty cell."""
        word = word_of(cell)
        if word is None:
            return len(self.levels) - 1 if self.missing == "level" else MISSING
        if word in self.values:
            return self.values.index(word)
        return len(self.values) if self.unknown == "other" else UNKNOWN


class Interaction(Strict):
    """The products of the columns of some features, which all stand before it."""

    kind: Literal["interaction"] = "interaction"
    of: Annotated[tuple[ColumnName, ...], Field(min_length=2, max_length=4)]

    @property
    def name(self) -> str:
        return ":".join(self.of)


def word_of(cell: object) -> str | None:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or cell == "" or cell != cell:  # noqa: PLR0124 -- only NaN is not itself
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _kind(feature: object) -> str | None:
    """Return what a feature says it is; a table without a word of it is a number."""
    told = getattr(feature, "kind", None)
    if isinstance(feature, Mapping):
        told = feature.get("kind", "number")
    return told if isinstance(told, str) else None


Feature: TypeAlias = Annotated[
    Annotated[NumericFeature, Tag("number")]
    | Annotated[CategoryFeature, Tag("category")]
    | Annotated[Interaction, Tag("interaction")],
    Discriminator(_kind),
]

Column: TypeAlias = NumericFeature | CategoryFeature


def numeric_features(
    names: Iterable[str], *, centre: npt.ArrayLike = 0.0, scale: npt.ArrayLike = 1.0
) -> tuple[NumericFeature, ...]:
    """Make a tuple of numeric features from names and constants.

    Parameters
    ----------
    names : iterable of str
        Column names in their order.
    centre, scale : float or array-like of shape (n_features,)
        Public constants.

    Returns
    -------
    tuple of NumericFeature
        For ``Agreement(features=...)``.

    Raises
    ------
    FeatureError
        An empty name, a scale that is not above zero, or constants of another shape.

    Notes
    -----
    **Who sees what.** The constants are public, as of `NumericFeature`. **Cost.** None.

    Examples
    --------
    >>> numeric_features(["age"], centre=60, scale=20)
    (NumericFeature(name='age', centre=60.0, scale=20.0),)
    """
    listed = list(names)
    try:
        centres = np.broadcast_to(np.asarray(centre, dtype=np.float64), len(listed))
        scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), len(listed))
        return tuple(
            NumericFeature(name=str(name), centre=float(middle), scale=float(unit))
            for name, middle, unit in zip(listed, centres, scales, strict=True)
        )
    except ValueError as error:
        raise FeatureError(
            f"these {len(listed)} features need names, and one finite centre and one scale above "
            "zero for all or for each. Correct the constants."
        ) from error


def listed_features(features: Iterable[Feature]) -> tuple[Feature, ...]:
    listed = tuple(features)
    other = [each for each in listed if not isinstance(each, Column | Interaction)]
    if other or not listed:
        what = f"holds {other[0]!r:.60}" if other else "is empty"
        raise OptionError(
            f"features {what}, and every column is a NumericFeature or a CategoryFeature. Make "
            "numbers by numeric_features(names), or leave features out to take columns as they are."
        )
    return listed


def columns_in(features: Iterable[Feature]) -> tuple[Column, ...]:
    return tuple(each for each in features if not isinstance(each, Interaction))


def interaction_problems(features: Iterable[Feature]) -> Iterator[str]:
    """Yield which interactions repeat something, or lack a lesser one or a column before them."""
    known: set[frozenset[str]] = set()
    for each in features:
        of = each.of if isinstance(each, Interaction) else (each.name,)
        some = (part for size in range(1, len(of)) for part in combinations(of, size))
        if lacking := [":".join(part) for part in some if frozenset(part) not in known]:
            yield f"the interaction {each.name} has no {', '.join(lacking)} before it"
        elif len(of) > 1 and (len({*of}) < len(of) or frozenset(of) in known):
            yield f"the interaction {each.name} is of one column twice, or there twice"
        elif len(of) < max(map(len, known), default=1):
            yield f"{each.name} stands behind an interaction of more columns"
        known.add(frozenset(of))


def formula_of(features: Iterable[Feature]) -> str:
    """Return the formula by which features enter; nothing where each is a column as it is."""
    words: dict[str, str] = {}
    for each in features:
        words[each.name] = each.name
        if isinstance(each, NumericFeature) and each.knots:
            low, *inner, high = (f"{knot:.17g}" for knot in each.knots)
            ends = f"lower_bound={low}, upper_bound={high}"
            words[each.name] = f"cr({each.name}, knots=[{', '.join(inner)}], {ends})"
        elif isinstance(each, Interaction):
            words[each.name] = ":".join(map(words.__getitem__, each.of))
    entering = any(getattr(each, "knots", ()) or each.kind == "interaction" for each in features)
    return " + ".join(words.values()) if entering else ""


def with_bases(features: Sequence[Feature], *, centred: bool = False) -> tuple[Feature, ...]:
    """Give every category a base, but the first where rows are not centred and none is constant."""
    found: list[Feature] = []
    whole = centred or any(x.kind == "category" and len(x.levels) == 1 for x in features)
    for each in features:
        if isinstance(each, CategoryFeature) and each.base is None and len(each.levels) > 1:
            each = each.model_copy(update={"base": each.values[0]}) if whole else each  # noqa: PLW2901
            whole = True
        found.append(each)
    return tuple(found)


def width_of(features: Iterable[Feature]) -> int:
    found: dict[str, int] = {}
    total = 0
    for each in features:
        width = 1
        if isinstance(each, Interaction):
            width = prod(found.get(name, 0) for name in each.of)
        elif isinstance(each, CategoryFeature):
            width = len(each.levels) - (each.base is not None)
        elif each.knots:
            width = len(each.knots) - 1
        found[each.name] = width
        total += width
    return total
