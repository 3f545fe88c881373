"""Aligners by name: each word of an agreement is one method, and other words are refused."""

from typing import get_args

import numpy as np
import pytest

from aligners import make_toy
from cobasis import GOPP, ODC, ConsortiumSecret, Imakura, Kawakami, Whitened, align
from cobasis.algorithms import AlignerName
from cobasis.errors import AgreementError
from protocol.consortium import agree

NAMES = get_args(AlignerName)


def made(name, anchor="isometric", **changes):
    return agree(ConsortiumSecret(), aligner=name, anchor=anchor, **changes).make_aligner()


@pytest.mark.parametrize(("anchor", "gain"), [("smote", "measured"), ("gaussian", np.sqrt(8))])
def test_every_name_is_one_method_with_the_anchors_gain(anchor, gain):
    rows = {"public_rows_sha256": "0" * 64} if anchor == "smote" else {}
    assert {name: made(name, anchor, **rows) for name in NAMES} == {
        "odc": ODC(),
        "gopp": GOPP(),
        "whitened": Whitened(scale=gain),
        "imakura": Imakura(scale=gain),
        "kawakami": Kawakami(scale=gain),
    }


def test_a_name_that_does_not_exist_is_refused():
    with pytest.raises(AgreementError, match=r"aligner: Input should be 'odc'.*\[CB303\]"):
        made("procrustes")


@pytest.mark.parametrize("anchor", ["isometric", "gaussian"])
@pytest.mark.parametrize("name", NAMES)
def test_aligned_sizes_do_not_depend_on_the_method(name, anchor):
    """The papers' Imakura features shrink as 1/sqrt(a) and Kawakami's by 1/sqrt(c) more."""
    toy = make_toy("samespan_orth", anchor=anchor)
    products = toy.products(align(made(name, anchor, n_anchor_rows=30), toy.images))
    for product in products.values():
        assert np.sqrt(np.mean(np.sum(product**2, axis=0))) == pytest.approx(1.0, rel=0.25)


@pytest.mark.parametrize("method", [Whitened, Imakura, Kawakami])
def test_the_measured_gain_is_that_of_the_images(method):
    """Root mean square length of an image's columns: one, for orthonormal bases and anchors."""
    images = make_toy("diffspan_orth", anchor="isometric").images
    rows = align(method(scale="measured"), images).target.rows
    assert np.linalg.norm(rows) == pytest.approx(2.0)
    louder = {party: 5 * image for party, image in images.items()}
    rows = align(method(scale="measured"), louder).target.rows
    assert np.linalg.norm(rows) == pytest.approx(10.0)
