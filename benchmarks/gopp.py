"""GOPP with momentum against the papers' alternation: iterations, time, and what they end at."""

from typing import Any

import numpy as np

from benchmarks import goals
from benchmarks.inputs import Images, different
from benchmarks.timing import interleaved, ratio
from cobasis import GOPP, Alignment, align

SHAPE = {"a": 1000, "l": 50, "c": 50}
SHAPE_QUICK = {"a": 200, "l": 20, "c": 10}
ROUNDS, ROUNDS_QUICK = 7, 3
WAYS = {"momentum": GOPP(), "alternation": GOPP(momentum=False)}


def measure(*, quick: bool) -> dict[str, Any]:
    """Time both to the same tolerance, one thread, under two anchors."""
    shape = SHAPE_QUICK if quick else SHAPE
    rounds = ROUNDS_QUICK if quick else ROUNDS
    inputs = [an_input(anchor, shape, rounds=rounds) for anchor in ("isometric", "uniform")]
    return {"inputs": inputs, "goals": [judged(each) for each in inputs]}


def an_input(anchor: str, shape: dict[str, int], *, rounds: int) -> dict[str, Any]:
    """Measure both under one anchor."""
    images = different(anchor)(**shape)
    found = {name: align(way, images, workers=1) for name, way in WAYS.items()}
    calls = {name: lambda way=way: align(way, images, workers=1) for name, way in WAYS.items()}
    times = interleaved(calls, rounds=rounds, warm=False)
    ends = {name: objective(images, each) for name, each in found.items()}
    return {
        **shape,
        "anchor": anchor,
        "iterations": {name: each.target.iterations for name, each in found.items()},
        "seconds": times,
        "alternation / momentum": ratio(times, "alternation", "momentum"),
        "objective, momentum / alternation": ends["momentum"] / ends["alternation"],
    }


def objective(images: Images, found: Alignment) -> float:
    """Return the sum of ``||A_i G_i - Z||^2``."""
    pairs = found.changes_of_basis.items()
    return float(
        sum(np.sum((images[name] @ turn - found.target.rows) ** 2) for name, turn in pairs)
    )


def judged(found: dict[str, Any]) -> dict[str, Any]:
    """Say the ratio, and what both end at; no goal asks for it."""
    iterations = " and ".join(f"{found['iterations'][name]} with {name}" for name in WAYS)
    end = found["objective, momentum / alternation"] - 1
    where = "a={a}, l={l}, c={c}".format(**found)
    return goals.goal(
        f"GOPP with momentum against the papers' alternation: different, {found['anchor']} anchor",
        found["alternation / momentum"]["median"],
        unit="x",
        where=f"{where}; iterations: {iterations}; objective {end:+.1e} of the alternation's",
    )
