"""Whether a second core is free just now: two threads of SHA-256 against one.

On a shared machine that changes from second to second, so every round asks anew, and only the
rounds count in which the control says yes.
"""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.timing import Call, a_round, seconds

HASHED = bytes(48 * 2**20)
FREE, HELD_UP = 1.9, 2.1
"""Where two threads of SHA-256 are this many times faster than one, two cores are free; where they
are more, one was held up when it was alone."""

MOST = 150
"""Rounds in which the control is asked."""


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """What was timed."""

    runs: dict[str, list[float]]  # seconds by contender, in the rounds that count
    controls: list[float]  # what the control reached, in every round

    @property
    def free(self) -> int:
        """In how many rounds a second core was free."""
        return sum(map(is_free, self.controls))

    @property
    def told(self) -> str:
        """The same in words."""
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
    one = seconds(lambda: [hashed(), hashed()])
    with ThreadPoolExecutor(2) as pool:
        return one / seconds(lambda: list(pool.map(lambda _: hashed(), range(2))))


def hashed() -> bytes:
    """Hash some megabytes; hashlib lets go of the lock."""
    return hashlib.sha256(HASHED).digest()
