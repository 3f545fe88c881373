"""Two threads against one, and what happens to the time when a second process is busy.

Both count only in rounds in which a control says that two cores are free: a machine that was not
quiet before would flatter the ratio to the busy time.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Barrier, Process
from typing import Any

from benchmarks import contenders, goals
from benchmarks.inputs import Shape, different, where
from benchmarks.timing import Call, in_free_rounds, seconds, spread, summary
from cobasis import ODC, align

ROUNDS, ROUNDS_QUICK = 21, 3
SHAPES = (Shape(c=400), Shape(l=200))
THREADS = "two threads against one"

BUSY, BUSY_QUICK = Shape(c=400), Shape(c=200)
QUIET_ROUNDS, NAIVE_ROUNDS = 7, 3
NAIVE_PARTIES = 20
"""The loop without a cap is timed on these: on a busy machine a party can take a second."""

MOST_SLOWER = {
    "ours": ("busy machine: ours against its quiet time", 3.0),
    "scipy loop": (
        "busy machine: scipy loop, default BLAS threads, against its quiet time",
        float("inf"),
    ),
}


def two_threads(*, quick: bool) -> dict[str, Any]:
    shapes, rounds = (SHAPES[:1], ROUNDS_QUICK) if quick else (SHAPES, ROUNDS)
    points = [a_point(each, rounds=rounds) for each in shapes]
    return {"points": points, "goals": [judged_threads(each, rounds=rounds) for each in points]}


def a_point(shape: Shape, *, rounds: int) -> dict[str, Any]:
    images = different("isometric")(**shape._asdict())
    calls = {
        "one": lambda: contenders.ours(images, workers=1),
        "two": lambda: contenders.ours(images, workers=2),
    }
    found = in_free_rounds(calls, wanted=rounds)
    gained = [one / two for one, two in zip(*found.runs.values(), strict=True)]
    return {
        **shape._asdict(),
        "runs": found.runs,
        "speed-up": spread(gained) if gained else None,
        "control": spread(found.controls),
        "told": found.told,
        "cores": os.cpu_count(),
    }


def judged_threads(point: dict[str, Any], *, rounds: int) -> goals.Judged:
    """Judge one shape, unless too few rounds had the second core free."""
    told = f"{where(point)}; {point['told']}"
    if len(point["runs"]["one"]) < rounds:
        return goals.not_measured(THREADS, why=f"{told}, and {rounds} were wanted")
    return goals.goal(THREADS, point["speed-up"]["median"], least=1.7, unit="x", where=told)


def busy_machine(*, quick: bool) -> dict[str, Any]:
    """Time ours and the scipy loop, both with their defaults, quiet and then busy."""
    images = different("isometric")(**(BUSY_QUICK if quick else BUSY)._asdict())
    few = dict(list(images.items())[:NAIVE_PARTIES])
    calls: dict[str, Call] = {
        "ours": lambda: align(ODC(), images),
        "scipy loop": lambda: contenders.scipy_loop(few),
    }
    load_average = os.getloadavg()[0]
    found = in_free_rounds(calls, wanted=QUIET_ROUNDS)
    rounds = {"ours": QUIET_ROUNDS, "scipy loop": 1 if quick else NAIVE_ROUNDS}
    with load():
        busy = {
            name: summary([seconds(call) for _ in range(rounds[name])])
            for name, call in calls.items()
        }
    enough = found.free == QUIET_ROUNDS
    quiet = {name: summary(runs) for name, runs in found.runs.items() if enough}
    slower = {name: busy[name]["median"] / quiet[name]["median"] for name in quiet}
    return {
        "cores": os.cpu_count(),
        "load_before_quiet": load_average,
        "controls": found.controls,
        "parties": {"ours": len(images), "scipy loop": len(few)},
        "seconds": {"quiet": quiet, "busy": busy},
        "slow-down": slower,
        "goals": judged_busy(slower, told=found.told),
    }


def judged_busy(slower: dict[str, float], *, told: str) -> list[goals.Judged]:
    """Judge ours, unless too few rounds of the quiet time were quiet."""
    if not slower:
        why = f"not quiet before: {told}, and {QUIET_ROUNDS} were wanted"
        return [goals.not_measured(what, why=why) for what, _ in MOST_SLOWER.values()]
    return [
        goals.goal(what, slower[name], most=most, unit="x", where=told)
        for name, (what, most) in MOST_SLOWER.items()
    ]


@contextmanager
def load() -> Iterator[None]:
    busy = Barrier(1 + (os.cpu_count() or 1))
    others = [Process(target=spin, args=(busy,), daemon=True) for _ in range(busy.parties - 1)]
    for each in others:
        each.start()
    busy.wait()
    try:
        yield
    finally:
        for each in others:
            each.kill()


def spin(busy: Any) -> None:
    """Hash for ever, once all others are there."""
    busy.wait()
    while True:
        hashlib.sha256(bytes(2**20))
