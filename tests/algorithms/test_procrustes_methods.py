"""ODC, GOPP and the two fits: common factors, optimality, and an objective that only falls."""

from collections.abc import Mapping

import numpy as np
import pytest

from aligners import (
    EPS,
    Row,
    haar,
    make_toy,
    on_every_condition,
    on_every_least_squares,
    on_every_rotation,
)
from cobasis.algorithms import gopp
from cobasis.algorithms.base import Alignment, align
from cobasis.algorithms.fits import turned_onto
from cobasis.algorithms.gopp import GOPP
from cobasis.algorithms.odc import ODC
from cobasis.errors import OptionError, OrthonormalityError, ShapeError, UnknownPartyError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.polar import polar

FALLS = 1e-12
"""Relative rounding of an objective that is a sum of squares."""


def determination(alignment: Alignment) -> float:
    return min(fit.determination for fit in alignment.fits.values())


def objective(images: Mapping[str, Matrix], alignment: Alignment) -> float:
    """GOPP's: squared distances of the rotated images from their mean."""
    turned = [images[p] @ change for p, change in alignment.changes_of_basis.items()]
    mean = sum(turned) / len(turned)
    return float(sum(np.sum((image - mean) ** 2) for image in turned))


@on_every_condition
def test_the_rotation_is_a_common_factor(condition):
    toy, turn = make_toy(condition), haar(8, 4)
    plain, turned = align(ODC(), toy.images), align(ODC(rotation=turn), toy.images)
    slack = 100 * EPS / determination(plain)
    for party, change in plain.changes_of_basis.items():
        moved = turned.changes_of_basis[party] - change @ turn
        assert np.abs(moved).max() < slack


@on_every_condition
def test_the_reference_itself_is_not_turned(condition):
    toy = make_toy(condition)
    found = align(ODC(reference="p2"), toy.images)
    assert found.target.rows is not None
    np.testing.assert_array_equal(found.target.rows, toy.images["p2"])
    np.testing.assert_allclose(
        found.changes_of_basis["p2"], np.eye(4), rtol=0, atol=toy.rounding(power=1)
    )
    assert found.target.shaped_by == ("p2",)


@pytest.mark.parametrize(
    "turn", [2 * np.eye(4), np.ones((4, 4)), np.eye(5)[:, :4]], ids=["long", "flat", "tall"]
)
def test_a_rotation_that_is_none_is_refused(turn):
    with pytest.raises(OrthonormalityError, match=r"is not orthogonal.*\[CB202\]"):
        align(ODC(rotation=turn), make_toy("samespan_orth").images)


def test_a_rotation_of_another_width_is_refused():
    with pytest.raises(ShapeError, match="rotation has 3 columns"):
        align(ODC(rotation=np.eye(3)), make_toy("samespan_orth").images)


def test_a_reference_that_is_no_party_is_refused():
    with pytest.raises(UnknownPartyError, match=r"reference 'p9' is not among .*\[CB304\]"):
        align(ODC(reference="p9"), make_toy("samespan_orth").images)


@on_every_condition
@on_every_rotation
def test_a_procrustes_fit_is_optimal(row: Row, condition):
    """G'G = I with G'A_i'Z symmetric and positive semidefinite: checked, not computed again."""
    toy = make_toy(condition)
    found = toy.align(row)
    for party, change in found.changes_of_basis.items():
        rest = change.T @ toy.images[party].T @ found.target.rows
        slack = 100 * EPS * np.linalg.norm(rest)
        np.testing.assert_allclose(rest, rest.T, rtol=0, atol=slack)
        assert np.linalg.eigvalsh(rest).min() > -slack


@on_every_condition
@on_every_least_squares
def test_a_least_squares_fit_leaves_a_normal_residual(row: Row, condition):
    """A_i'(A_i G - Z) = 0: checked, not computed again."""
    toy = make_toy(condition)
    found = toy.align(row)
    for party, change in found.changes_of_basis.items():
        image = toy.images[party]
        residual = image.T @ (image @ change - found.target.rows)
        size = np.linalg.norm(image, 2) * np.linalg.norm(found.target.rows)
        assert np.linalg.norm(residual) < toy.rounding() * size


@pytest.mark.parametrize("start", ["spectral", "odc"])
@on_every_condition
def test_gopps_objective_never_rises_without_momentum(condition, start):
    toy = make_toy(condition)
    energy = sum(np.sum(image**2) for image in toy.images.values())
    capped = [GOPP(start=start, max_iterations=cap, momentum=False) for cap in range(1, 12)]
    values = [objective(toy.images, align(aligner, toy.images)) for aligner in capped]
    assert (np.diff(values) <= FALLS * energy).all()


@pytest.mark.parametrize("start", ["spectral", "odc"])
def test_momentum_ends_as_low_in_fewer_iterations(start):
    iterations = np.zeros(2)
    for number in range(10):
        toy = make_toy("diffspan", number=number)
        energy = sum(np.sum(image**2) for image in toy.images.values())
        fast = align(GOPP(start=start), toy.images)
        plain = align(GOPP(start=start, momentum=False), toy.images)
        assert objective(toy.images, fast) <= objective(toy.images, plain) + 1e-6 * energy
        iterations += fast.target.iterations, plain.target.iterations
    assert iterations[0] < 0.7 * iterations[1]


@on_every_condition
def test_gopp_started_from_odc_is_no_worse_than_odc(condition):
    toy = make_toy(condition)
    energy = sum(np.sum(image**2) for image in toy.images.values())
    odc = objective(toy.images, align(ODC(), toy.images))
    warm = objective(toy.images, align(GOPP(start="odc"), toy.images))
    assert warm <= odc + FALLS * energy
    if condition.startswith("diffspan"):
        assert warm < 0.99 * odc


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


@pytest.mark.parametrize("start", ["spectral", "odc"])
@pytest.mark.parametrize("number", range(6))
def test_gopp_is_done_in_two_iterations_where_orthonormal_spans_agree(start, number):
    toy = make_toy("samespan_orth", number=number)
    found = align(GOPP(start=start), toy.images)
    assert found.target.converged
    assert found.target.iterations <= 2
    energy = sum(np.sum(image**2) for image in toy.images.values())
    assert objective(toy.images, found) < toy.rounding() ** 2 * energy


def test_momentum_is_dropped_before_the_objective_rises():
    """By the objective alone, which says so an iteration later, they take 441 in all."""
    toys = [make_toy(each, number=n) for each in ("diffspan", "diffspan_orth") for n in range(12)]
    assert sum(GOPP().target(toy.images).iterations for toy in toys) < 423


def test_a_larger_tolerance_ends_gopp_earlier():
    toy = make_toy("diffspan", number=7)
    rough, fine = (GOPP(tolerance=each).target(toy.images) for each in (1e-4, 1e-9))
    assert rough.converged
    assert fine.converged
    assert rough.iterations < 0.7 * fine.iterations


@pytest.mark.parametrize("momentum", [True, False])
def test_gopp_does_not_iterate_on_rounding(momentum, monkeypatch):
    """Many components leave more of it than what counts as exact."""
    monkeypatch.setattr(gopp, "_EXACT", 0.0)
    for number in range(10):
        found = align(GOPP(momentum=momentum), make_toy("samespan_orth", number=number).images)
        assert found.target.converged
        assert found.target.iterations <= 50


def test_gopp_says_when_it_stopped_at_its_cap():
    toy = make_toy("diffspan")
    short = align(GOPP(max_iterations=3), toy.images).target
    assert (short.iterations, short.converged) == (3, False)
    full = align(GOPP(), toy.images).target
    assert full.converged
    assert 3 < full.iterations < 1000


@on_every_condition
def test_gopp_turns_into_the_first_partys_frame(condition):
    toy = make_toy(condition)
    change = align(GOPP(), toy.images).changes_of_basis["p0"]
    np.testing.assert_allclose(change, np.eye(4), rtol=0, atol=toy.rounding())


def test_a_start_that_does_not_exist_is_refused():
    with pytest.raises(OptionError, match=r"start='warm' is not known.*\[CB107\]"):
        align(GOPP(start="warm"), make_toy("diffspan").images)


@pytest.mark.parametrize("n_rows", [1000, 997, 2017, 120])
@pytest.mark.parametrize(("width", "components"), [(50, 50), (30, 100), (100, 100), (101, 101)])
def test_products_by_blocks_of_rows_are_the_products(n_rows, width, components):
    """1,000 rows are cut without a rest, 997 and 2,017 (both primes) with one, 120 not at all."""
    rng = np.random.default_rng(n_rows)
    rows = rng.standard_normal((n_rows, components))
    images = {name: rng.standard_normal((n_rows, width)) for name in ("north", "south")}
    with_gaps = {name: image.repeat(2, axis=1)[:, ::2] for name, image in images.items()}
    for tables in (images, with_gaps):
        turned = turned_onto(tables, rows)
        for image, rotation in zip(tables.values(), turned.rotation, strict=True):
            np.testing.assert_allclose(rotation, polar(image.T @ rows).rotation, atol=1e-11)
