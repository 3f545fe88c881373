"""ODC, GOPP and the two fits: common factors, optimality, and an objective that only falls."""

from collections.abc import Mapping

import numpy as np
import pytest

from aligners import (
    EPS,
    haar,
    make_toy,
    on_every_condition,
)
from cobasis.algorithms import gopp
from cobasis.algorithms.base import Alignment, align
from cobasis.algorithms.gopp import GOPP
from cobasis.algorithms.odc import ODC
from cobasis.errors import OptionError, OrthonormalityError, ShapeError, UnknownPartyError
from cobasis.linalg.arrays import Matrix

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


def test_the_reference_itself_is_not_turned():
    toy = make_toy("diffspan_orth")
    found = align(ODC(reference="p2"), toy.images)
    np.testing.assert_array_equal(found.target.rows, toy.images["p2"])
    np.testing.assert_allclose(found.changes_of_basis["p2"], np.eye(4), atol=toy.rounding(power=1))
    assert found.target.shaped_by == ("p2",)


@pytest.mark.parametrize(
    ("aligner", "error", "match"),
    [
        (ODC(rotation=2 * np.eye(4)), OrthonormalityError, r"is not orthogonal.*\[CB202\]"),
        (ODC(rotation=np.eye(5)[:, :4]), OrthonormalityError, r"is not orthogonal.*\[CB202\]"),
        (ODC(rotation=np.eye(3)), ShapeError, "rotation has 3 columns"),
        (ODC(reference="p9"), UnknownPartyError, r"reference 'p9' is not among .*\[CB304\]"),
        (GOPP(start="warm"), OptionError, r"start='warm' is not known.*\[CB107\]"),
    ],
    ids=lambda value: "" if isinstance(value, str | type) else repr(value)[:30],
)
def test_an_option_that_cannot_be_is_refused(aligner, error, match):
    with pytest.raises(error, match=match):
        align(aligner, make_toy("samespan_orth").images)


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


@pytest.mark.parametrize("condition", ["diffspan_orth", "diffspan"])
def test_gopp_started_from_odc_is_better_than_odc(condition):
    toy = make_toy(condition)
    odc = objective(toy.images, align(ODC(), toy.images))
    assert objective(toy.images, align(GOPP(start="odc"), toy.images)) < 0.99 * odc


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
@pytest.mark.parametrize("number", range(3))
def test_gopp_is_done_in_two_iterations_where_orthonormal_spans_agree(start, number):
    toy = make_toy("samespan_orth", number=number)
    found = align(GOPP(start=start), toy.images)
    assert found.target.converged
    assert found.target.iterations <= 2
    energy = sum(np.sum(image**2) for image in toy.images.values())
    assert objective(toy.images, found) < toy.rounding() ** 2 * energy


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
    rough, full = (GOPP(tolerance=each).target(toy.images) for each in (1e-4, 1e-9))
    assert rough.converged
    assert full.converged
    assert 3 < rough.iterations < 0.7 * full.iterations < 700


@on_every_condition
def test_gopp_turns_into_the_first_partys_frame(condition):
    toy = make_toy(condition)
    change = align(GOPP(), toy.images).changes_of_basis["p0"]
    np.testing.assert_allclose(change, np.eye(4), rtol=0, atol=toy.rounding())
