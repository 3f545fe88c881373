from unittest.mock import Mock

import numpy as np
import pytest

from aligners import EPS, haar, normal, with_values
from cobasis.algorithms import fits
from cobasis.algorithms import images as of_images
from cobasis.algorithms.fits import Rotates, Solves, Target, TurnedTarget

ROUTES = {
    "one step": 3.0,
    "the worst for one step": 30.0,
    "two steps": 1e3,
    "the worst for two steps": 3e4,
    "reflections": 1e7,
}


def image_of(condition):
    return with_values(1, np.geomspace(1.0, 1 / condition, 6), rows=40)


def solved(image, target):
    fitted = Solves().fits({"north": image}, Target(rows=target, shaped_by=()))
    return fitted["north"].change_of_basis


@pytest.mark.parametrize("route", ROUTES)
def test_q_is_orthonormal_and_least_squares_lapacks_and_bad_images_alone_are_reflected(
    route, monkeypatch
):
    spy = Mock(wraps=of_images._by_reflections)
    monkeypatch.setattr(of_images, "_by_reflections", spy)
    condition = ROUTES[route]
    image, target = image_of(condition), normal(3, 40, 5)
    orthonormal, triangle, determination = of_images.factored("north", image)
    assert np.abs(orthonormal.T @ orthonormal - np.eye(6)).max() < 1e-12
    np.testing.assert_array_equal(triangle, np.triu(triangle))
    np.testing.assert_allclose(orthonormal @ triangle, image, rtol=0, atol=1e-14)
    assert 1 / (6 * condition) < determination < 6 / condition  # up to the norm
    change = solved(image, target)
    expected = np.linalg.lstsq(image, target)[0]
    slack = 1e-11 + 100 * EPS * condition**2  # of a large residual: the problem's own
    assert np.linalg.norm(change - expected) < slack * np.linalg.norm(expected)
    fitted = image @ change
    moved = 10 * EPS * condition  # the span, by rounding of the image
    assert np.abs(haar(2, 40)[:, :6].T @ (target - fitted)).max() < 1e-9 + moved
    assert spy.call_count == (2 if route == "reflections" else 0)


@pytest.mark.parametrize("condition", [2e2, 3e4])
def test_the_correction_keeps_digits_that_normal_equations_lose(condition):
    """Of a target in the image's span, what is lost grows with the condition, not its square."""
    image, truth = image_of(condition), normal(4, 6, 5)
    change = solved(image, image @ truth)
    assert np.linalg.norm(change - truth) < 20 * EPS * condition * np.linalg.norm(truth)


# ---------------------------------------------------------------- one span

A, L = 60, 6
ROWS = haar(7, A)[:, :L]


def shared() -> tuple[dict, dict]:
    """Images of one span, which Z spans too, and their turns; the second is a reflection."""
    turns = {name: haar(n, L) for n, name in enumerate(("north", "south", "west", "east"))}
    turns["south"][:, 0] *= -np.sign(np.linalg.det(turns["south"]))
    return {name: ROWS @ turn for name, turn in turns.items()}, turns


def test_images_of_one_span_are_fitted_without_a_product_of_all_rows(monkeypatch):
    monkeypatch.setattr(fits, "turned_onto", lambda *_: pytest.fail("multiplied all rows"))
    images, turns = shared()
    found = Rotates().fits(images, Target(rows=ROWS, shaped_by=("north",)))
    assert list(found) == list(images)
    for name, fit in found.items():
        assert np.abs(fit.change_of_basis - turns[name].T).max() <= 1e-13
        assert np.abs(fit.change_of_basis @ fit.change_of_basis.T - np.eye(L)).max() <= 1e-14
        assert fit.determination == 1.0
    assert np.linalg.det(found["south"].change_of_basis) < 0


@pytest.mark.parametrize("row", [0, 2 * L, A - 1])
@pytest.mark.parametrize("size", [1e-9, 1.0])
@pytest.mark.parametrize("party", ["south", "east"])
def test_an_image_that_differs_in_one_entry_is_fitted_to_all_its_rows(row, size, party):
    images, _ = shared()
    images[party][row, 2] += size
    target = Target(rows=ROWS, shaped_by=("north",))
    assert party not in target.turned.rotations(images)
    found = Rotates().fits(images, target)
    assert list(found) == list(images)
    for name, fit in found.items():
        left, _, right = np.linalg.svd(images[name].T @ ROWS)
        assert np.abs(fit.change_of_basis - left @ right).max() <= 1e-13


OBLIQUE = np.eye(L) + np.eye(L, k=1)


@pytest.mark.parametrize(
    "rows",
    [2 * ROWS, ROWS * np.linspace(1, 2, L), ROWS @ OBLIQUE, np.vstack([np.zeros((A, L)), ROWS])],
    ids=["longer", "of several lengths", "oblique", "first rows empty"],
)
def test_nothing_is_found_in_what_does_not_determine_the_fit(rows):
    _, turns = shared()
    assert TurnedTarget(rows).rotations({name: rows @ turn for name, turn in turns.items()}) == {}
