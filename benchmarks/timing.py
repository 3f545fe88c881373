"""Contenders timed in turn, so that a disturbance hits all of them; ratios with their spread.

Whether a second core is free changes on a shared machine from second to second: two threads of
SHA-256 against one say so, and where it matters only the rounds count in which they say yes.
"""

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

Call = Callable[[], object]

HASHED = bytes(48 * 2**20)
FREE, HELD_UP = 1.9, 2.1
"""Where two threads are this many times faster than one, two cores are free; where they are more,
one was held up when it was alone."""

MOST = 150  # rounds in which the control is asked


def interleaved(
    calls: Mapping[str, Call], *, rounds: int, warm: bool = True, enough: float = math.inf
) -> dict[str, Any]:
    """Time every call once per round; begin none after so many seconds."""
    if warm:
        for call in calls.values():
            call()
    runs: dict[str, list[float]] = {name: [] for name in calls}
    begun = time.perf_counter()
    for turn in range(rounds):
        if turn and time.perf_counter() - begun > enough:
            break
        for name, took in a_round(calls, turn):
            runs[name].append(took)
    return {name: summary(each) for name, each in runs.items()}


def a_round(calls: Mapping[str, Call], turn: int) -> list[tuple[str, float]]:
    """Time every call once, in an order that alternates from turn to turn."""
    return [(name, seconds(calls[name])) for name in list(calls)[:: 1 if turn % 2 == 0 else -1]]


def seconds(call: Call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def summary(runs: list[float]) -> dict[str, Any]:
    kept = [float(f"{each:.6g}") for each in runs]
    return {"median": median(runs), "low": min(runs), "high": max(runs), "runs": kept}


def ratio(times: Mapping[str, Any], slow: str, fast: str) -> dict[str, float]:
    """Return how many times longer `slow` took than `fast`, round by round."""
    return spread(np.divide(times[slow]["runs"], times[fast]["runs"]).tolist())


def spread(values: list[float]) -> dict[str, float]:
    low, middle, high = np.percentile(values, [25, 50, 75])
    return {"median": float(middle), "low": float(low), "high": float(high)}


@dataclass(frozen=True, kw_only=True)
class Rounds:
    runs: dict[str, list[float]]  # seconds by contender, in the rounds that count
    controls: list[float]  # what the control reached, in every round

    @property
    def free(self) -> int:
        """In how many rounds a second core was free."""
        return sum(map(is_free, self.controls))

    @property
    def told(self) -> str:
        return f"control at {FREE}x to {HELD_UP}x in {self.free} of {len(self.controls)} rounds"


def in_free_rounds(calls: Mapping[str, Call], *, wanted: int) -> Rounds:
    """Time every call once in each round that has a second core free, until they are enough."""
    for call in calls.values():
        call()
    found = Rounds(runs={name: [] for name in calls}, controls=[])
    while found.free < wanted and len(found.controls) < MOST:
        found.controls.append(reached())
        if is_free(found.controls[-1]):
            for name, took in a_round(calls, found.free):
                found.runs[name].append(took)
    return found


def is_free(control: float) -> bool:
    """Return whether the second core was free, by what two threads reached."""
    return FREE <= control <= HELD_UP


def reached() -> float:
    """Return how many times faster two threads are than one: two where two cores are free."""

    def hashed(_: int) -> bytes:
        return hashlib.sha256(HASHED).digest()  # hashlib lets go of the lock

    one = seconds(lambda: [hashed(0), hashed(1)])
    with ThreadPoolExecutor(2) as pool:
        return one / seconds(lambda: list(pool.map(hashed, range(2))))
