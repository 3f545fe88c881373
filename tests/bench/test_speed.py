"""Alignment has not become slow by accident: a ratio in one process, with a generous margin."""

from statistics import median

import pytest
from benchmarks.inputs import different, shared
from benchmarks.timing import interleaved, ratio
from scipy.linalg import orthogonal_procrustes

from cobasis import ODC, align
from cobasis.linalg.threads import one_blas_thread

ATTEMPTS = 4
AS_SLOW = 1.5
"""The bench asks for 1.3 and 2 times faster; a shared machine's test for not much slower."""

SHAPES = {
    "different spans": different("isometric")(a=1000, l=50, c=40),
    "shared span": shared(a=1000, l=50, c=40),
    "many components": shared(a=1000, l=200, c=6),
}


def scipy_loop(images):
    first = next(iter(images.values()))
    return {name: orthogonal_procrustes(image, first)[0] for name, image in images.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_aligning_is_about_as_fast_as_the_scipy_loop_or_faster(name):
    images = SHAPES[name]
    calls = {"ours": lambda: align(ODC(), images, workers=1), "scipy": lambda: scipy_loop(images)}
    found = []
    with one_blas_thread():  # for the loop; ours caps itself
        for _ in range(ATTEMPTS):  # a disturbance passes, a regression stays
            found.append(ratio(interleaved(calls, rounds=7), "ours", "scipy")["median"])
            if found[-1] < AS_SLOW:
                break
    assert min(found) < AS_SLOW, f"ours / scipy loop: {found}, median {median(found):.2f}"


@pytest.mark.slow
def test_a_slow_call_would_be_noticed():
    images = SHAPES["shared span"]
    calls = {
        "ours": lambda: [align(ODC(), images, workers=1) for _ in range(12)],
        "scipy": lambda: scipy_loop(images),
    }
    with one_blas_thread():
        assert ratio(interleaved(calls, rounds=3), "ours", "scipy")["median"] > AS_SLOW
