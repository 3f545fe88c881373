"""Survival curves of a baseline table: of each group's events and losses, on a grid of times.

The total holds every interval, and parties and analyst see it. What is made of it, and published,
shows intervals in which few left together with their neighbours only.
"""

from collections.abc import Sequence

import numpy as np

from cobasis.features.outcome import Outcome
from cobasis.linalg.arrays import Array, Integers
from cobasis.statistics.survival import LogRank, halved, log_rank, product_limit
from cobasis.strict_json import Strict


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


def curves_of(left: Integers, *, counts: Integers, outcome: Outcome | None) -> Curves | None:
    """Return curves of events and of those lost (groups x 2 x intervals), and of each group's rows.

    The first group is all others together. None where no curves are agreed on.
    """
    if outcome is None or not outcome.grid:
        return None
    ends = _ends(left.sum(axis=1), counts, few=outcome.fewest_leavers)
    upto = np.concatenate([np.zeros_like(left[:, :, :1]), np.cumsum(left, axis=2)], axis=2)
    leave = np.diff(upto[:, :, [0, *ends]])
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
            _group(times, each, at_risk=there, horizons=horizons)
            for each, there in zip(leave, at_risk, strict=True)
        ),
        log_rank=log_rank(events=leave[1:, 0], at_risk=at_risk[1:]) if ends else None,
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
    times: Array, leave: Integers, *, at_risk: Integers, horizons: Sequence[float]
) -> GroupCurve:
    events, censored = leave
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
        low=(*np.ma.masked_invalid(low).tolist(), *blank),
        high=(*np.ma.masked_invalid(high).tolist(), *blank),
        median=halved(curve.times, curve.shares),
        median_low=halved(curve.times, low),
        median_high=halved(curve.times, high),
        means=tuple(means),
    )
