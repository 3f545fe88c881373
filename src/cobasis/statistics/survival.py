"""Survival curves, scores of a Cox model's rows, and what it is worth on rows it has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cobasis.features.outcome import Records, part_of
from cobasis.linalg.arrays import Array, Matrix
from cobasis.models.worth import Figure
from cobasis.statistics.sample import Sample, grouped

_Z = 1.959963984540054
_ROUNDING = 1e-10
_CELLS = 2**22
"""Pairs of rows that are compared at a time."""


class Curve(NamedTuple):
    """The share without event behind each time at which there was one, and its variance."""

    times: Array
    shares: Array
    variances: Array  # of the logarithm (Greenwood)

    def at(self, time: float) -> tuple[float, float]:
        """Return share and variance of its logarithm at a time; 1 and 0 before the first event."""
        place = int(np.searchsorted(self.times, time, side="right")) - 1
        return (1.0, 0.0) if place < 0 else (self.shares[place], self.variances[place])

    def interval(self) -> tuple[Array, Array]:
        """Return the ends of 95 % intervals of shares, on the scale of log(-log share).

        There no end leaves 0 to 1. NaN where everybody is without event, or nobody.
        """
        inside = (self.shares > 0) & (self.shares < 1)
        logs = np.log(self.shares, out=np.full(len(inside), np.nan), where=inside)
        off = _Z * np.sqrt(np.where(inside, self.variances, 0.0)) / -logs
        return np.exp(logs * np.exp(off)), np.exp(logs * np.exp(-off))

    def mean(self, until: float) -> tuple[float, float]:
        """Return the mean time without event up to one, the area below the curve; and its error.

        The error is Greenwood's: each step moves the area that lies behind it.
        """
        before = self.times < until
        widths = np.diff([0.0, *self.times[before], until])
        areas = widths * [1.0, *self.shares[before]]
        behind = areas.sum() - np.cumsum(areas)[:-1]
        with np.errstate(invalid="ignore"):  # behind the last event of all nothing is left to move
            terms = np.diff([0.0, *self.variances[before]])
        moved = np.where(self.shares[before] > 0, behind**2 * terms, 0.0)
        return float(areas.sum()), float(moved.sum() ** 0.5)


def product_limit(times: Array, *, events: Array, at_risk: Array) -> Curve:
    """Return the Kaplan-Meier curve of counts of events and of rows at risk, at each time."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.cumprod(1 - events / at_risk)
        # where nobody is left without event, neither is there a variance of the logarithm
        terms = events / (at_risk * (at_risk - events))
        variances = np.where(at_risk > events, np.cumsum(terms), np.inf)
    return Curve(times, shares, variances)


def kaplan_meier(time: Array, event: Array) -> Curve:
    times, events = np.unique(time[event == 1], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), times, side="left")
    return product_limit(times, events=events, at_risk=at_risk)


def halved(times: Array, shares: Array) -> float | None:
    """Return the first time at which no more than half are left; None where that never is."""
    found = times[shares <= 0.5 + _ROUNDING]
    return float(found[0]) if len(found) else None


@dataclass(frozen=True)
class LogRank:
    chi_squared: float
    degrees: int
    p: float


def log_rank(*, events: Matrix, at_risk: Matrix) -> LogRank | None:
    """Compare groups by counts at each time, a row for each; None where nothing can be compared."""
    from scipy.special import chdtrc

    happened, there = events.sum(axis=0), at_risk.sum(axis=0)
    events, at_risk = events[:, happened > 0], at_risk[:, happened > 0]
    happened, there = happened[happened > 0], there[happened > 0]
    shares = at_risk / there
    apart = (events - shares * happened).sum(axis=1)
    # Events of a time fall on those at risk without being put back: hypergeometric.
    spread = happened * (there - happened) / np.maximum(there - 1, 1)
    covariance = np.diag(shares @ spread) - (shares * spread) @ shares.T
    # Its rows add up to none, and a group that nobody is at risk in has none: so the rank counts
    # the degrees of freedom, and a pseudoinverse is the inverse of any but one of the others.
    size = np.abs(covariance).max(initial=0.0)
    degrees = int(np.linalg.matrix_rank(covariance, tol=_ROUNDING * size)) if size else 0
    if not degrees:
        return None
    found = float(apart @ np.linalg.pinv(covariance, rcond=_ROUNDING, hermitian=True) @ apart)
    return LogRank(found, degrees, float(chdtrc(degrees, found)))


def survival_figures(
    truth: Records, *, risk: Array, shares: Matrix, horizons: Sequence[float]
) -> dict[str, Figure]:
    """Measure hazards and shares: C-index, and at each horizon Brier score and calibration.

    O/E, observed over expected, is how many had the event beside how many were to: 1 is right.
    """
    time, event = truth["value"], truth["event"]
    found = {"C-index": _concordance(truth, risk)}
    if part_of(truth, "entry") is not None:  # followed from later than 0, where shares begin
        horizons = ()
    for horizon, expected in zip(horizons, shares.T, strict=False):
        if horizon > time.max():  # nobody was followed so long
            continue
        found[f"Brier at {horizon:g}"] = _brier(time, event, horizon=horizon, share=expected)
        left, spread = kaplan_meier(time, event).at(horizon)
        likely = float(np.mean(1 - expected))
        if 0 < left < 1 and likely:
            ratio, off = (1 - left) / likely, _Z * spread**0.5 * left / (1 - left)
            interval = ratio * np.exp(-off), ratio * np.exp(off)
            found[f"O/E at {horizon:g}"] = Figure(ratio, *map(float, interval))
    return {name: each for name, each in found.items() if np.isfinite(each).all()}


def _concordance(truth: Records, risk: Array) -> Figure:
    """Return how often, of two rows, the one with the larger hazard had its event first (Harrell).

    Rows of two strata have no hazards that compare. The error is that of a ratio of U-statistics,
    by each row's share in both sums.
    """
    time, event = truth["value"], truth["event"]
    entry, strata = part_of(truth, "entry"), part_of(truth, "stratum")
    n, right, pairs = len(time), np.zeros(len(time)), np.zeros(len(time))
    first = np.flatnonzero(event == 1)
    step = max(1, _CELLS // n)
    for start in range(0, len(first), step):
        rows = first[start : start + step, np.newaxis]
        later = (time > time[rows]) | ((time == time[rows]) & (event == 0))
        if entry is not None:
            later &= entry < time[rows]
        if strata is not None:
            later &= strata == strata[rows]
        ahead = (risk[rows] > risk) + 0.5 * (risk[rows] == risk)
        ahead = ahead * later
        right += ahead.sum(axis=0)
        right[rows[:, 0]] += ahead.sum(axis=1)
        pairs += later.sum(axis=0)
        pairs[rows[:, 0]] += later.sum(axis=1)
    if not pairs.any():
        return Figure(np.nan, np.nan, np.nan)
    value = float(right.sum() / pairs.sum())
    off = _Z * 2 * float(np.sqrt(np.sum((right - value * pairs) ** 2)) / pairs.sum())
    return Figure(value, max(0.0, value - off), min(1.0, value + off))


def _brier(time: Array, event: Array, *, horizon: float, share: Array) -> Figure:
    """Return the mean squared error of shares; rows that were lost before stand for none (Graf)."""
    # of one time events come first: who is lost then is lost a moment later
    lost = kaplan_meier(np.where(event == 1, time, np.nextafter(time, np.inf)), 1 - event)
    kept = np.array([lost.at(each)[0] for each in time])
    there, had = time > horizon, (time <= horizon) & (event == 1)
    losses = np.zeros(len(time))
    losses[there] = (1 - share[there]) ** 2 / lost.at(np.nextafter(horizon, np.inf))[0]
    losses[had] = share[had] ** 2 / kept[had]
    value = float(losses.mean())
    off = _Z * float(losses.std(ddof=1)) / len(losses) ** 0.5 if len(losses) > 1 else np.nan
    return Figure(value, max(0.0, value - off), value + off)


def score_residuals(
    some: Sample, rows: Matrix, *, weights: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """Return of a stratum the rows' scores, times of deaths, and steps of Breslow's hazard.

    They are derivatives of Efron's likelihood by rows' weights, as R's are. lifelines' own take
    tied rows one after the other, so that errors hang on the rows' order (by 1 % on its Rossi data,
    where they are 4 % from these), and neither they nor its baseline see entries.
    """
    time, dead, weight = some.value, some.labels["event"] > 0, some.weights
    entry, risk = some.part("entry", otherwise=-np.inf), weight * np.exp(rows @ weights)
    table = risk[:, None] * np.column_stack([np.ones(len(rows)), rows])
    times, tied, counts = np.unique(time[dead], return_inverse=True, return_counts=True)
    n_times = len(times)

    def later(when: Matrix) -> Matrix:
        places = np.searchsorted(times, when, "right")
        return np.cumsum(grouped(places, table, count=n_times + 1)[::-1], axis=0)[-2::-1]

    at_risk, ties = later(time) - later(entry), grouped(tied, table[dead], count=n_times)
    # Of d tied deaths the k-th sees the others' risks less k/d of the dead: a line for each death.
    which = np.repeat(np.arange(n_times), counts)
    gone = (np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)) / counts[which]
    seen = at_risk[which] - gone[:, None] * ties[which]
    means, deaths = seen / seen[:, :1], np.bincount(tied, weight[dead])
    hazard = (deaths / counts)[which] / seen[:, 0]

    def summed(share: Matrix) -> Matrix:
        return grouped(which, share[:, None] * means, count=n_times)

    past = np.vstack([np.zeros_like(ties[:1]), np.cumsum(summed(hazard), axis=0)])
    lived = past[np.searchsorted(times, time, "right")]
    lived -= past[np.searchsorted(times, entry, "right")]
    lived[dead] -= summed(hazard * gone)[tied]
    scores: Matrix = risk[:, None] * (lived[:, 1:] - rows * lived[:, :1])
    scores[dead] += weight[dead, None] * (rows[dead] - summed(1 / counts[which])[tied, 1:])
    return scores, times, deaths / at_risk[:, 0]
