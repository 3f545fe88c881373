"""Two threads against one, in the rounds in which this machine has two cores free."""

import os
from typing import Any

from benchmarks import contenders, goals
from benchmarks.inputs import different
from benchmarks.second_core import in_free_rounds
from benchmarks.timing import spread

ROUNDS, ROUNDS_QUICK = 21, 3
SHAPES = ({"a": 1000, "l": 50, "c": 400}, {"a": 1000, "l": 200, "c": 50})
GOAL = "two threads against one"


def measure(*, quick: bool) -> dict[str, Any]:
    """Time ours with one and with two threads."""
    shapes, rounds = (SHAPES[:1], ROUNDS_QUICK) if quick else (SHAPES, ROUNDS)
    points = [a_point(each, rounds=rounds) for each in shapes]
    return {"points": points, "goals": [judged(each, rounds=rounds) for each in points]}


def a_point(shape: dict[str, int], *, rounds: int) -> dict[str, Any]:
    """Time one shape."""
    images = different("isometric")(**shape)
    calls = {
        "one": lambda: contenders.ours(images, workers=1),
        "two": lambda: contenders.ours(images, workers=2),
    }
    found = in_free_rounds(calls, wanted=rounds)
    gained = [one / two for one, two in zip(*found.runs.values(), strict=True)]
    return {
        **shape,
        "runs": found.runs,
        "speed-up": spread(gained) if gained else None,
        "control": spread(found.controls),
        "told": found.told,
        "cores": os.cpu_count(),
    }


def judged(point: dict[str, Any], *, rounds: int) -> dict[str, Any]:
    """Judge one shape, unless too few rounds had the second core free."""
    where = "a={a}, l={l}, c={c}; {told}".format(**point)
    if len(point["runs"]["one"]) < rounds:
        return goals.not_measured(GOAL, why=f"{where}, and {rounds} were wanted")
    return goals.goal(GOAL, point["speed-up"]["median"], least=1.7, unit="x", where=where)
