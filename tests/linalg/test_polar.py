import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import polar as scipy_polar

from aligners import EPS, GOLDEN, STEADY, normal, with_values
from cobasis.errors import NotFiniteError
from cobasis.linalg.polar import polar


@given(number=st.integers(0, 10**6), rows=st.integers(1, 8), columns=st.integers(1, 8))
@STEADY
def test_each_matrix_of_a_stack_has_scipys_factor(number, rows, columns):
    stack = normal(number, 2, 2, rows, columns)
    together = polar(stack)
    for index in np.ndindex(2, 2):
        slack = 100 * EPS * float(np.linalg.cond(stack[index]))
        expected = scipy_polar(stack[index])[0]
        np.testing.assert_allclose(together.rotation[index], expected, rtol=0, atol=slack)
        values = np.linalg.svd(stack[index], compute_uv=False)
        np.testing.assert_allclose(together.singular_values[index], values, rtol=GOLDEN)


BAD = {
    "graded over 8 digits": np.geomspace(1, 1e-8, 20),
    "graded over 14 digits": np.geomspace(1, 1e-14, 20),
    "one that towers": np.array([1e6, *np.linspace(2, 1, 19)]),
    "one that towers so far that the rest is rounding": np.array([1e20, *np.ones(19)]),
    "equal but for rounding": 1 + 1e-9 * np.arange(20),
    "some zero": np.array([*np.ones(15), *np.zeros(5)]),
    "all zero": np.zeros(20),
    "tiny": np.linspace(2e-150, 1e-150, 20),
    "orthogonal but for one length": np.full(20, 7.0),
}


@pytest.mark.parametrize("name", BAD)
def test_the_objective_is_the_svds_and_no_bad_matrix_spoils_its_neighbours(name):
    matrix, good = with_values(3, BAD[name]), with_values(1, np.linspace(2, 1, 20))
    stack = np.stack([good, matrix, good])
    kept = stack.copy()
    found = polar(stack)
    exact = np.linalg.svd(matrix, compute_uv=False)
    gram = found.rotation.swapaxes(-1, -2) @ found.rotation
    assert np.abs(gram - np.eye(20)).max() <= 1e-12
    assert np.sum(found.rotation[1] * matrix) == pytest.approx(exact.sum(), rel=1e-12)
    np.testing.assert_allclose(found.singular_values[1], exact, rtol=1e-7, atol=20 * EPS * exact[0])
    np.testing.assert_allclose(found.rotation[0], scipy_polar(good)[0], atol=1000 * EPS)
    np.testing.assert_array_equal(stack, kept)


def test_weak_directions_are_turned_no_further_than_strong_ones():
    matrix = with_values(3, np.geomspace(1, 1e-5, 20))
    np.testing.assert_allclose(polar(matrix[None]).rotation[0], scipy_polar(matrix)[0], atol=1e-11)


@pytest.mark.parametrize("poison", [np.nan, -np.inf, 1e200])
def test_what_has_no_factor_is_refused(poison):
    stack = np.ones((3, 2, 2))
    stack[1, 0, 1] = poison
    with pytest.raises(NotFiniteError, match=r"NaN, infinity or numbers too large.*\[CB101\]$"):
        polar(stack)
