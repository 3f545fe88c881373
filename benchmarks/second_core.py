"""Whether a second core is free just now: two threads of SHA-256 against one.

On a shared machine that changes from second to second, so every round asks anew, and only the
rounds count in which the control says yes.
"""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.timing import Call, seconds

HASHED = bytes(48 * 2**20)
FREE = 1.9
"""Where two threads of SHA-256 are this many times faster than one, two cores are free."""


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """What was timed.

    Attributes
    ----------
    runs : dict of str to list of float
        Seconds by contender, in the rounds that count.
    controls : list of float
        What the control reached, in every round.
    """

    runs: dict[str, list[float]]
    controls: list[float]

    @property
    def told(self) -> str:
        """In how many rounds a second core was free."""
        free = sum(each >= FREE for each in self.controls)
        return f"control reached {FREE}x in {free} of {len(self.controls)} rounds"


def in_free_rounds(calls: Mapping[str, Call], *, wanted: int, most: int) -> Rounds:
    """Time every call once per round, until enough rounds had a second core free.

    Parameters
    ----------
    calls : mapping of str to callable
        By contender; each is called once before the first round.
    wanted : int
        How many rounds have to count.
    most : int
        How many are tried.
    """
    for call in calls.values():
        call()
    found = Rounds(runs={name: [] for name in calls}, controls=[])
    for turn in range(most):
        found.controls.append(reached())
        times = {name: seconds(calls[name]) for name in list(calls)[:: 1 if turn % 2 == 0 else -1]}
        if found.controls[-1] >= FREE:
            for name, each in times.items():
                found.runs[name].append(each)
            if sum(each >= FREE for each in found.controls) == wanted:
                break
    return found


def reached() -> float:
    """Return how many times faster two threads are than one: two where two cores are free."""
    one = seconds(lambda: [hashed(), hashed()])
    with ThreadPoolExecutor(2) as pool:
        return one / seconds(lambda: list(pool.map(lambda _: hashed(), range(2))))


def hashed() -> bytes:
    """Hash some megabytes; hashlib lets go of the lock."""
    return hashlib.sha256(HASHED).digest()
