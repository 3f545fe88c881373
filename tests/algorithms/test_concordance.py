"""F_i G_i agree if and only if the spans do, for every aligner."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aligners import (
    STEADY,
    VISIBLE,
    Toy,
    apart_but_for_a_rotation,
    make_toy,
    on_every_aligner,
    on_every_anchor,
    on_every_condition,
    on_every_scaled,
    spread,
)
from cobasis import align


@on_every_anchor
@on_every_condition
@on_every_aligner
def test_products_agree_where_claimed_and_nowhere_else(row, condition, anchor):
    """Half of all Haar draws have determinant -1, which Kabsch's correction would lose."""
    toy = make_toy(condition, anchor=anchor)
    apart = spread(toy.products(toy.align(row)))
    if condition == "samespan_orth" or (condition == "samespan" and not row.turns):
        assert apart < toy.rounding()
    else:
        assert apart > VISIBLE


@on_every_aligner
@given(st.integers(10, 10**9), st.integers(1, 5), st.integers(1, 6), st.integers(0, 20))
@STEADY
def test_products_agree_for_every_shape(row, number, n_parties, size, extra):
    """Under an anchor of as few rows as components: a >= l is enough."""
    shape = {"n_parties": n_parties, "n_components": size, "n_anchor_rows": size + extra}
    toy = make_toy("samespan_orth", number=number, **shape)
    assert spread(toy.products(toy.align(row))) < toy.rounding()


@on_every_aligner
@on_every_condition
def test_party_order_does_not_matter(row, condition):
    """With the reference named; the frame of what comes out is arbitrary anyway."""
    toy = make_toy(condition)
    turned = Toy(anchor=toy.anchor, bases=dict(reversed(toy.bases.items())))
    moved = apart_but_for_a_rotation(
        toy.products(toy.align(row)), turned.products(turned.align(row))
    )
    assert moved < toy.rounding() + row.order_slack


@on_every_scaled
@on_every_condition
def test_scale_is_one_scalar_for_all(row, condition):
    toy = make_toy(condition)
    default = toy.align(row).changes_of_basis
    paper = align(row.make(4, scale="paper"), toy.images).changes_of_basis
    factor = np.vdot(default["p0"], paper["p0"]) / np.vdot(paper["p0"], paper["p0"])
    for party, change in default.items():
        miss = np.linalg.norm(change - factor * paper[party])
        assert miss < toy.rounding() * np.linalg.norm(change)
