"""The published forms compute what ours compute, and aligning has not become slow by accident."""

from statistics import median

import numpy as np
import pytest
from benchmarks.contenders import FORMS, scipy_loop
from benchmarks.exactness import difference
from benchmarks.inputs import different, separated, shared
from benchmarks.timing import interleaved, ratio

from cobasis import ODC, Imakura, Kawakami, align
from cobasis.linalg.threads import one_blas_thread

OURS = {"Imakura": Imakura(scale="paper"), "Kawakami": Kawakami(scale="paper")}


@pytest.mark.parametrize("c", [5, 3])  # more columns beside each other than anchor rows, or fewer
@pytest.mark.parametrize("name", FORMS)
def test_a_published_form_finds_our_solution_up_to_a_rotation(name, c):
    images = separated(a=16, l=4, c=c, noise=0.3)
    ours = dict(align(OURS[name.split(",")[0]], images).changes_of_basis)
    tolerance = 1e-4 if "randomised" in name else 1e-10
    found = FORMS[name].run(images)
    assert difference(images, found, ours) < tolerance
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    assert difference(images, {who: each @ turn for who, each in found.items()}, ours) < tolerance
    assert difference(images, {who: 1.01 * each for who, each in found.items()}, ours) > 0.01


SHAPES = {
    "different spans": (different("isometric"), {"l": 50, "c": 40}),
    "shared span": (shared, {"l": 50, "c": 40}),
    "many components": (shared, {"l": 200, "c": 6}),
}
AS_SLOW = 1.5
"""The bench asks for 1.3 and 2 times faster; a shared machine's test for not much slower."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "times", "slower"),
    [*((name, 1, False) for name in SHAPES), ("shared span", 12, True)],
)
def test_aligning_is_about_as_fast_as_the_scipy_loop_and_a_slow_call_would_be_noticed(
    name, times, slower
):
    made, size = SHAPES[name]
    images, found = made(a=1000, **size), []
    calls = {
        "ours": lambda: [align(ODC(), images, workers=1) for _ in range(times)],
        "scipy": lambda: scipy_loop(images),
    }
    with one_blas_thread():  # for the loop; ours caps itself
        for _ in range(1 if slower else 4):  # a disturbance passes, a regression stays
            found.append(ratio(interleaved(calls, rounds=3 if slower else 7), *calls)["median"])
            if found[-1] < AS_SLOW:
                break
    told = f"ours / scipy loop: {found}, median {median(found):.2f}"
    assert (min(found) > AS_SLOW) == slower, told
