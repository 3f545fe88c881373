"""Regression tables from masked sums: what a party adds up at some weights, and what totals give.

A logistic or Poisson model takes the log-likelihood, its slope and its curvature at the weights
that came back last; a Cox model takes, for each interval of an agreed grid of times, sums of
risks over whoever leaves in it. Each exchange is one step; least squares take one step in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, log, log2
from typing import TYPE_CHECKING

import numpy as np

from cobasis.errors import EstimateError, MessageError
from cobasis.features.maps import Columns, Turn, turn_of
from cobasis.features.outcome import Records, part_of
from cobasis.linalg.arrays import Integers, Matrix
from cobasis.models import FAMILIES, RegressionName
from cobasis.models.chain import Chain, regression_chain
from cobasis.models.regressions import RegressionFit
from cobasis.protocol.totals import AnyLayout, bounded, n_small, require
from cobasis.statistics.ascent import Slopes, ascend, efron, inverse_of, level_of_all, of_residuals
from cobasis.statistics.coefficients import table_of
from cobasis.statistics.sample import nothing_told

if TYPE_CHECKING:
    from cobasis.protocol.agreement import Agreement

BY_SUMS = tuple(name for name, row in FAMILIES.items() if row.by_sums)

FEWEST_LEAVERS = 10
"""Of an interval: so many rows have to die in it, and so many be followed to it, or none."""

MOST_STEPS, N_STEPS, FEWEST_BITS = 20, 8, 16
"""At most, where nobody says how many, and below which sums are too coarse."""
_MOST_LOSS, _SLACK = 64.0, 4.0
_MOST_RISK = 2.0**14
"""Beside that of a row in the middle of all, which has 1: beyond it no sum has a bound."""
_NUMBERS_AT_ONCE = 2**20


@dataclass(frozen=True, kw_only=True)
class NewtonLayout(AnyLayout):
    """Whole counts, then what is cut to multiples of a power of two.

    Counts are rows, events or the sum of counts, and rows beyond a bound; of a Cox model those who
    leave in each interval and behind the last, events in each interval, and rows beyond a bound.
    """

    FORMAT = "cobasis/newton/1"
    model: RegressionName
    n_columns: int
    steps: int = 1
    between: tuple[float, float] = (0.0, 1.0)  # from where to where labels go; of a count from 0
    most_exposure: float = 1.0
    grid: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """Of a row's columns, a one before them."""
        return 1 + self.n_columns

    @property
    def n_features(self) -> tuple[int, ...]:
        """How many features the sums are of, a step and an interval having their own."""
        return (self.width * self.steps * max(1, 2 * len(self.grid)),)

    @property
    def fewest_leavers(self) -> int:
        # Of fewer the sums of all steps are more numbers than the rows' columns, and give them
        # back: ten rows of eight columns, and fifteen, exactly from five steps.
        n_sums = self.steps * self.width * (self.width + 1) // 2
        return max(FEWEST_LEAVERS, -(-n_sums // self.n_columns))

    @property
    def n_counts(self) -> int:
        return 2 * len(self.grid) + 2 if self.grid else 3

    @property
    def n_words(self) -> int:
        return self.n_counts + len(self.scales)

    @property
    def scales(self) -> Matrix:
        """By which power of two each sum is multiplied: no total leaves 62 bits."""
        high = max(1.0, self.between[1])
        slope = _SLACK * high if self.model == "poisson" else 1.0
        value = {"logit": _MOST_LOSS, "poisson": 4 * slope + _MOST_LOSS}.get(self.model, 1.0)
        n_cells = self.width * (self.width + 1) // 2
        bounds = [value, *[slope] * (self.width + n_cells)]
        if self.model == "cox":
            bounds = [*[1.0] * self.n_columns, *[_MOST_RISK] * n_cells * (2 * len(self.grid) + 1)]
        bits = {each: min(self.MOST_BITS, self.free_bits - ceil(log2(each))) for each in {*bounds}}
        return np.array([2.0 ** bits[each] for each in bounds])

    def added(self, rows: Matrix, labels: Records, *, turn: Turn, model: Chain | None) -> Integers:
        """Add up encoded rows at the weights that came back last; before the first at none."""
        columns, found = bounded(turn.apply(rows)), np.zeros(self.n_words, dtype=np.int64)
        # until a rate is known, exposures count as shares of the largest, so that a sum has a bound
        unknown = -log(self.most_exposure)
        level = np.full(len(rows), unknown) if model is None else model.outputs(rows)[:, -1]
        adds = _of_times if self.model == "cox" else _of_labels
        step = max(1, _NUMBERS_AT_ONCE // self.width**2)
        for first in range(0, len(rows), step):
            here = slice(first, first + step)
            ones = np.column_stack([np.ones(len(columns[here])), columns[here]])
            found += adds(self, ones, level[here], labels=labels[here])
        return found

    def small_cells(self, sums: Integers, *, words: Integers) -> int:
        """Count cells that some rows have, and fewer than a few, in sums at weights of zero.

        Those are outcomes of an interval, and pairs of words, or of a word and a class; of a
        Poisson model with an exposure, about. `words` say of which columns each word is the sum.
        """
        read, binary = _Total(self, sums), self.model == "logit"
        tables = words @ read.tables @ words.T * (4 if binary else 1)
        found: list[Matrix] = [tables[:, *np.triu_indices(len(words))].ravel()]
        if binary:
            more, half = words @ read.sums[1 : 1 + self.width], np.diagonal(tables[0]) / 2
            found += [half + more, half - more]
        return n_small(np.rint(np.concatenate([*found, read.leavers])))


def _of_labels(layout: NewtonLayout, ones: Matrix, level: Matrix, *, labels: Records) -> Integers:
    from scipy.special import expit, gammaln  # noqa: PLC0415 -- .2 s that `import cobasis` spares

    value, exposure = np.asarray(part_of(labels), dtype=np.float64), part_of(labels, "exposure")
    most = _SLACK * max(1.0, layout.between[1])
    if layout.model == "ols":
        low, high = layout.between
        placed = (2 * value - low - high) / (high - low)
        told, excess, bend = placed**2, placed, np.ones(len(value))
        value, kept = np.zeros(len(value)), np.ones(len(value), dtype=bool)
    elif layout.model == "logit":
        share = expit(level)
        told, excess, bend = value * level - np.logaddexp(0, level), value - share, share - share**2
        kept = told >= -_MOST_LOSS
    else:
        level = level + (0 if exposure is None else np.log(exposure))
        kept = level <= log(most)
        bend = np.exp(np.where(kept, level, 0.0))
        told, excess = value * level - bend - gammaln(value + 1), value - bend
        kept &= np.abs(told) <= 4 * most + _MOST_LOSS
    upper = np.triu_indices(layout.width)
    summed = np.column_stack(
        [told, excess[:, None] * ones, bend[:, None] * ones[:, upper[0]] * ones[:, upper[1]]]
    )
    whole = np.rint(summed[kept] * layout.scales).astype(np.int64).sum(axis=0)
    counts = [len(ones), int(value.sum()), np.count_nonzero(~kept)]
    return np.concatenate([np.array(counts, dtype=np.int64), whole])


def _of_times(layout: NewtonLayout, ones: Matrix, level: Matrix, *, labels: Records) -> Integers:
    """Add up rows of a Cox model, each in the interval that its time, rounded up, is the end of."""
    n_times, upper = len(layout.grid), np.triu_indices(layout.width)
    place = np.searchsorted(layout.grid, labels["value"], side="left")
    dead = (labels["event"] > 0) & (place < n_times)  # behind the grid nobody is followed
    kept = level <= log(_MOST_RISK)
    risk = np.where(kept, np.exp(np.where(kept, level, 0.0)), 0.0)
    products = risk[:, None] * ones[:, upper[0]] * ones[:, upper[1]]
    own, cells = layout.scales[: layout.n_columns], layout.scales[-1]
    whole = np.rint(products * cells).astype(np.int64)
    tables = np.zeros((2 * n_times + 1, products.shape[1]), dtype=np.int64)
    np.add.at(tables, place, whole)
    np.add.at(tables, n_times + 1 + place[dead], whole[dead])
    return np.concatenate(
        [
            np.bincount(place, minlength=n_times + 1),
            np.bincount(place[dead], minlength=n_times),
            [np.count_nonzero(~kept)],
            np.rint(ones[dead, 1:] * own).astype(np.int64).sum(axis=0),
            tables.ravel(),
        ]
    )


class _Total:
    """Sums over everybody's rows; MessageError where no rows can add up to them."""

    def __init__(self, layout: NewtonLayout, words: Integers) -> None:
        self.counts, [beyond], cells = np.split(words, [layout.n_counts - 1, layout.n_counts])
        self.layout, self.beyond = layout, int(beyond)
        n_times, width, n_columns = len(layout.grid), layout.width, layout.n_columns
        leave, told = np.split(self.counts, [n_times + 1])
        self.n_rows = int(leave.sum())
        self.told = int(told.sum())  # events, rows of class 1, or all counts
        # who dies in each interval; then who is followed to each, and to the end
        self.leavers = np.append(told, leave - np.append(told, 0)) if n_times else leave[:0]
        self.sums = cells / layout.scales
        upper, first = np.triu_indices(width), n_columns if n_times else 1 + width
        table = self.sums[first:].reshape(-1, len(upper[0]))
        self.tables = np.zeros((len(table), width, width))  # of each cell
        self.tables[:, upper[0], upper[1]] = self.tables[:, upper[1], upper[0]] = table
        # in the first step every risk is 1, so these are the means of all rows' columns
        self.middle = self.tables[: n_times + 1, 0, 1:].sum(axis=0) / max(1, self.n_rows)
        least = min(self.n_rows - 1, self.beyond, *self.counts, *self.leavers)
        good = least >= 0 and self.beyond <= self.n_rows <= layout.most_rows
        good = good and (self.told <= self.n_rows or layout.model != "logit")
        # a column lies from -1 to 1, so its square adds no more than the one before it
        sizes = np.diagonal(self.tables, axis1=1, axis2=2)
        off = self.n_rows / layout.scales[-1]
        require(good and (sizes >= -off).all() and (sizes <= sizes[:, :1] + off).all())

    def slopes(self, weights: Matrix, deaths: Matrix) -> Slopes:
        found = Slopes(
            value=float(self.sums[0]),
            slope=self.sums[1 : 1 + self.layout.width],
            curvature=self.tables[0],
        )
        if self.layout.grid:
            found, _ = self.partial()
            found = replace(found, value=found.value + float(weights @ deaths))
        return replace(found, beyond=self.beyond > 0)

    def partial(self) -> tuple[Slopes, Matrix]:
        """Return a partial likelihood's slopes but for the deaths' own value; and hazards."""
        n_times = len(self.layout.grid)
        leave, tied = np.split(self.tables, [n_times + 1])
        at_risk = np.cumsum(leave[::-1], axis=0)[::-1][:-1]
        found, hazards = efron(self.counts[n_times + 1 :], at_risk, tied=tied)
        return replace(found, slope=found.slope + self.sums[: self.layout.n_columns]), hazards


def _refuse(first: _Total, later: Sequence[_Total]) -> None:
    """Refuse totals that determine nothing, show rows one by one, or are of two tables."""
    if any(not np.array_equal(each.counts, first.counts) for each in later):
        raise MessageError(
            "these parties' sums are of other rows than in the step before, so they are slopes of "
            "two likelihoods. Ask all parties whether their tables changed, and begin anew."
        )
    layout = first.layout
    if first.n_rows < layout.n_columns + 1 + (layout.model != "cox"):
        raise EstimateError(
            f"{first.n_rows} rows are too few for so many columns. Agree on fewer columns."
        )
    rest = first.n_rows - first.told if layout.model == "logit" else 1
    if layout.model != "ols" and not min(first.told, rest):
        raise EstimateError(nothing_told(layout.model))
    least = layout.fewest_leavers
    if few_cells := n_small(first.leavers, few=least):
        raise EstimateError(
            f"at {few_cells} place(s) of the grid fewer than {least} rows have their event, or are "
            "followed until then and no longer, and the sums of all steps would show what they "
            "are. Agree on fewer, wider intervals, or on fewer steps, in a new round."
        )
    if first.beyond:
        raise EstimateError(
            "rows are beyond what is agreed before the first step, as where exposures differ more "
            "than a millionfold. Agree on another unit of exposure in a new round."
        )


def _without_columns(first: _Total, deaths: Matrix) -> tuple[Slopes, Matrix]:
    layout = first.layout
    start = np.zeros(layout.width - (layout.model == "cox"))
    null = first.slopes(start, deaths)
    if layout.model in {"logit", "poisson"}:
        null, level = level_of_all(null, layout.model, n_rows=first.n_rows, told=first.told)
        start[0] = level - log(layout.most_exposure)
    return null, start


def newton_chain(
    layout: NewtonLayout, totals: Sequence[Integers], *, agreement: "Agreement"
) -> Chain:
    """Return the model that the totals of all steps so far give; its fit says if it is the last.

    EstimateError where rows determine none, or where all steps were taken without coming to rest.
    """
    first, *later = (_Total(layout, each) for each in totals)
    _refuse(first, later)
    deaths = first.sums[: layout.n_columns] - first.told * first.middle
    null, start = _without_columns(first, deaths)
    turn = turn_of(Columns(), agreement.features)
    back = turn.weights
    if layout.model != "cox":  # an intercept goes before
        back = np.block([[np.ones((1, 1)), turn.offset], [np.zeros((len(back), 1)), back]])
    fit = RegressionFit.unfitted(
        layout.model,
        errors="model",
        n_rows=first.n_rows,
        n_events=first.told,
        dependent=back @ inverse_of(null.curvature)[1],
    )
    if fit.dependent.shape[1]:
        table_of(fit, features=agreement.features)  # raises, with their names
    ascent = ascend(null, start, later=later, at=lambda total, at: total.slopes(at, deaths))
    finished = ascent.settled or layout.model == "ols"
    if not finished and len(totals) >= layout.steps:
        raise ascent.restless(layout.model, steps=layout.steps)
    fit = replace(
        fit,
        weights=back @ ascent.weights,
        covariance=back @ ascent.covariance @ back.T if finished else fit.covariance,
        finished=finished,
        log_likelihood=ascent.seen.value,
        null_log_likelihood=null.value,
    )
    if layout.model == "ols":
        fit = of_residuals(fit, ascent, between=layout.between)
    if layout.model != "cox":
        return regression_chain(fit, n_classes=len(agreement.classes))
    # Risks are told beside that of the middle of all rows, where their sum over all is no smaller
    # than their number: beside an agreed zero far away they could all be cut to nothing.
    moved = (turn.offset - first.middle) @ ascent.weights
    if not finished:
        return regression_chain(fit, n_classes=0).rescaled(1.0, np.array([moved]))
    (_, steps), times = [first, *later][-1].partial(), np.array(layout.grid)
    with np.errstate(over="ignore"):
        reached = [np.exp(moved) * steps[times <= each].sum() for each in agreement.horizons]
    return regression_chain(replace(fit, hazards=np.array(reached)), n_classes=0)
