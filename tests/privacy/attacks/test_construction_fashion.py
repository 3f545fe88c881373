"""Attacks on the construction at the size of Fashion-MNIST, with the evaluation data.

Figures of notes/privacy 2.5 and 2.8.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from experiments.attacks.anchor_ica import score_row_sums
from experiments.attacks.public_anchor import PublicAnchor
from experiments.attacks.repeated import Repeated
from experiments.data.images import images

from cobasis.privacy.attacks.public_sample import PublicSample
from cobasis.privacy.attacks.scores import score_content
from privacy.attacks.constructions import anchor, haar_basis, own_basis, released

pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(
        not (Path(os.environ.get("COBASIS_DATA", "nowhere")) / "fashion-mnist").is_dir(),
        reason="COBASIS_DATA names no folder with fashion-mnist",
    ),
]


@pytest.fixture(scope="module")
def fashion():
    """Six thousand images with their labels, of which the first 1000 are the party's."""
    pixels, labels = images("fashion-mnist")
    chosen = np.random.default_rng(0).permutation(len(pixels))[:6000]
    return pixels[chosen].reshape(len(chosen), -1) / 255, labels[chosen]


def test_the_mean_row_of_a_uniform_anchor_shows_how_bright_an_image_is(fashion):
    rows = fashion[0][:1000]
    basis = own_basis(rows, 100)
    assert score_row_sums(released(rows, basis, anchor("uniform", 1000, 784)), rows).value > 0.999
    safe = score_row_sums(released(rows, basis, anchor("isometric", 784, 784)), rows)
    assert safe.value < safe.chance + 0.3


def test_a_thousand_anchor_rows_are_found_among_five_thousand_public_images(fashion):
    rows, pool = fashion[0][:1000], fashion[0][1000:]
    places = np.random.default_rng(0).choice(5000, 1000, replace=False)
    secret = anchor("public", 1000, 784, public_rows=pool[places])
    release = released(rows, own_basis(rows, 100), secret, labels=fashion[1][:1000])
    first = PublicSample(
        rows=pool[:1000], labels=fashion[1][1000:2000], rng=np.random.default_rng(0)
    )
    found = PublicAnchor(pool=pool, first=first).matches(release)
    np.testing.assert_array_equal(pool[found], pool[places])


def test_sixteen_fresh_spans_of_50_components_give_every_image_exactly(fashion):
    rows, secret = fashion[0][:300], anchor("isometric", 784, 784)
    uploads = [released(rows, haar_basis(784, 50, number=number), secret) for number in range(16)]
    content = score_content(Repeated(anchor=secret, others=uploads[1:]).recover(uploads[0]), rows)
    assert content.named.value == 1.0
    assert content.explained.value > 1 - 1e-9
