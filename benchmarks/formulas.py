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

METHODS: Mapping[str, Aligner] = {"odc": ODC(), "imakura": Imakura(), "kawakami": Kawakami()}
ALGORITHMS: Mapping[str, Callable[[Images], dict[str, Matrix]]] = {
    "imakura": contenders.imakura_thin,
    "kawakami": contenders.kawakami_thin,
    "odc": contenders.svd_loop,
}
"""As the paper writes them, which is what its formulas count."""

BYTES_PER_NUMBER = 8  # float64

COUNTED = (Shape(1000, 20, 20), Shape(1000, 50, 50), Shape(2000, 50, 20))
HELD_QUICK = (Shape(1000, 50, 40),)
HELD = (Shape(1000, 100, 50), Shape(1000, 50, 400))


def measure(*, quick: bool) -> dict[str, Any]:
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


def operations_of(shape: Shape) -> dict[str, float]:
    """Return each method's leading terms, with *full* decompositions (eqs. 39, 57 and 80)."""
    a, l, c = shape
    small, large = sorted((a, c * l))
    together = 4 * large * small**2 + 8 * small**3  # one decomposition of all images (Table 2)
    return {
        "imakura": together + (6 * c + 2) * a * l**2 + 8 * c * l**3,
        "kawakami": together + c * (2 * a * l**2 + 2 / 3 * l**3),
        "odc": 2 * c * a * l**2 + 16 * c * l**3,
    }


def numbers_of(shape: Shape) -> dict[str, int]:
    """Return what each method holds at its peak, all images with it (eqs. 41-46, 59-66, 82-84)."""
    a, l, c = shape
    images, changes, workspace = a * c * l, c * l**2, min(a, c * l) ** 2
    return {
        "imakura": images + max(a * l + workspace, 2 * a * l + l**2, a * l + changes),
        "kawakami": images + max(a * l, changes + workspace, 2 * changes),
        "odc": images + changes + 4 * l**2,
    }


def counts(shape: Shape) -> dict[str, Any]:
    """Time the paper's algorithms and set them against its operations, in units of ODC's."""
    images = unrelated(**shape._asdict())
    times = interleaved({name: partial(run, images) for name, run in ALGORITHMS.items()}, rounds=3)
    took = {name: times[name]["median"] for name in ALGORITHMS}
    operations = operations_of(shape)
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
    counted = numbers_of(shape)[method] * BYTES_PER_NUMBER
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
