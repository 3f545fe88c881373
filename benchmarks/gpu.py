"""The same `polar` on a graphics card, where torch finds one."""

import importlib
from typing import Any

from benchmarks import goals
from benchmarks.timing import summary
from cobasis.linalg.polar import polar

GOAL = "graphics card: 100,000 parties, a=1000, l=50, products and factors"
A, L, ROUNDS = 1000, 50, 7
MOST_PARTIES = 100_000


def measure(*, quick: bool) -> dict[str, Any]:
    """Time cross products and polar factors on the card, or say that there is none."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return absent("no GPU here; torch is not installed")
    if not torch.cuda.is_available():
        return absent("no GPU here; torch sees none")
    fits = int(torch.cuda.mem_get_info()[0] * 0.8 / (8 * L * (A + 12 * L)))
    sizes = (1000,) if quick else (1000, 20_000, MOST_PARTIES)
    points = {c: a_point(torch, c) for c in sizes if c <= fits}
    judged = goals.not_measured(GOAL, why="short run, or too little memory on the card")
    if MOST_PARTIES in points:
        took = 1000 * points[MOST_PARTIES]["seconds"]["both"]
        judged = goals.goal(GOAL, took, most=100, unit=" ms")
    card = torch.cuda.get_device_name()
    return {"card": card, "points": list(points.values()), "goals": [judged]}


def absent(why: str) -> dict[str, Any]:
    """Say why nothing was measured."""
    return {"points": [], "goals": [goals.not_measured(GOAL, why=why)]}


def a_point(torch: Any, c: int) -> dict[str, Any]:
    """Time one number of parties."""
    images = torch.rand((c, A, L), dtype=torch.float64, device="cuda")
    first = images[0].clone()
    cross = torch.matmul(first.T, images)
    products = timed(torch, lambda: torch.matmul(first.T, images))["median"]
    factors = timed(torch, lambda: polar(cross))["median"]
    rotation = polar(cross).rotation
    identity = torch.eye(L, dtype=torch.float64, device="cuda")
    return {
        "c": c,
        "a": A,
        "l": L,
        "seconds": {"products": products, "factors": factors, "both": products + factors},
        "orthogonality": float((rotation.transpose(-1, -2) @ rotation - identity).abs().max()),
    }


def timed(torch: Any, call: Any) -> dict[str, Any]:
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
