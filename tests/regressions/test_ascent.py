from dataclasses import replace

import numpy as np
import pytest

from cobasis.errors import EstimateError
from cobasis.statistics.ascent import Slopes, ascend, inverse_of


def test_too_long_a_step_is_halved_until_the_likelihood_grows():
    asked = []

    def at(_, weights):  # -log cosh: from 2 Newton's step goes to -12, where rows are left out
        [x] = weights
        asked.append(x)
        told = {"value": -np.log(np.cosh(x)), "curvature": np.array([[1 / np.cosh(x) ** 2]])}
        told |= {"value": 0.0, "beyond": True} if x < -5 else {}
        return Slopes(slope=-np.tanh(weights), **told)

    start = np.array([2.0])
    found = ascend(at(None, start), start, later=range(12), at=at)
    assert asked[1] < -10
    assert asked[2:4] == pytest.approx([2 + (asked[1] - 2) / 2, 2 + (asked[1] - 2) / 4])
    assert found.settled
    assert found.weights == pytest.approx(0, abs=1e-9)
    for off, rest in ((1e-5, False), (1e-7, True)):  # by so many standard errors a step would move
        assert ascend(at(None, [off]), [off], later=(), at=at).settled == rest
    near = np.array([1e-9])  # nor is it at rest where a step was worse, however short
    worse = replace(at(None, near), value=-1.0)
    assert not ascend(at(None, near), near, later=range(1), at=lambda *_: worse).settled
    flat = replace(worse, value=1.0, curvature=np.zeros((1, 1)))
    with pytest.raises(EstimateError, match="columns tell nothing any more"):
        ascend(at(None, near), near, later=range(1), at=lambda *_: flat)


@pytest.mark.parametrize(("gap", "lost"), [(1e-11, 1), (1e-9, 0)])
def test_columns_that_are_nearly_alike_are_told_from_those_that_follow(gap, lost):
    assert inverse_of(np.array([[1.0, 1.0 - gap], [1.0 - gap, 1.0]]))[1].shape == (2, lost)
