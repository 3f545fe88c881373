"""Whitened ODC: F_i G_i does not depend on E_i, and is ODC under an isometric anchor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aligners import (
    EPS,
    STEADY,
    Toy,
    apart_but_for_a_rotation,
    invertible,
    make_toy,
)
from cobasis.algorithms.base import align
from cobasis.algorithms.odc import ODC
from cobasis.algorithms.whitened import Whitened

on_every_anchor = pytest.mark.parametrize("anchor", ["isometric", "gaussian", "uniform"])


def products(toy: Toy, aligner) -> dict:
    return toy.products(align(aligner, toy.images))


def remade(toy: Toy, factors: dict) -> Toy:
    bases = {party: basis @ factors[party] for party, basis in toy.bases.items()}
    return Toy(anchor=toy.anchor, bases=bases)


@on_every_anchor
@given(number=st.integers(0, 10**6), decades=st.floats(0, 5))
@STEADY
def test_products_do_not_depend_on_the_factors_of_the_bases(anchor, number, decades):
    """To 100 eps cond(A_i), not its square: which is what the QR form is for."""
    toy = make_toy("diffspan_orth", anchor=anchor, number=7)
    factors = [invertible(number + index, 4, condition=10**decades) for index in range(4)]
    other = remade(toy, dict(zip(toy.bases, factors, strict=True)))
    moved = apart_but_for_a_rotation(products(other, Whitened()), products(toy, Whitened()))
    assert moved < 100 * EPS * toy.condition * other.condition


@pytest.mark.parametrize("spans", ["samespan", "diffspan"])
def test_under_an_isometric_anchor_it_is_odc_on_orthonormal_bases(spans):
    plain, orth = (make_toy(name, anchor="isometric") for name in (spans, f"{spans}_orth"))
    odc = products(orth, ODC())
    assert apart_but_for_a_rotation(products(plain, Whitened()), odc) < plain.rounding(power=1)
    assert apart_but_for_a_rotation(products(orth, Whitened()), odc) < orth.rounding(power=1)


@on_every_anchor
def test_aligned_images_are_orthonormal_times_the_scale(anchor):
    toy = make_toy("diffspan", anchor=anchor)
    changes = align(Whitened(scale=3.0), toy.images).changes_of_basis
    for party, change in changes.items():
        image = toy.images[party] @ change
        np.testing.assert_allclose(
            image.T @ image, 9 * np.eye(4), rtol=0, atol=9 * toy.rounding(power=1)
        )


def test_the_gram_form_would_lose_half_the_digits():
    """The mutant: A_i (A_i'A_i)^(-1/2) instead of Q_i."""
    toy = make_toy("diffspan_orth")
    other = remade(toy, {party: invertible(5, 4, condition=1e6) for party in toy.bases})
    values, vectors = np.linalg.eigh(other.images["p1"].T @ other.images["p1"])
    gram_form = other.images["p1"] @ (vectors / np.sqrt(values)) @ vectors.T
    change = align(Whitened(), other.images).changes_of_basis["p1"]
    qr_form = other.images["p1"] @ change
    assert np.abs(gram_form.T @ gram_form - np.eye(4)).max() > other.rounding(power=1)
    assert np.abs(qr_form.T @ qr_form - np.eye(4)).max() < other.rounding(power=1)
