from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aligners import (
    EPS,
    STEADY,
    Toy,
    apart_but_for_a_rotation,
    haar,
    invertible,
    make_toy,
    on_every_anchor,
    on_every_condition,
)
from cobasis import GOPP, ODC, Alignment, Whitened, align
from cobasis.algorithms import gopp
from cobasis.linalg.arrays import Matrix


def objective(images: Mapping[str, Matrix], alignment: Alignment) -> float:
    """GOPP's: squared distances of the rotated images from their mean."""
    turned = [images[p] @ change for p, change in alignment.changes_of_basis.items()]
    mean = sum(turned) / len(turned)
    return float(sum(np.sum((image - mean) ** 2) for image in turned))


@on_every_condition
def test_the_rotation_is_a_common_factor(condition):
    toy, turn = make_toy(condition), haar(8, 4)
    plain, turned = (align(ODC(reference="p2", rotation=each), toy.images) for each in (None, turn))
    np.testing.assert_array_equal(plain.target.rows, toy.images["p2"])
    assert plain.target.shaped_by == ("p2",)
    slack = 100 * EPS / min(fit.determination for fit in plain.fits.values())
    for party, change in plain.changes_of_basis.items():
        moved = turned.changes_of_basis[party] - change @ turn
        assert np.abs(moved).max() < slack


def test_momentum_ends_as_low_in_fewer_iterations():
    iterations = np.zeros(2)
    for number in range(5):
        toy = make_toy("diffspan", number=number)
        energy = sum(np.sum(image**2) for image in toy.images.values())
        fast, plain = (align(GOPP(momentum=each), toy.images) for each in (True, False))
        assert objective(toy.images, fast) <= objective(toy.images, plain) + 1e-6 * energy
        iterations += fast.target.iterations, plain.target.iterations
    assert iterations[0] < 0.7 * iterations[1]


@on_every_condition
def test_gopp_is_the_published_alternation(condition):
    """Written down literally: rotations for a mean, a mean of rotations, from U."""
    toy = make_toy(condition)
    mean = np.linalg.svd(np.hstack(list(toy.images.values())), full_matrices=False)[0][:, :4]
    for _ in range(5):
        turned = []
        for image in toy.images.values():
            left, _, right = np.linalg.svd(image.T @ mean)
            turned.append(image @ left @ right)
        mean = sum(turned) / 4
    rows = align(GOPP(max_iterations=5, tolerance=0.0, momentum=False), toy.images).target.rows
    np.testing.assert_allclose(rows @ rows.T, mean @ mean.T, rtol=0, atol=1e-10 * np.sum(mean**2))


@pytest.mark.parametrize("number", range(3))
def test_gopp_is_done_in_two_iterations_where_orthonormal_spans_agree(number):
    toy = make_toy("samespan_orth", number=number)
    found = align(GOPP(), toy.images)
    assert found.target.converged
    assert found.target.iterations <= 2
    frame = found.changes_of_basis["p0"]  # the first party's own
    np.testing.assert_allclose(frame, np.eye(4), rtol=0, atol=toy.rounding())
    energy = sum(np.sum(image**2) for image in toy.images.values())
    assert objective(toy.images, found) < toy.rounding() ** 2 * energy


def test_gopp_does_not_iterate_on_rounding(monkeypatch):
    """Many components leave more of it than what counts as exact."""
    monkeypatch.setattr(gopp, "_EXACT", 0.0)
    for number in range(10):
        toy = make_toy("samespan_orth", number=number)
        for found in (GOPP(momentum=each).target(toy.images) for each in (True, False)):
            assert found.converged
            assert found.iterations <= 50


def test_gopp_says_when_it_stopped_at_its_cap():
    toy = make_toy("diffspan")
    short = align(GOPP(max_iterations=3), toy.images).target
    assert (short.iterations, short.converged) == (3, False)
    rough, full = (GOPP(tolerance=each).target(toy.images) for each in (1e-4, 1e-9))
    assert rough.converged
    assert full.converged
    assert 3 < rough.iterations < 0.7 * full.iterations < 700


# ---------------------------------------------------------------- whitened ODC


def products(toy: Toy, aligner) -> dict:
    return toy.products(align(aligner, toy.images))


@on_every_anchor
@given(number=st.integers(0, 10**6), decades=st.floats(0, 5))
@STEADY
def test_products_do_not_depend_on_the_factors_of_the_bases(anchor, number, decades):
    """To 100 eps cond(A_i), not its square: which is what the QR form is for."""
    toy = make_toy("diffspan_orth", anchor=anchor, number=7)
    bases = {
        party: basis @ invertible(number + index, 4, condition=10**decades)
        for index, (party, basis) in enumerate(toy.bases.items())
    }
    other = Toy(anchor=toy.anchor, bases=bases)
    moved = apart_but_for_a_rotation(products(other, Whitened()), products(toy, Whitened()))
    assert moved < 100 * EPS * toy.condition * other.condition


@pytest.mark.parametrize("spans", ["samespan", "diffspan"])
def test_under_an_isometric_anchor_it_is_odc_on_orthonormal_bases(spans):
    plain, orth = (make_toy(name, anchor="isometric") for name in (spans, f"{spans}_orth"))
    odc = products(orth, ODC())
    assert apart_but_for_a_rotation(products(plain, Whitened()), odc) < plain.rounding(power=1)
    assert apart_but_for_a_rotation(products(orth, Whitened()), odc) < orth.rounding(power=1)
