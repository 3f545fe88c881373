"""GOPP with momentum against the papers' alternation: iterations, time, and what they end at."""

from typing import Any

from benchmarks import goals
from benchmarks.exactness import objective
from benchmarks.inputs import Shape, different, where
from benchmarks.timing import interleaved, ratio
from cobasis import GOPP, align

ROUNDS, ROUNDS_QUICK = 7, 3
WAYS = {"momentum": GOPP(), "alternation": GOPP(momentum=False)}


def measure(*, quick: bool) -> dict[str, Any]:
    """Time both to the same tolerance, one thread, under two anchors."""
    shape, rounds = (Shape(200, 20, 10), ROUNDS_QUICK) if quick else (Shape(), ROUNDS)
    inputs = [an_input(anchor, shape, rounds=rounds) for anchor in ("isometric", "uniform")]
    return {"inputs": inputs, "goals": [judged(each) for each in inputs]}


def an_input(anchor: str, shape: Shape, *, rounds: int) -> dict[str, Any]:
    """Measure both under one anchor."""
    images = different(anchor)(**shape._asdict())
    found = {name: align(way, images, workers=1) for name, way in WAYS.items()}
    calls = {name: lambda way=way: align(way, images, workers=1) for name, way in WAYS.items()}
    times = interleaved(calls, rounds=rounds, warm=False)
    ends = {
        name: objective(images, each.changes_of_basis, each.target.rows)
        for name, each in found.items()
    }
    return {
        **shape._asdict(),
        "anchor": anchor,
        "iterations": {name: each.target.iterations for name, each in found.items()},
        "seconds": times,
        "alternation / momentum": ratio(times, "alternation", "momentum"),
        "objective, momentum / alternation": ends["momentum"] / ends["alternation"],
    }


def judged(found: dict[str, Any]) -> goals.Judged:
    """Say the ratio, and what both end at; no goal asks for it."""
    iterations = " and ".join(f"{found['iterations'][name]} with {name}" for name in WAYS)
    end = found["objective, momentum / alternation"] - 1
    told = f"iterations: {iterations}; objective {end:+.1e} of the alternation's"
    return goals.goal(
        f"GOPP with momentum against the papers' alternation: different, {found['anchor']} anchor",
        found["alternation / momentum"]["median"],
        unit="x",
        where=f"{where(found)}; {told}",
    )
