"""Images that are the target turned are fitted from a few rows, and no other images are."""

import numpy as np
import pytest

from cobasis import ODC, align
from cobasis.algorithms import fits
from cobasis.algorithms.fits import Target, TurnedTarget, procrustes_fits
from cobasis.errors import AnchorImageError, NotFiniteError

A, L = 60, 6


def orthonormal(rng, rows, columns):
    return np.linalg.qr(rng.standard_normal((rows, columns)))[0]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def shared(rng):
    """One span, an orthonormal Z, and a party whose turn is a reflection."""
    rows = orthonormal(rng, A, L)
    turns = {name: orthonormal(rng, L, L) for name in ("north", "south", "west", "east")}
    turns["south"][:, 0] *= -np.sign(np.linalg.det(turns["south"]))
    return rows, {name: rows @ turn for name, turn in turns.items()}, turns


@pytest.fixture
def no_products(monkeypatch):
    def refuse(*_):
        pytest.fail("multiplied all rows of an image with the target")

    monkeypatch.setattr(fits, "turned_onto", refuse)


@pytest.mark.usefixtures("no_products")
def test_images_of_one_span_are_fitted_without_a_product_of_all_rows(shared):
    rows, images, turns = shared
    found = procrustes_fits(images, Target(rows=rows, shaped_by=("north",)))
    assert list(found) == list(images)
    for name, fit in found.items():
        assert np.abs(fit.change_of_basis - turns[name].T).max() <= 1e-13
        assert np.abs(fit.change_of_basis @ fit.change_of_basis.T - np.eye(L)).max() <= 1e-14
        assert fit.determination == 1.0
    assert np.linalg.det(found["south"].change_of_basis) < 0


@pytest.mark.parametrize("row", [0, 2 * L, A - 1])
@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0])
@pytest.mark.parametrize("party", ["south", "east"])
def test_an_image_that_differs_in_one_entry_is_fitted_to_all_its_rows(shared, row, size, party):
    rows, images, _ = shared
    images[party][row, 2] += size
    target = Target(rows=rows, shaped_by=("north",))
    assert party not in target.turned.rotations(images)
    found = procrustes_fits(images, target)
    assert list(found) == list(images)
    for name, fit in found.items():
        left, _, right = np.linalg.svd(images[name].T @ rows)
        assert np.abs(fit.change_of_basis - left @ right).max() <= 1e-13


def test_one_other_image_does_not_send_the_rest_another_way(shared):
    rows, images, _ = shared
    images["south"] = images["south"][::-1].copy()
    assert set(TurnedTarget(rows).rotations(images)) == {"north", "west", "east"}


def test_nothing_is_looked_for_where_the_last_image_of_a_batch_is_another(shared):
    rows, images, _ = shared
    images["east"] = images["east"][::-1].copy()
    assert TurnedTarget(rows).rotations(images) == {}


@pytest.mark.parametrize("row", [0, A - 1])
@pytest.mark.parametrize(
    ("number", "error"),
    [(np.nan, NotFiniteError), (np.inf, NotFiniteError), (1e300, AnchorImageError)],
)
def test_an_image_that_has_no_usable_numbers_is_refused_by_name(shared, row, number, error):
    _, images, _ = shared
    images["west"][row, 0] = number
    with pytest.raises(error, match="'west'"):
        align(ODC(), images)


def test_nothing_is_looked_for_where_a_product_of_all_rows_costs_no_more(shared, rng, monkeypatch):
    looked = lambda *_: pytest.fail("looked at a few rows")  # noqa: E731
    monkeypatch.setattr(TurnedTarget, "rotations", looked)
    few = orthonormal(rng, 6 * L - 1, L)
    images = {name: few @ turn for name, turn in shared[2].items()}
    for fit in procrustes_fits(images, Target(rows=few, shaped_by=("north",))).values():
        assert fit.determination == pytest.approx(1.0)


def test_nothing_is_found_in_what_does_not_determine_the_fit(shared):
    rows, images, turns = shared
    assert len(TurnedTarget(rows).rotations(images)) == 4
    for factor in (2.0, np.array([[1.0, 1.1, *[1.0] * (L - 2)]])):
        scaled = rows * factor
        turned = {name: scaled @ turn for name, turn in turns.items()}
        assert TurnedTarget(scaled).rotations(turned) == {}
    oblique = rows.copy()
    oblique[:, 1] = (rows[:, 0] + rows[:, 1]) / np.sqrt(2)
    assert TurnedTarget(oblique).rotations({"north": oblique}) == {}


def test_a_target_whose_first_rows_are_empty_is_fitted_by_products(rng):
    rows = np.vstack([np.zeros((A, L)), orthonormal(rng, A, L)])
    turn = orthonormal(rng, L, L)
    target = Target(rows=rows, shaped_by=("north",))
    assert target.turned.rotations({"north": rows @ turn}) == {}
    fit = procrustes_fits({"north": rows @ turn}, target)["north"]
    assert np.abs(fit.change_of_basis - turn.T).max() <= 1e-13
