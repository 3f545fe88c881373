"""Aligners by name: each word of an agreement is one method, and other words are refused."""

import numpy as np
import pytest

from aligners import make_toy
from cobasis.algorithms.base import align
from cobasis.algorithms.gopp import GOPP
from cobasis.algorithms.imakura import Imakura
from cobasis.algorithms.kawakami import Kawakami
from cobasis.algorithms.odc import ODC
from cobasis.algorithms.registry import ALIGNERS, make_aligner
from cobasis.algorithms.whitened import Whitened
from cobasis.errors import OptionError


@pytest.mark.parametrize("gain", [None, 2.0])
def test_every_name_is_one_method_with_the_anchors_gain(gain):
    scale = "measured" if gain is None else gain
    assert {name: make_aligner(name, gain=gain) for name in ALIGNERS} == {
        "odc": ODC(),
        "gopp": GOPP(),
        "whitened": Whitened(scale=scale),
        "imakura": Imakura(scale=scale),
        "kawakami": Kawakami(scale=scale),
    }


def test_a_name_that_does_not_exist_is_refused():
    with pytest.raises(OptionError, match=r"aligner 'procrustes' does not exist.*\[CB107\]"):
        make_aligner("procrustes", gain=1.0)


@pytest.mark.parametrize("anchor", ["isometric", "gaussian"])
@pytest.mark.parametrize("name", ALIGNERS)
def test_aligned_sizes_do_not_depend_on_the_method(name, anchor):
    """The papers' Imakura features shrink as 1/sqrt(a) and Kawakami's by 1/sqrt(c) more."""
    toy = make_toy("samespan_orth", anchor=anchor)
    gain = 1.0 if anchor == "isometric" else np.sqrt(30)
    products = toy.products(align(make_aligner(name, gain=gain), toy.images))
    for product in products.values():
        assert np.sqrt(np.mean(np.sum(product**2, axis=0))) == pytest.approx(1.0, rel=0.25)


def test_the_measured_gain_is_that_of_the_images():
    """Root mean square length of an image's columns: one, for orthonormal bases and anchors."""
    images = make_toy("diffspan_orth", anchor="isometric").images
    for name in ("whitened", "imakura", "kawakami"):
        rows = align(make_aligner(name, gain=None), images).target.rows
        assert np.linalg.norm(rows) == pytest.approx(2.0)
        louder = {party: 5 * image for party, image in images.items()}
        rows = align(make_aligner(name, gain=None), louder).target.rows
        assert np.linalg.norm(rows) == pytest.approx(10.0)
