"""The baseline table: counts, means and histograms of columns, over all parties' rows.

A round of its own sums a few numbers of each row: a one; of a number its value and its square, on
the agreed range, and a one in its bin; of a word a one at its level; of a time a one in its
interval of an agreed grid, among events or among those lost. Nothing else of two columns together
is summed.

The total holds every interval, and parties and analyst see it. What is made of it, and published,
shows intervals in which few left together with their neighbours only: in survival curves.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from cobasis.errors import FeatureError
from cobasis.features.contract import CategoryFeature, Column, NumericFeature, width_of
from cobasis.features.maps import range_of
from cobasis.features.outcome import VALUE, Outcome, Records, part_of
from cobasis.linalg.arrays import Array, Integers, Matrix
from cobasis.protocol.totals import ROUNDING, AnyLayout, cut, n_small, require
from cobasis.statistics.survival import LogRank, halved, log_rank, product_limit
from cobasis.strict_json import IF_ANY, Strict

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement

_CONSTANT = 1e-5
"""A standard deviation below this share of half the range is none: numbers were cut before."""

Figures = tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class TableLayout(AnyLayout):
    """Group by group, a one for each row and then column by column."""

    FORMAT = "cobasis/table/1"
    LATER = ("grid", "features")
    features: tuple[Column, ...]
    n_bins: int
    n_groups: int
    grid: tuple[float, ...] = ()  # where intervals of time end; none without curves

    @property
    def n_features(self) -> tuple[int, ...]:
        numbers = sum(isinstance(each, NumericFeature) for each in self.features)
        return (width_of(self.features) + numbers * (self.n_bins + 1) + 2 * len(self.grid),)

    @property
    def n_words(self) -> int:
        return self.n_groups * (1 + self.n_features[0])

    def digest(self) -> bytes:
        """Return what masks are bound to; columns are in the agreement's digest."""
        return AnyLayout.digest(replace(self, features=()))

    def parts(self, sums: Integers) -> Iterator[tuple[Column, Integers, Integers]]:
        """Yield each column, its moments (of words none) and its cells, group by group."""
        table, at = sums.reshape(self.n_groups, -1), 1
        for each in self.features:
            cells = at + 2 * isinstance(each, NumericFeature)
            stop = cells + (self.n_bins if cells > at else width_of([each]))
            yield each, table[:, at:cells], table[:, cells:stop]
            at = stop

    def leavers(self, sums: Integers) -> Integers:
        """Return counts of events and of those lost, by groups x 2 x intervals."""
        size = len(self.grid)
        found = sums.reshape(self.n_groups, -1)[:, 1 + self.n_features[0] - 2 * size :]
        return found.reshape(self.n_groups, 2, size) >> self.bits

    def added(self, rows: Matrix, labels: Records) -> Integers:
        parts, at = [np.ones((len(rows), 1))], 0
        for each in self.features:
            some = rows[:, at : at + width_of([each])]
            at += some.shape[1]
            if isinstance(each, NumericFeature):
                some = _summands(some, each, n_bins=self.n_bins)
            parts.append(some)
        time, event, size = part_of(labels, "time"), part_of(labels, "event"), len(self.grid)
        if time is not None and event is not None:
            # A time is as if rounded up; with one behind the grid a row is followed to its end.
            place = np.searchsorted(self.grid, time, side="left")
            left = np.where(place < size, place + size * (event == 0), 2 * size)
            parts.append(np.eye(2 * size + 1)[left, :-1])  # among events, or among those lost
        whole = cut(np.hstack(parts), bits=self.bits).astype(np.int64)
        groups = labels if labels.dtype.names is None else labels[VALUE]
        return np.concatenate([whole[groups == at].sum(axis=0) for at in range(self.n_groups)])

    def small_cells(self, sums: Integers) -> int:
        cells = np.hstack([each for *_, each in self.parts(sums)]) >> self.bits
        left = self.leavers(sums).sum(axis=1)  # in each interval, by groups
        return n_small(np.hstack([cells, left]))


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


class NumberSummary(Strict):
    feature: NumericFeature
    blanks: tuple[int, ...]
    means: Figures
    deviations: Figures  # of a sample
    bins: tuple[tuple[int, ...], ...]  # of one width, from low to high
    difference: float | None  # the largest of two groups, in standard deviations

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


class MeanTime(Strict):
    """The mean time without event up to one; None where nobody was followed so long."""

    until: float
    mean: float | None
    error: float | None


class GroupCurve(Strict):
    """A group's counts and Kaplan-Meier curve at each time, with intervals of 95 %."""

    at_risk: tuple[int, ...]  # before the rows leave that are counted at the time
    events: tuple[int, ...]
    censored: tuple[int, ...]
    shares: tuple[float | None, ...]  # without event; None where nobody is at risk any more
    low: tuple[float | None, ...]  # None also where everybody or nobody is without event
    high: tuple[float | None, ...]
    median: float | None
    median_low: float | None
    median_high: float | None
    means: tuple[MeanTime, ...]


class Curves(Strict):
    """Curves of all rows and of each group, at the times of the grid that may be shown."""

    time: str  # the columns
    event: str
    fewest_leavers: int
    times: tuple[float, ...]  # none where too few left in some group at all
    groups: tuple[GroupCurve, ...]
    log_rank: LogRank | None


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


def table_of(words: Integers, agreement: "Agreement", *, layout: TableLayout) -> BaselineTable:
    sums = words.reshape(layout.n_groups, -1)
    if layout.n_groups > 1:
        sums = np.vstack([sums.sum(axis=0), sums])
    whole, unit = replace(layout, n_groups=len(sums)), 1 << layout.bits
    counts = sums[:, 0] // unit
    good = not (sums[:, 0] % unit).any() and 0 < counts[0] <= layout.most_rows
    for _, moments, cells in whole.parts(sums):
        good = good and _fits(moments, cells, counts=counts, unit=unit)
    left = sums[:, sums.shape[1] - 2 * len(layout.grid) :]
    require(good and _fits(left[:, :0], left, counts=counts, unit=unit))
    return BaselineTable(
        round_id=agreement.round_id,
        agreement=agreement.digest().hex(),
        groups=("all", *(map(str, agreement.classes) if layout.n_groups > 1 else ())),
        n_rows=tuple(counts.tolist()),
        columns=tuple(
            _number(each, moments / unit, bins=cells // unit, counts=counts)
            if isinstance(each, NumericFeature)
            else _words(each, cells // unit, counts=counts)
            for each, moments, cells in whole.parts(sums)
        ),
        survival=curves_of(whole.leavers(sums), counts=counts, outcome=agreement.outcome),
    )


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


def _words(each: CategoryFeature, cells: Integers, *, counts: Integers) -> WordSummary:
    if each.base is not None:  # has no column of its own
        cells = np.insert(cells, each.code(each.base), counts - cells.sum(axis=1), axis=1)
    shares = (cells / np.maximum(counts, 1)[:, None])[1:, 1:][counts[1:] > 0]
    spreads = [np.diag(one) - np.outer(one, one) for one in shares]
    return WordSummary(
        feature=each,
        counts=tuple(map(tuple, cells.tolist())),
        difference=_difference(shares, spreads),
    )


def _number(
    each: NumericFeature, moments: Matrix, *, bins: Integers, counts: Integers
) -> NumberSummary:
    low, high = range_of(each)
    rows, half, (values, squares) = bins.sum(axis=1), (high - low) / 2, moments.T
    means = values / np.maximum(rows, 1)
    spreads = np.maximum(squares - rows * means**2, 0.0) / np.maximum(rows - 1, 1)
    spreads[spreads < _CONSTANT**2] = 0.0  # of a constant, cutting leaves a little
    known = np.column_stack([means, spreads])[1:][rows[1:] > 1, :, None, None]
    return NumberSummary(
        feature=each,
        blanks=tuple((counts - rows).tolist()),
        means=tuple(np.ma.array(means * half + (low + high) / 2, mask=rows == 0).tolist()),
        deviations=tuple(np.ma.array(np.sqrt(spreads) * half, mask=rows <= 1).tolist()),
        bins=tuple(map(tuple, bins.tolist())),
        difference=_difference(known[:, 0, 0], known[:, 1]),
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


# ---------------------------------------------------------------- survival curves


def curves_of(left: Integers, *, counts: Integers, outcome: Outcome | None) -> Curves | None:
    """Return curves of events and of those lost (groups x 2 x intervals), and of each group's rows.

    The first group is all others together. None where no curves are agreed on.
    """
    if outcome is None:
        return None
    ends = _ends(left.sum(axis=1), counts, few=outcome.fewest_leavers)
    upto = np.concatenate([np.zeros_like(left[:, :, :1]), np.cumsum(left, axis=2)], axis=2)
    events, censored = np.diff(upto[:, :, [0, *ends]]).swapaxes(0, 1)
    at_risk = counts[:, None] - upto.sum(axis=1)[:, [0, *ends][: len(ends)]]
    times = np.array([outcome.grid[end - 1] for end in ends])
    compared = times[(at_risk > 0)[counts > 0].all(axis=0)]  # somebody of every group is followed
    horizons = outcome.horizons or compared[-1:].tolist()
    return Curves(
        time=outcome.time,
        event=outcome.event,
        fewest_leavers=outcome.fewest_leavers,
        times=tuple(times.tolist()),
        groups=tuple(
            _group(times, events=each, censored=lost, at_risk=there, horizons=horizons)
            for each, lost, there in zip(events, censored, at_risk, strict=True)
        ),
        log_rank=log_rank(events=events[1:], at_risk=at_risk[1:]) if ends else None,
    )


def _ends(left: Integers, counts: Integers, *, few: int) -> list[int]:
    """Return how many intervals lie before each time that may be shown.

    Of each group nobody left between two of them, or at least a few did; behind the last nobody
    stayed, or at least a few. All groups have the same times: of others, differences would show
    the smaller intervals again.
    """

    def good(some: Integers) -> bool:
        return bool(((some == 0) | (some >= few)).all())

    ends = [0]
    for end in range(1, left.shape[1] + 1):
        if good(left[:, ends[-1] : end].sum(axis=1)):
            ends.append(end)
    # A curve ends where too few would be left, and not with one long interval of all of them: as
    # times are rounded up, they would all seem to have stayed to its end.
    while ends and not good(counts - left[:, : ends[-1]].sum(axis=1)):
        ends.pop()
    return ends[1:]


def _group(
    times: Array,
    *,
    events: Integers,
    censored: Integers,
    at_risk: Integers,
    horizons: Sequence[float],
) -> GroupCurve:
    size = int(np.count_nonzero(at_risk))
    curve = product_limit(times[:size], events=events[:size], at_risk=at_risk[:size])
    low, high = curve.interval()
    blank = [None] * (len(times) - size)
    means = list[MeanTime]()
    for until in horizons:  # told where somebody was followed so long, or nobody was left
        known = size > 0 and (curve.times[-1] >= until or curve.shares[-1] == 0)
        mean, error = curve.mean(until) if known else (None, None)
        means.append(MeanTime(until=until, mean=mean, error=error))
    return GroupCurve(
        at_risk=tuple(at_risk.tolist()),
        events=tuple(events.tolist()),
        censored=tuple(censored.tolist()),
        shares=(*curve.shares.tolist(), *blank),
        low=(*(None if np.isnan(each) else float(each) for each in low), *blank),
        high=(*(None if np.isnan(each) else float(each) for each in high), *blank),
        median=halved(curve.times, curve.shares),
        median_low=halved(curve.times, low),
        median_high=halved(curve.times, high),
        means=tuple(means),
    )
