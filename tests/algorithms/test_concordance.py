"""F_i G_i agree if and only if the spans do, for every aligner, late parties among them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aligners import (
    STEADY,
    VISIBLE,
    Row,
    Toy,
    apart_but_for_a_factor,
    apart_but_for_a_rotation,
    make_toy,
    on_every_aligner,
    on_every_anchor,
    on_every_condition,
    on_every_scaled,
    spread,
)
from cobasis.algorithms.base import Alignment, align
from cobasis.algorithms.odc import ODC


@on_every_anchor
@on_every_condition
@on_every_aligner
def test_products_agree_where_claimed_and_nowhere_else(row: Row, condition, anchor):
    toy = make_toy(condition, anchor=anchor)
    apart = spread(toy.products(toy.align(row)))
    if condition in row.concordant_under:
        assert apart < toy.rounding()
    else:
        assert apart > VISIBLE


@on_every_aligner
@given(st.integers(10, 10**9), st.integers(1, 5), st.integers(1, 6), st.integers(0, 20))
@STEADY
def test_products_agree_for_every_shape(row: Row, number, n_parties, size, extra):
    """Under an anchor of as few rows as components: a >= l is enough."""
    shape = {"n_parties": n_parties, "n_components": size, "n_anchor_rows": size + extra}
    toy = make_toy("samespan_orth", number=number, **shape)
    assert spread(toy.products(toy.align(row))) < toy.rounding()


@on_every_aligner
def test_a_reflected_basis_aligns_like_any_other(row: Row):
    """Half of all Haar draws have determinant -1; a det-corrected fit loses them."""
    toy = make_toy("samespan_orth")
    mirror = np.diag([-1.0, 1.0, 1.0, 1.0])
    twins = {"p0": toy.bases["p0"], "p1": toy.bases["p0"] @ mirror}
    pair = Toy(anchor=toy.anchor, bases=twins)
    assert spread(pair.products(pair.align(row))) < pair.rounding()


def test_a_determinant_corrected_fit_would_lose_the_reflected_basis():
    """The mutant of the test above: Kabsch's correction is wrong here."""
    toy = make_toy("samespan_orth")
    image = toy.images["p0"]
    mirrored = image @ np.diag([-1.0, 1.0, 1.0, 1.0])
    left, _, right = np.linalg.svd(mirrored.T @ image)
    proper = left @ np.diag([1.0, 1.0, 1.0, np.linalg.det(left @ right)]) @ right
    assert np.linalg.norm(mirrored @ proper - image) > VISIBLE * np.linalg.norm(image)
    found = align(ODC(), {"p0": image, "p1": mirrored}).changes_of_basis["p1"]
    assert np.linalg.det(found) == pytest.approx(-1.0)


@on_every_aligner
@on_every_condition
def test_party_order_does_not_matter(row: Row, condition):
    """With the reference named; the frame of what comes out is arbitrary anyway."""
    toy = make_toy(condition)
    turned = Toy(anchor=toy.anchor, bases=dict(reversed(toy.bases.items())))
    apart = apart_but_for_a_rotation if row.frame == "rotation" else apart_but_for_a_factor
    moved = apart(toy.products(toy.align(row)), turned.products(turned.align(row)))
    assert moved < toy.rounding() + row.order_slack


@on_every_aligner
def test_the_same_round_gives_the_same_bits(row: Row):
    first, second = (make_toy("diffspan").align(row) for _ in range(2))
    for party, change in first.changes_of_basis.items():
        np.testing.assert_array_equal(change, second.changes_of_basis[party])


@on_every_scaled
@on_every_condition
def test_scale_is_one_scalar_for_all(row: Row, condition):
    toy = make_toy(condition)
    default = toy.align(row).changes_of_basis
    paper = align(row.paper(4), toy.images).changes_of_basis
    factor = np.vdot(default["p0"], paper["p0"]) / np.vdot(paper["p0"], paper["p0"])
    for party, change in default.items():
        assert np.linalg.norm(change - factor * paper[party]) < toy.rounding() * np.linalg.norm(
            change
        )


# ---------------------------------------------------------------- late parties, and leaving


def assert_same_fits(after: Alignment, before: Alignment) -> None:
    """Not equal numbers: the same objects, with the same bits as before."""
    for party in set(after.fits) & set(before.fits):
        assert after.fits[party] is before.fits[party]
    assert after.target is before.target


def again(before: Alignment, images) -> Alignment:
    """Fit whoever has no fit yet, and leave out whose image is gone."""
    return align(before.aligner, images, target=before.target, sink=dict(before.fits))


def without(toy: Toy, *gone: str):
    return {party: image for party, image in toy.images.items() if party not in gone}


@on_every_aligner
@on_every_condition
def test_a_late_party_is_fitted_to_the_frozen_target(row: Row, condition):
    toy = make_toy(condition)
    others = {party: basis for party, basis in toy.bases.items() if party != "p3"}
    before = Toy(anchor=toy.anchor, bases=others).align(row)
    frozen = before.target.rows.copy()
    kept = {party: change.copy() for party, change in before.changes_of_basis.items()}
    after = again(before, toy.images)
    assert_same_fits(after, before)
    np.testing.assert_array_equal(after.target.rows, frozen)
    for party, change in kept.items():
        np.testing.assert_array_equal(after.changes_of_basis[party], change)
    assert set(before.fits) == {"p0", "p1", "p2"}
    assert "p3" not in after.target.shaped_by
    apart = spread(toy.products(after))
    assert (apart < toy.rounding()) == (condition in row.concordant_under)


@on_every_aligner
@pytest.mark.parametrize("leaver", ["p0", "p2"])
def test_a_party_that_leaves_changes_no_other_fit_and_may_come_back(row: Row, leaver):
    """p0 is the reference of those that have one; a fit is the same, late or in time."""
    toy = make_toy("diffspan")
    before = toy.align(row)
    after = again(before, without(toy, leaver))
    assert set(after.fits) == set(toy.bases) - {leaver}
    assert set(before.fits) == set(toy.bases)
    assert_same_fits(after, before)
    back = again(after, toy.images)
    np.testing.assert_allclose(
        back.changes_of_basis[leaver], before.changes_of_basis[leaver], rtol=0, atol=1e-12
    )
    assert back.departed == ()


@on_every_aligner
def test_departed_names_whose_trace_the_target_still_carries(row: Row):
    toy = make_toy("diffspan_orth")
    found = toy.align(row)
    assert found.departed == ()
    gone = again(found, without(toy, "p0", "p2"))
    shaped_by_one = row.name.startswith(("odc", "whitened"))
    assert found.target.shaped_by == (("p0",) if shaped_by_one else ("p0", "p1", "p2", "p3"))
    assert gone.departed == (("p0",) if shaped_by_one else ("p0", "p2"))


def test_fits_cannot_be_exchanged_from_outside():
    toy = make_toy("diffspan")
    found = align(ODC(), toy.images)
    for stage in (found, again(found, without(toy, "p1"))):
        with pytest.raises(TypeError, match="does not support item assignment"):
            stage.fits["p0"] = None
