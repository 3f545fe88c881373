"""Two threads against one, beside a control that says whether this machine has two cores free."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks import contenders, goals
from benchmarks.inputs import different
from benchmarks.timing import interleaved, ratio

ROUNDS, ROUNDS_QUICK = 9, 5
SHAPES = ({"a": 1000, "l": 50, "c": 400}, {"a": 1000, "l": 200, "c": 50})
HASHED = bytes(48 * 2**20)
CONTROL = 1.9
GOAL = "two threads against one"


def measure(*, quick: bool) -> dict[str, Any]:
    """Time ours and the control with one and with two threads.

    Parameters
    ----------
    quick : bool
        One shape, fewer rounds.

    Returns
    -------
    dict
        ``points`` and ``goals``.
    """
    shapes = SHAPES[:1] if quick else SHAPES
    points = [a_point(each, rounds=ROUNDS_QUICK if quick else ROUNDS) for each in shapes]
    return {"points": points, "goals": [judged(each) for each in points]}


def a_point(shape: dict[str, int], *, rounds: int) -> dict[str, Any]:
    """Time one shape."""
    images = different("isometric")(**shape)
    times = interleaved(
        {
            "one": lambda: contenders.ours(images, workers=1),
            "two": lambda: contenders.ours(images, workers=2),
            "control one": lambda: hashed(1),
            "control two": lambda: hashed(2),
        },
        rounds=rounds,
    )
    return {
        **shape,
        "seconds": {name: times[name]["median"] for name in times},
        "speed-up": ratio(times, "one", "two"),
        "control": ratio(times, "control one", "control two"),
        "cores": os.cpu_count(),
    }


def hashed(threads: int) -> list[bytes]:
    """Hash the same bytes twice, on one thread or on two; hashlib lets go of the lock."""
    if threads == 1:
        return [digest(HASHED), digest(HASHED)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(digest, [HASHED, HASHED]))


def digest(what: bytes) -> bytes:
    """Return the SHA-256 hash."""
    return hashlib.sha256(what).digest()


def judged(point: dict[str, Any]) -> dict[str, Any]:
    """Judge one shape, unless the control says that the second core was not free."""
    where = "a={a}, l={l}, c={c}".format(**point)
    control = point["control"]["median"]
    if control < CONTROL:
        figure = f"{point['speed-up']['median']:.2f}x"
        why = f"control reached {control:.2f}x, not {CONTROL}x; ours {figure}, {where}"
        return goals.not_measured(GOAL, why=why)
    where = f"{where}; control {control:.2f}x"
    return goals.goal(GOAL, point["speed-up"]["median"], least=1.7, unit="x", where=where)
