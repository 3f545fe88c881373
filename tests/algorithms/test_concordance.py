"""F_i G_i agree if and only if the spans do, for every aligner."""

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
from cobasis import ODC, align


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


def test_a_determinant_corrected_fit_would_lose_the_reflected_basis():
    """Half of all Haar draws have determinant -1: Kabsch's correction is wrong here."""
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


def test_fits_cannot_be_exchanged_from_outside():
    toy = make_toy("diffspan")
    before = align(ODC(), toy.images)
    few = {party: image for party, image in toy.images.items() if party != "p1"}
    after = align(ODC(), few, target=before.target, sink=dict(before.fits))
    for stage in (before, after):
        with pytest.raises(TypeError, match="does not support item assignment"):
            stage.fits["p0"] = None
