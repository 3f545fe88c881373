"""The same `polar` on a graphics card, where torch finds one."""

import importlib
from typing import Any

from benchmarks import goals
from benchmarks.timing import summary
from cobasis.linalg.polar import polar

GOAL = "graphics card: 100,000 parties, a=1000, l=50, products and factors"
ROUNDS = 7
A, L = 1000, 50


def measure(*, quick: bool) -> dict[str, Any]:
    """Time cross products and polar factors on the card, or say that there is none."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return absent("no GPU here; torch is not installed")
    if not torch.cuda.is_available():
        return absent("no GPU here; torch sees none")
    fits = int(torch.cuda.mem_get_info()[0] * 0.8 / (8 * L * (A + 12 * L)))
    points = [
        a_point(torch, c) for c in ((1000,) if quick else (1000, 20_000, 100_000)) if c <= fits
    ]
    found = [each for each in points if each["c"] == 100_000]  # noqa: PLR2004 -- the goal's size
    judged = (
        goals.goal(GOAL, found[0]["seconds"]["both"] * 1000, most=100, unit=" ms")
        if found
        else goals.not_measured(GOAL, why="short run, or too little memory on the card")
    )
    return {"card": torch.cuda.get_device_name(), "points": points, "goals": [judged]}


def absent(why: str) -> dict[str, Any]:
    """Say why nothing was measured."""
    return {"points": [], "goals": [goals.not_measured(GOAL, why=why)]}


def a_point(torch: Any, c: int) -> dict[str, Any]:  # noqa: ANN401 -- an optional library
    """Time one number of parties."""
    images = torch.rand((c, A, L), dtype=torch.float64, device="cuda")
    first = images[0].clone()
    cross = torch.matmul(first.T, images)
    products = timed(torch, lambda: torch.matmul(first.T, images))
    factors = timed(torch, lambda: polar(cross))
    rotation = polar(cross).rotation
    defect = rotation.transpose(-1, -2) @ rotation - torch.eye(
        L, dtype=torch.float64, device="cuda"
    )
    return {
        "c": c,
        "a": A,
        "l": L,
        "seconds": {
            "products": products["median"],
            "factors": factors["median"],
            "both": products["median"] + factors["median"],
        },
        "orthogonality": float(defect.abs().max()),
    }


def timed(torch: Any, call: Any) -> dict[str, Any]:  # noqa: ANN401 -- an optional library
    """Time a call by the card's own clock."""
    call()
    runs = []
    for _ in range(ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        runs.append(start.elapsed_time(end) / 1000)
    return summary(runs)
