"""One image as Q R, and least squares by it, whichever way its condition takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aligners import EPS, STEADY, haar, key_of
from cobasis.algorithms import fits
from cobasis.errors import AnchorImageError, ConditionError, NotFiniteError
from cobasis.linalg.arrays import triangle_of
from cobasis.linalg.rng import KeyStream

ROUTES = {
    "one step": 3.0,
    "the worst for one step": 30.0,
    "two steps": 1e3,
    "the worst for two steps": 3e4,
    "reflections": 1e7,
}


def image_of(condition: float, *, rows: int = 40, columns: int = 6) -> np.ndarray:
    """An image whose singular values fall from 1 to 1 / condition."""
    left, right = haar(1, rows)[:, :columns], haar(2, columns)
    return left * np.geomspace(1.0, 1 / condition, columns) @ right


def normal(number: int, *shape: int) -> np.ndarray:
    return KeyStream(key_of(number), "tests/factors").normal(shape)


@pytest.fixture
def reflected(monkeypatch):
    """Which parties went through reflections."""
    seen = []

    def spied(party, image):
        seen.append(party)
        return real(party, image)

    real = fits.by_reflections
    monkeypatch.setattr(fits, "by_reflections", spied)
    return seen


@pytest.mark.parametrize("condition", ROUTES.values(), ids=ROUTES)
def test_q_is_orthonormal_and_q_r_is_the_image(condition):
    image = image_of(condition)
    orthonormal, triangle, determination = fits.factored("north", image)
    assert np.abs(orthonormal.T @ orthonormal - np.eye(6)).max() < 1e-12
    np.testing.assert_array_equal(triangle, np.triu(triangle))
    np.testing.assert_allclose(orthonormal @ triangle, image, rtol=0, atol=1e-14)
    assert 1 / (6 * condition) < determination < 6 / condition  # up to the norm


@pytest.mark.parametrize("condition", ROUTES.values(), ids=ROUTES)
def test_least_squares_is_lapacks_and_leaves_nothing_along_the_image(condition):
    image, target = image_of(condition), normal(3, 40, 5)
    change = fits.least_squares_fits({"north": image}, target)["north"].change_of_basis
    expected = np.linalg.lstsq(image, target)[0]
    slack = 1e-11 + 100 * EPS * condition**2  # of a large residual: the problem's own
    assert np.linalg.norm(change - expected) < slack * np.linalg.norm(expected)
    fitted = image @ change
    moved = 10 * EPS * condition  # the span, by rounding of the image
    assert np.abs(haar(1, 40)[:, :6].T @ (target - fitted)).max() < 1e-9 + moved


@pytest.mark.parametrize("condition", [2e2, 1e3, 3e4])
def test_the_correction_keeps_digits_that_normal_equations_lose(condition):
    """Of a target in the image's span, what is lost grows with the condition, not its square."""
    image = image_of(condition)
    truth = normal(4, 6, 5)
    target = image @ truth
    change = fits.least_squares_fits({"north": image}, target)["north"].change_of_basis
    miss = np.linalg.norm(change - truth) / np.linalg.norm(truth)
    gram = image.T @ image
    plain = np.linalg.solve(gram, image.T @ target)
    assert miss < 20 * EPS * condition
    assert miss < np.linalg.norm(plain - truth) / np.linalg.norm(truth)


@given(number=st.integers(0, 10**6), rows=st.integers(1, 12), columns=st.integers(1, 12))
@STEADY
def test_any_image_of_full_rank_is_factored(number, rows, columns):
    image = normal(number, max(rows, columns), columns)
    orthonormal, triangle, _ = fits.factored("north", image)
    np.testing.assert_allclose(orthonormal @ triangle, image, atol=1e-12)
    np.testing.assert_allclose(orthonormal.T @ orthonormal, np.eye(columns), atol=1e-10)


def test_only_what_is_badly_conditioned_is_reflected(reflected):
    for name, condition in ROUTES.items():
        fits.factored(name, image_of(condition))
        fits.least_squares_fits({name: image_of(condition)}, normal(5, 40, 2))
    assert reflected == ["reflections", "reflections"]


BAD = {
    "NaN": (NotFiniteError, lambda image: np.where(image == image[3, 2], np.nan, image)),
    "infinite": (NotFiniteError, lambda image: np.where(image == image[3, 2], np.inf, image)),
    "zero": (AnchorImageError, np.zeros_like),
    "of rank 5": (AnchorImageError, lambda image: image @ np.diag([1.0, 1, 1, 1, 1, 0])),
    "of condition 1e12": (ConditionError, lambda image: image_of(1e12)),  # noqa: ARG005
}


@pytest.mark.parametrize(("error", "spoiled"), BAD.values(), ids=BAD)
def test_what_cannot_be_divided_by_is_refused_by_name(error, spoiled):
    image = spoiled(image_of(3.0))
    with pytest.raises(error, match="party 'north'"):
        fits.factored("north", image)
    with pytest.raises(error, match="party 'north'"):
        fits.least_squares_fits({"north": image}, np.ones((40, 1)))


def test_a_triangle_is_told_only_of_what_squaring_leaves_intact():
    triangle, condition = triangle_of(image_of(10.0))
    np.testing.assert_allclose(triangle.T @ triangle, image_of(10.0).T @ image_of(10.0), atol=1e-14)
    assert condition > 1e-2
    assert triangle_of(image_of(1e6)) is None
    assert triangle_of(image_of(10.0), least=0.5) is None
    assert triangle_of(np.full((4, 2), np.nan)) is None
    assert triangle_of(np.full((4, 2), 1e200)) is None
    assert triangle_of(np.zeros((4, 2))) is None
