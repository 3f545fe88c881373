"""Contenders timed in turn, so that a disturbance hits all of them; ratios with their spread."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np

Call = Callable[[], object]


def interleaved(calls: Mapping[str, Call], *, rounds: int, warm: bool = True) -> dict[str, Any]:
    """Time every call once per round."""
    if warm:
        for call in calls.values():
            call()
    runs: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        for name, took in a_round(calls, turn):
            runs[name].append(took)
    return {name: summary(each) for name, each in runs.items()}


def a_round(calls: Mapping[str, Call], turn: int) -> list[tuple[str, float]]:
    """Time every call once, in an order that alternates from turn to turn."""
    return [(name, seconds(calls[name])) for name in list(calls)[:: 1 if turn % 2 == 0 else -1]]


def seconds(call: Call) -> float:
    """Return the wall time of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def summary(runs: list[float]) -> dict[str, Any]:
    """Return median, extremes and the runs themselves."""
    return {
        "median": median(runs),
        "low": min(runs),
        "high": max(runs),
        "runs": [float(f"{each:.6g}") for each in runs],
    }


def ratio(times: Mapping[str, Any], slow: str, fast: str) -> dict[str, float]:
    """Return how many times longer `slow` took than `fast`, round by round."""
    return spread(
        [one / other for one, other in zip(times[slow]["runs"], times[fast]["runs"], strict=True)]
    )


def spread(values: list[float]) -> dict[str, float]:
    """Return the median and the quartiles."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return {"median": float(middle), "low": float(low), "high": float(high)}
