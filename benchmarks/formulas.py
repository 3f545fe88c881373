"""The paper's counts of work and memory against measurements."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks import contenders, goals
from benchmarks.children import in_a_child
from benchmarks.inputs import SEED, Images, Matrix, names, unrelated
from benchmarks.points import label, shape
from benchmarks.published import algorithm_2, algorithm_3
from benchmarks.timing import interleaved
from cobasis import ODC, Imakura, Kawakami, align
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.images import View
from cobasis.planning.costs import BYTES_PER_NUMBER, NUMBERS, OPERATIONS, Size

METHODS: Mapping[str, Aligner] = {
    "odc": ODC(),
    "imakura": Imakura(),
    "kawakami": Kawakami(),
}
ALGORITHMS: Mapping[str, Callable[[Images], object]] = {
    "imakura": algorithm_2,
    "kawakami": algorithm_3,
    "odc": contenders.svd_loop,
}
"""As the paper writes them, which is what its formulas count."""


def a_size(a: int, l: int, c: int) -> Size:  # noqa: E741 -- the paper's letters
    """Return a size."""
    return Size(n_anchor_rows=a, n_components=l, n_parties=c)


COUNTED = [a_size(*each) for each in ((1000, 20, 20), (1000, 50, 50), (2000, 50, 20))]
HELD_QUICK = [a_size(1000, 50, 40)]
HELD = [a_size(*each) for each in ((1000, 100, 50), (1000, 50, 400))]


def measure(*, quick: bool) -> dict[str, Any]:
    """Compare formulas with what happens."""
    counted = [counts(each) for each in COUNTED[: 1 if quick else None]]
    held = [
        peaks(each, method) for each in (HELD_QUICK if quick else HELD) for method in ALGORITHMS
    ]
    alike = [(f"{each['method']}, {each['size']}", each["paper's code / eq."]) for each in held]
    units = "in ODCs, by the clock over by the count"
    clock = [
        (
            f"{method}, {each['size']}",
            each["seconds in ODCs"][method] / each["work in ODCs"][method],
        )
        for each in counted
        for method in ("imakura", "kawakami")
    ]
    return {
        "work": counted,
        "memory": held,
        "goals": [
            goals.worst(clock, f"time of the paper's Algorithms 2 and 3, {units}"),
            goals.worst(alike, "peak memory of the paper's algorithms against eqs. 41-84"),
        ],
    }


def counts(size: Size) -> dict[str, Any]:
    """Time the paper's algorithms and set them against its operations, in units of ODC's."""
    images = unrelated(**shape(size))
    times = interleaved(
        {method: partial(run, images) for method, run in ALGORITHMS.items()}, rounds=3
    )
    operations = {method: OPERATIONS[method](size) for method in ALGORITHMS}
    return {
        "size": label(size),
        "operations": operations,
        "seconds": {method: times[method]["median"] for method in ALGORITHMS},
        "operations a second": {
            method: operations[method] / times[method]["median"] for method in ALGORITHMS
        },
        "work in ODCs": {each: operations[each] / operations["odc"] for each in operations},
        "seconds in ODCs": {
            each: times[each]["median"] / times["odc"]["median"] for each in operations
        },
    }


def peaks(size: Size, method: str) -> dict[str, Any]:
    """Return the peaks of processes of their own beside what is counted."""
    options = {"method": method, **shape(size)}
    theirs = in_a_child("formulas:run_theirs", **options)
    ours = in_a_child("formulas:run_ours", **options)
    found = {
        name: each["peak_bytes"] - each["peak_before_bytes"]
        for name, each in (("paper's code", theirs), ("ours", ours))
    }
    counted = NUMBERS[method](size) * BYTES_PER_NUMBER
    return {
        "method": method,
        "size": label(size),
        "bytes": found,
        "eq.": counted,
        "paper's code / eq.": found["paper's code"] / counted,
    }


class Lazy(View[Matrix]):
    """Images that are drawn each time they are asked for."""

    def __init__(self, *, a: int, l: int, c: int) -> None:  # noqa: E741
        self._shape = (a, l)
        self._numbers = {name: number for number, name in enumerate(names(c))}
        super().__init__(self._numbers, read=self._drawn)

    def _drawn(self, name: str) -> Matrix:
        """Draw one."""
        return np.random.default_rng([SEED, self._numbers[name]]).random(self._shape)


def run_theirs(method: str, **size: int) -> int:
    """Align all images at once, as the paper writes it."""
    images = unrelated(**size)
    found = ALGORITHMS[method](images)
    return len(list(found)) if isinstance(found, dict) else 0


def run_ours(method: str, **size: int) -> int:
    """Align lazy images with ours, one thread; G_i stay in memory."""
    return len(align(METHODS[method], Lazy(**size), workers=1).fits)
