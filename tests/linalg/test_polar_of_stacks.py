"""Stacks of matrices in one call: what each is alone, in any array library, however bad."""

import numpy as np
import pytest
from array_api_strict import asarray as strictly
from hypothesis import given
from hypothesis import strategies as st

from aligners import EPS, STEADY, haar, key_of
from cobasis.errors import NotFiniteError
from cobasis.linalg.polar import polar
from cobasis.linalg.rng import KeyStream


def normal(number: int, *shape: int) -> np.ndarray:
    return KeyStream(key_of(number), "tests/stacks").normal(shape)


def with_values(number: int, values: np.ndarray) -> np.ndarray:
    """A matrix of the given singular values."""
    return haar(2 * number, len(values)) * values @ haar(2 * number + 1, len(values))


def defect(rotation: np.ndarray) -> float:
    gram = rotation.swapaxes(-1, -2) @ rotation
    return float(np.abs(gram - np.eye(rotation.shape[-1])).max())


BAD = {
    "graded over 4 digits": np.geomspace(1, 1e-4, 20),
    "graded over 8 digits": np.geomspace(1, 1e-8, 20),
    "graded over 14 digits": np.geomspace(1, 1e-14, 20),
    "one that towers": np.array([1e6, *np.linspace(2, 1, 19)]),
    "one that towers, over graded ones": np.array([1e6, *np.geomspace(1, 1e-6, 19)]),
    "one that towers so far that the rest is rounding": np.array([1e20, *np.ones(19)]),
    "one that nearly towers": np.array([40.0, *np.ones(19)]),
    "all equal": np.full(20, 3.0),
    "equal but for rounding": 1 + 1e-9 * np.arange(20),
    "some zero": np.array([*np.ones(15), *np.zeros(5)]),
    "tiny": np.linspace(2e-150, 1e-150, 20),
}


@pytest.mark.parametrize("values", BAD.values(), ids=BAD)
def test_the_objective_is_the_svds_and_the_factor_orthogonal(values):
    matrix = with_values(3, values)
    found = polar(matrix[None])
    exact = np.linalg.svd(matrix, compute_uv=False)
    assert defect(found.rotation) <= 1e-12
    assert np.sum(found.rotation[0] * matrix) == pytest.approx(exact.sum(), rel=1e-12)
    np.testing.assert_allclose(found.singular_values[0], exact, rtol=1e-7, atol=20 * EPS * exact[0])


@given(number=st.integers(0, 10**6), rows=st.integers(1, 9), columns=st.integers(1, 9))
@STEADY
def test_a_stack_is_its_matrices_one_by_one(number, rows, columns):
    stack = normal(number, 3, 2, rows, columns)
    together = polar(stack)
    for index in np.ndindex(3, 2):
        alone = polar(stack[index])
        slack = 100 * EPS * float(np.linalg.cond(stack[index]))
        np.testing.assert_allclose(together.rotation[index], alone.rotation, rtol=0, atol=slack)
        np.testing.assert_allclose(
            together.singular_values[index], alone.singular_values, rtol=1e-12
        )


def test_one_bad_matrix_does_not_spoil_its_neighbours():
    good = with_values(1, np.linspace(2, 1, 20))
    for name, values in BAD.items():
        found = polar(np.stack([good, with_values(3, values), good]))
        assert defect(found.rotation) <= 1e-12, name
        np.testing.assert_allclose(
            found.rotation[0], polar(good).rotation, rtol=0, atol=1000 * EPS, err_msg=name
        )


def test_the_input_is_not_written_to():
    for values in BAD.values():
        matrix = with_values(3, values)
        kept = matrix.copy()
        polar(matrix)
        np.testing.assert_array_equal(matrix, kept)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 1e200])
def test_what_has_no_factor_is_refused(poison):
    stack = np.ones((3, 2, 2))
    stack[1, 0, 1] = poison
    with pytest.raises(NotFiniteError, match=r"NaN, infinity or numbers too large.*\[CB101\]$"):
        polar(stack)


def test_any_array_library_gets_its_own_arrays_back():
    for values in BAD.values():
        matrix = with_values(3, values)[None]
        found = polar(strictly(matrix))
        assert type(found.rotation) is type(strictly(matrix))
        np.testing.assert_array_equal(
            np.asarray(found.rotation), polar(matrix).rotation, err_msg=str(values)
        )


def test_torch_tensors_stay_where_they_are():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (it is no dependency)")
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    for device in devices:
        for values in BAD.values():
            matrix = with_values(3, values)[None]
            found = polar(torch.asarray(matrix, device=device))
            assert found.rotation.device.type == device
            rotation = found.rotation.cpu().numpy()
            assert defect(rotation) <= 1e-12
            exact = np.linalg.svd(matrix, compute_uv=False).sum()
            assert np.sum(rotation * matrix) == pytest.approx(exact, rel=1e-12)
