"""The baseline table: counts, means and histograms of columns, over all parties' rows.

A round of its own sums a few numbers of each row: a one; of a number its value and its square, on
the agreed range, and a one in its bin; of a word a one at its level; of a time a one in its
interval of an agreed grid, among events or among those lost; where rows have weights a one if it
is above 0, the weight, its square, and its products with values and ones. Nothing else of two
columns together is summed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from cobasis.errors import FeatureError
from cobasis.features.contract import CategoryFeature, Column, NumericFeature, width_of
from cobasis.features.maps import range_of
from cobasis.features.outcome import VALUE, Records, part_of
from cobasis.linalg.arrays import Integers, Mask, Matrix
from cobasis.protocol.curves import Curves, curves_of
from cobasis.protocol.totals import ROUNDING, AnyLayout, cut, n_small, require
from cobasis.strict_json import IF_ANY, Strict

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement

_KNOWN = 10_000
"""So many units of squares a row are known to that part: cutting loses less than one a row."""

_CONSTANT = 1e-5
"""A standard deviation below this share of half the range is none: numbers were cut before."""

Figures = tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class TableLayout(AnyLayout):
    """Group by group, a one for each row and then column by column."""

    FORMAT = "cobasis/table/1"
    LATER = ("grid", "most_weight")
    ELSEWHERE = ("features",)
    features: tuple[Column, ...]
    n_bins: int
    n_groups: int
    grid: tuple[float, ...] = ()  # where intervals of time end; none without curves
    most_weight: float = 0.0  # that a row may have; 0 where rows have none

    @property
    def n_numbers(self) -> int:
        return sum(isinstance(each, NumericFeature) for each in self.features)

    @property
    def n_counted(self) -> int:
        """How many sums of a group take each row once; those by weight stand behind them."""
        more = self.n_numbers * (self.n_bins + 1) + 2 * len(self.grid)
        return 1 + width_of(self.features) + more

    @property
    def n_features(self) -> tuple[int, ...]:
        by_weight = 3 + width_of(self.features) + self.n_numbers if self.most_weight else 0
        return (self.n_counted - 1 + by_weight,)

    @property
    def n_words(self) -> int:
        return self.n_groups * (1 + self.n_features[0])

    def parts(self, sums: Integers) -> Iterator[tuple[Column, Integers, Integers, Integers]]:
        """Yield each column, its moments (of words none), cells and sums by weight, by group."""
        table, at, weighed = sums.reshape(self.n_groups, -1), 1, self.n_counted + 3
        for each in self.features:
            first = at + 2 * isinstance(each, NumericFeature)
            stop = first + (self.n_bins if first > at else width_of([each]))
            last = weighed + (2 if first > at else width_of([each]))
            cells, more = table[:, first:stop], table[:, weighed:last]
            if isinstance(each, CategoryFeature) and each.base is not None:
                cells = _with_base(cells, each, whole=table[:, 0])
                more = _with_base(more, each, whole=self.weights(sums)[:, 1]) if more.size else more
            yield each, table[:, at:first], cells, more
            at, weighed = stop, last

    def weights(self, sums: Integers) -> Integers:
        """Return by groups how many weights are above 0, and the sums of these and their squares.

        Groups x 3; without weights x 0.
        """
        return sums.reshape(self.n_groups, -1)[:, self.n_counted : self.n_counted + 3]

    def leavers(self, sums: Integers) -> Integers:
        """Return counts of events and of those lost, by groups x 2 x intervals."""
        size = len(self.grid)
        found = sums.reshape(self.n_groups, -1)[:, self.n_counted - 2 * size : self.n_counted]
        return found.reshape(self.n_groups, 2, size) >> self.bits

    def added(self, rows: Matrix, labels: Records) -> Integers:
        parts, at = [ones := np.ones((len(rows), 1))], 0
        weights = part_of(labels, "weight")
        share = ones if weights is None else weights[:, None] / (self.most_weight or 1.0)
        by_weight = [ones, share]
        for each in self.features:
            some = rows[:, at : at + width_of([each])]
            at += some.shape[1]
            if isinstance(each, NumericFeature):
                some = _summands(some, each, n_bins=self.n_bins)
                known = some[:, 2:].sum(axis=1)
                by_weight.append(np.column_stack([known, some[:, 0]]))
            else:
                by_weight.append(some)
            parts.append(some)
        time, event, size = part_of(labels, "time"), part_of(labels, "event"), len(self.grid)
        if time is not None and event is not None:
            # A time is as if rounded up; with one behind the grid a row is followed to its end.
            place = np.searchsorted(self.grid, time, side="left")
            left = np.where(place < size, place + size * (event == 0), 2 * size)
            parts.append(np.eye(2 * size + 1)[left, :-1])  # among events, or among those lost
        if self.most_weight:
            parts += [np.sign(share), *(share * each for each in by_weight)]
        whole = cut(np.hstack(parts), bits=self.bits).astype(np.int64)
        groups = labels if labels.dtype.names is None else labels[VALUE]
        return np.concatenate([whole[groups == at].sum(axis=0) for at in range(self.n_groups)])

    def small_cells(self, sums: Integers) -> int:
        cells = [each for _, _, each, _ in self.parts(sums)]
        counts, weighed = sums.reshape(self.n_groups, -1)[:, :1], self.weights(sums)[:, :1]
        cells += [weighed, counts - weighed] if self.most_weight else []
        left = self.leavers(sums).sum(axis=1)  # in each interval, by groups
        return n_small(np.hstack([np.hstack(cells) >> self.bits, left]))


def _with_base(levels: Integers, each: CategoryFeature, *, whole: Integers) -> Integers:
    """Add the base, which has no column of its own: what the others leave of the whole."""
    return np.insert(levels, each.code(each.base), whole - levels.sum(axis=1), axis=1)


def _summands(column: Matrix, each: NumericFeature, *, n_bins: int) -> Matrix:
    """Return value, square and bin of numbers; all 0 where the agreed fill stands for a blank."""
    low, high = range_of(each)
    values = column[:, 0] * each.scale + each.centre
    placed = (2 * values - low - high) / (high - low)
    fill = np.inf if each.fill is None else each.fill  # outside the range, so no value's
    blank = np.abs(values - fill) <= ROUNDING * (high - low)
    if not (np.abs(placed[~blank]) <= 1 + ROUNDING).all():
        raise FeatureError(
            f"column '{each.name}' has values outside its agreed range from {low:g} to {high:g}, "
            "so its sum would have no bound. Correct them, or agree on a range that holds them."
        )
    placed = np.where(blank, 0.0, np.clip(placed, -1.0, 1.0))
    # A value on an edge is of the bin above it, and rounding may have put it a hair below.
    bins = np.minimum((placed + 1) * (n_bins / 2) + ROUNDING, n_bins - 1).astype(np.int64)
    return np.column_stack([placed, placed**2, np.eye(n_bins)[bins] * ~blank[:, None]])


class ByWeight(Strict):
    """A number's mean, or the shares of a word's levels, where rows count by their weights."""

    means: tuple[Figures, ...]  # group by group
    difference: float | None  # in the standard deviations of rows that count once


class NumberSummary(Strict):
    feature: NumericFeature
    blanks: tuple[int, ...]
    means: Figures
    deviations: Figures  # of a sample
    bins: tuple[tuple[int, ...], ...]  # of one width, from low to high
    difference: float | None  # the largest of two groups, in standard deviations
    by_weight: Annotated[ByWeight | None, IF_ANY] = None

    def quantile(self, share: float, *, group: int = 0) -> float | None:
        """Return about where a share of the values lies below, straight within a bin."""
        low, high = range_of(self.feature)
        edges = np.linspace(low, high, len(self.bins[group]) + 1)
        counted = np.cumsum([0, *self.bins[group]])
        whole = counted[-1]
        return float(np.interp(share * whole, counted, edges)) if whole else None


class WordSummary(Strict):
    feature: CategoryFeature
    counts: tuple[tuple[int, ...], ...]  # of each level, in their order
    difference: float | None
    by_weight: Annotated[ByWeight | None, IF_ANY] = None


Summary = NumberSummary | WordSummary


class BaselineTable(Strict):
    """What parties and analyst see of all rows: a level of few people shows them."""

    format: Literal["cobasis/table/1"] = "cobasis/table/1"
    round_id: str
    agreement: str  # its digest
    groups: tuple[str, ...]  # "all", and then the label's classes where there is a label
    n_rows: tuple[int, ...]
    columns: Annotated[tuple[Summary, ...], Field(min_length=1)]
    survival: Annotated[Curves | None, IF_ANY] = None
    weight: Annotated[str, IF_ANY] = ""  # the column of weights
    n_weighed: Annotated[tuple[int, ...], IF_ANY] = ()  # rows with a weight above 0
    # so many rows of one weight are as sure as those of the group; None where weights are too
    # small for their squares to be known
    effective_rows: Annotated[Figures, IF_ANY] = ()


def table_of(words: Integers, agreement: "Agreement", *, layout: TableLayout) -> BaselineTable:
    sums = words.reshape(layout.n_groups, -1)
    if layout.n_groups > 1:
        sums = np.vstack([sums.sum(axis=0), sums])
    whole, unit = replace(layout, n_groups=len(sums)), 1 << layout.bits
    counts = sums[:, 0] // unit
    good = not (sums[:, 0] % unit).any() and 0 < counts[0] <= layout.most_rows
    for _, moments, cells, _ in whole.parts(sums):
        good = good and _fits(moments, cells, counts=counts, unit=unit)
    left = sums[:, layout.n_counted - 2 * len(layout.grid) : layout.n_counted]
    require(good and _fits(left[:, :0], left, counts=counts, unit=unit))
    require(not layout.most_weight or _weighs(sums, whole, counts=counts, unit=unit))
    n_weighed, weights, squares = whole.weights(sums).T.reshape(3, -1) / unit
    unknown, outcome = squares * unit <= _KNOWN * counts[: len(squares)], agreement.outcome
    return BaselineTable(
        round_id=agreement.round_id,
        agreement=agreement.digest().hex(),
        groups=("all", *(map(str, agreement.classes) if layout.n_groups > 1 else ())),
        n_rows=tuple(counts.tolist()),
        columns=tuple(
            _number(each, moments / unit, bins=cells // unit, counts=counts, by_weight=more / unit)
            if isinstance(each, NumericFeature)
            else _words(each, cells // unit, counts=counts, by_weight=more / unit)
            for each, moments, cells, more in whole.parts(sums)
        ),
        survival=curves_of(whole.leavers(sums), counts=counts, outcome=outcome),
        weight="" if outcome is None else outcome.weight,
        n_weighed=tuple(n_weighed.astype(int).tolist()),
        effective_rows=tuple(
            np.ma.array(weights**2 / np.maximum(squares, 1 / unit), mask=unknown).tolist()
        ),
    )


def _weighs(sums: Integers, layout: TableLayout, *, counts: Integers, unit: int) -> bool:
    """Tell whether weights of at most 1, times numbers from -1 to 1, can add up to this."""
    positive, whole, squares = layout.weights(sums).T
    good = not (positive % unit).any() and bool((positive <= counts * unit).all())
    good = good and bool(((squares >= 0) & (squares <= whole) & (whole <= positive)).all())
    for each, *_, more in layout.parts(sums):
        number = isinstance(each, NumericFeature)
        known, least = (more[:, 0], np.abs(more[:, 1])) if number else (more.sum(axis=1), -more.T)
        good = good and bool((known <= whole).all() and (least <= (known if number else 0)).all())
    return good


def _fits(moments: Integers, cells: Integers, *, counts: Integers, unit: int) -> bool:
    """Tell whether rows can add up to counts, and of a number to squares beside values."""
    rows = cells.sum(axis=1) // unit
    good = not (cells % unit).any() and bool((cells >= 0).all() and (rows <= counts).all())
    if not (good and moments.size):
        return good
    # Cutting moves each value and each square towards zero by less than one unit.
    (values, squares), lost = moments.T / unit, rows / unit + ROUNDING
    good = bool((squares <= rows + lost).all())
    return good and bool((values**2 <= rows * (squares + lost) * (1 + ROUNDING)).all())


def _words(
    each: CategoryFeature, cells: Integers, *, counts: Integers, by_weight: Matrix
) -> WordSummary:
    weights = by_weight.sum(axis=1, keepdims=True)
    shares, there = (cells / np.maximum(counts, 1)[:, None])[1:, 1:], counts[1:] > 0
    spreads = np.array([np.diag(one) - np.outer(one, one) for one in shares])
    return WordSummary(
        feature=each,
        counts=tuple(map(tuple, cells.tolist())),
        difference=_difference(shares[there], spreads[there]),
        by_weight=_by_weight(by_weight, weights, spreads, there, first=1),
    )


def _number(
    each: NumericFeature, moments: Matrix, *, bins: Integers, counts: Integers, by_weight: Matrix
) -> NumberSummary:
    low, high = range_of(each)
    rows, half, (values, squares) = bins.sum(axis=1), (high - low) / 2, moments.T
    means, middle = values / np.maximum(rows, 1), (low + high) / 2
    spreads = np.maximum(squares - rows * means**2, 0.0) / np.maximum(rows - 1, 1)
    spreads[spreads < _CONSTANT**2] = 0.0  # of a constant, cutting leaves a little
    several, matrices = rows[1:] > 1, spreads[1:, None, None]
    return NumberSummary(
        feature=each,
        blanks=tuple((counts - rows).tolist()),
        means=tuple(np.ma.array(means * half + middle, mask=rows == 0).tolist()),
        deviations=tuple(np.ma.array(np.sqrt(spreads) * half, mask=rows <= 1).tolist()),
        bins=tuple(map(tuple, bins.tolist())),
        difference=_difference(means[1:, None][several], matrices[several]),
        by_weight=_by_weight(
            by_weight[:, 1:] * half + by_weight[:, :1] * middle,
            by_weight[:, :1],
            matrices * half**2,
            several,
        ),
    )


def _by_weight(
    sums: Matrix, weights: Matrix, spreads: Matrix, known: Mask, *, first: int = 0
) -> ByWeight | None:
    """Return weighted means, and how far they are apart from a first column on."""
    if not sums.size:
        return None
    means = sums / np.where(weights > 0, weights, np.nan)
    known = known & (weights[1:, 0] > 0)
    return ByWeight(
        means=tuple(map(tuple, np.ma.masked_invalid(means).tolist())),
        difference=_difference(means[1:, first:][known], spreads[known]),
    )


def _difference(means: Iterable[Matrix], spreads: Iterable[Matrix]) -> float | None:
    """Return the largest standardised difference of two groups' means (Yang, Dalton 2012).

    It has no bound, and is none, where means differ that do not vary within a group.
    """
    found = list[float]()
    for (one, of_one), (two, of_two) in combinations(zip(means, spreads, strict=True), 2):
        apart, whole = one - two, (of_one + of_two) / 2
        solved = np.linalg.pinv(whole) @ apart
        if whole.any() and np.allclose(whole @ solved, apart, atol=1e-9):
            found.append(max(0.0, float(apart @ solved)) ** 0.5)
    return max(found, default=None)
