"""The paper's counts of work and memory against measurements."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks import contenders, goals
from benchmarks.inputs import SEED, Images, Matrix, Shape, names, unrelated, where
from benchmarks.machine import in_a_child
from benchmarks.timing import interleaved
from cobasis import ODC, Imakura, Kawakami, align
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.images import View
from cobasis.planning.costs import BYTES_PER_NUMBER, NUMBERS, OPERATIONS, Size

METHODS: Mapping[str, Aligner] = {"odc": ODC(), "imakura": Imakura(), "kawakami": Kawakami()}
ALGORITHMS: Mapping[str, Callable[[Images], dict[str, Matrix]]] = {
    "imakura": contenders.imakura_thin,
    "kawakami": contenders.kawakami_thin,
    "odc": contenders.svd_loop,
}
"""As the paper writes them, which is what its formulas count."""

COUNTED = (Shape(1000, 20, 20), Shape(1000, 50, 50), Shape(2000, 50, 20))
HELD_QUICK = (Shape(1000, 50, 40),)
HELD = (Shape(1000, 100, 50), Shape(1000, 50, 400))


def measure(*, quick: bool) -> dict[str, Any]:
    """Compare formulas with what happens."""
    counted = [counts(each) for each in COUNTED[: 1 if quick else None]]
    held = [peaks(each, name) for each in (HELD_QUICK if quick else HELD) for name in ALGORITHMS]
    alike = [(f"{each['method']}, {each['size']}", each["paper's code / eq."]) for each in held]
    units = "in ODCs, by the clock over by the count"
    clock = [
        (f"{name}, {each['size']}", each["seconds in ODCs"][name] / each["work in ODCs"][name])
        for each in counted
        for name in ("imakura", "kawakami")
    ]
    return {
        "work": counted,
        "memory": held,
        "goals": [
            goals.worst(clock, f"time of the paper's Algorithms 2 and 3, {units}"),
            goals.worst(alike, "peak memory of the paper's algorithms against eqs. 41-84"),
        ],
    }


def as_counted(shape: Shape) -> Size:
    """Return a size as the formulas take it."""
    return Size(n_anchor_rows=shape.a, n_components=shape.l, n_parties=shape.c)


def counts(shape: Shape) -> dict[str, Any]:
    """Time the paper's algorithms and set them against its operations, in units of ODC's."""
    images = unrelated(**shape._asdict())
    times = interleaved({name: partial(run, images) for name, run in ALGORITHMS.items()}, rounds=3)
    took = {name: times[name]["median"] for name in ALGORITHMS}
    operations = {name: OPERATIONS[name](as_counted(shape)) for name in ALGORITHMS}
    return {
        "size": where(shape._asdict()),
        "operations": operations,
        "seconds": took,
        "operations a second": {name: operations[name] / took[name] for name in ALGORITHMS},
        "work in ODCs": {name: operations[name] / operations["odc"] for name in ALGORITHMS},
        "seconds in ODCs": {name: took[name] / took["odc"] for name in ALGORITHMS},
    }


def peaks(shape: Shape, method: str) -> dict[str, Any]:
    """Return the peaks of processes of their own beside what is counted."""
    found = {}
    for name, work in (("paper's code", "run_theirs"), ("ours", "run_ours")):
        each = in_a_child(f"formulas:{work}", method=method, **shape._asdict())
        found[name] = each["peak_bytes"] - each["peak_before_bytes"]
    counted = NUMBERS[method](as_counted(shape)) * BYTES_PER_NUMBER
    return {
        "method": method,
        "size": where(shape._asdict()),
        "bytes": found,
        "eq.": counted,
        "paper's code / eq.": found["paper's code"] / counted,
    }


def run_theirs(method: str, **size: int) -> int:
    """Align all images at once, as the paper writes it."""
    return len(ALGORITHMS[method](unrelated(**size)))


def run_ours(method: str, *, a: int, l: int, c: int) -> int:
    """Align images that are drawn when asked for with ours, one thread; G_i stay in memory."""
    numbers = {name: number for number, name in enumerate(names(c))}

    def drawn(name: str) -> Matrix:
        return np.random.default_rng([SEED, numbers[name]]).random((a, l))

    return len(align(METHODS[method], View(numbers, read=drawn), workers=1).fits)
