"""Counts of work and memory against measurements, and predicted seconds against real ones."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks import contenders, goals
from benchmarks.children import in_a_child
from benchmarks.inputs import INPUTS, PAPERS, SEED, SHARED, Images, Matrix, names, unrelated
from benchmarks.points import label, shape
from benchmarks.published import algorithm_2, algorithm_3
from benchmarks.timing import interleaved
from cobasis import ODC, Imakura, Kawakami, Whitened, align
from cobasis.algorithms.base import Aligner
from cobasis.algorithms.images import View
from cobasis.planning import memory, own, work
from cobasis.planning.own import predict_alignment
from cobasis.planning.rates import calibrate
from cobasis.planning.work import Size

METHODS: Mapping[str, Aligner] = {
    "odc": ODC(),
    "whitened": Whitened(),
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


PREDICTED = [
    a_size(*each)
    for each in (
        (1000, 50, 50),
        (1000, 10, 200),
        (5000, 50, 20),
        (1000, 200, 10),
        (1000, 600, 4),
        (20_000, 50, 10),
        (300, 20, 40),
    )
]
COUNTED = [a_size(*each) for each in ((1000, 20, 20), (1000, 50, 50), (2000, 50, 20))]
HELD_QUICK = [a_size(1000, 50, 40)]
HELD = [a_size(*each) for each in ((1000, 100, 50), (1000, 50, 400))]


def measure(*, quick: bool) -> dict[str, Any]:
    """Compare formulas with what happens.

    Parameters
    ----------
    quick : bool
        Fewer sizes.

    Returns
    -------
    dict
        ``prediction``, ``work``, ``memory`` and ``goals``.
    """
    take = slice(0, 2) if quick else slice(None)
    rates = calibrate()
    rounds = 3 if quick else 7
    predicted = [
        prediction(each, rates=rates, rounds=rounds, name=name)
        for name in (PAPERS, SHARED)
        for each in PREDICTED[take]
    ]
    counted = [counts(each) for each in COUNTED[: 1 if quick else None]]
    held = [
        peaks(each, method) for each in (HELD_QUICK if quick else HELD) for method in ALGORITHMS
    ]
    off = [
        (f"{method}, {each['input']}, {each['size']}", max(found["ratio"], 1 / found["ratio"]))
        for each in predicted
        for method, found in each["methods"].items()
    ]
    alike = [(f"{each['method']}, {each['size']}", each["paper's code / eq."]) for each in held]
    streamed = [(f"{each['method']}, {each['size']}", each["ours / own count"]) for each in held]
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
        "prediction": predicted,
        "work": counted,
        "memory": held,
        "goals": [
            goals.worst(off, "seconds predicted after calibration: off by a factor", most=3.0),
            goals.worst(clock, f"time of the paper's Algorithms 2 and 3, {units}"),
            goals.worst(alike, "peak memory of the paper's algorithms against eqs. 41-84"),
            goals.worst(streamed, "peak memory of ours against its own count"),
        ],
    }


def prediction(size: Size, *, rates: Any, rounds: int, name: str) -> dict[str, Any]:  # noqa: ANN401
    """Predict and time every method on one input of one size."""
    images = INPUTS[name](**shape(size))
    calls = {
        method: partial(align, aligner, images, workers=1) for method, aligner in METHODS.items()
    }
    times = interleaved(calls, rounds=rounds)
    found = {}
    for method in METHODS:
        seconds = predict_alignment(size, rates=rates, method=method, one_span=name == SHARED)
        real = times[method]["median"]
        found[method] = {"predicted": seconds, "seconds": real, "ratio": seconds / real}
    return {"input": name, "size": label(size), "methods": found}


def counts(size: Size) -> dict[str, Any]:
    """Time the paper's algorithms and set them against its operations, in units of ODC's."""
    images = unrelated(**shape(size))
    times = interleaved(
        {method: partial(run, images) for method, run in ALGORITHMS.items()}, rounds=3
    )
    operations = {method: getattr(work, method)(size) for method in ALGORITHMS}
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
    counted = getattr(memory, method)(size) * memory.BYTES_PER_NUMBER
    own_count = own.peak_bytes(method, size)
    return {
        "method": method,
        "size": label(size),
        "bytes": found,
        "eq.": counted,
        "own count": own_count,
        "paper's code / eq.": found["paper's code"] / counted,
        "ours / own count": found["ours"] / own_count,
    }


class Lazy(View[Matrix]):
    """Images that are drawn each time they are asked for.

    Parameters
    ----------
    a, l, c : int
        Their size and number.
    """

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
