"""Attacks at the size of Fashion-MNIST, with the evaluation data.

Figures of notes/privacy 2.4, 2.5 and 2.8.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from experiments.attacks.anchor_ica import row_sums
from experiments.attacks.public_anchor import anchor_rows
from experiments.attacks.repeated import Repeated
from experiments.data.images import images

from cobasis.linalg.rng import KeyStream
from cobasis.privacy.attacks.linkage import CandidatesAlone
from cobasis.privacy.attacks.public_sample import PublicSample
from cobasis.privacy.attacks.scores import score_content, score_linkage
from privacy.attacks.constructions import anchor, haar_basis, own_basis, released

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        not (Path(os.environ.get("COBASIS_DATA", "nowhere")) / "fashion-mnist").is_dir(),
        reason="COBASIS_DATA names no folder with fashion-mnist",
    ),
]


def soak(test):
    return pytest.mark.slow(pytest.mark.soak(test))


@pytest.fixture(scope="module")
def fashion():
    """Six thousand images with their labels, of which the first 1000 are the party's."""
    pixels, labels = images("fashion-mnist")
    chosen = np.random.default_rng(0).permutation(len(pixels))[:6000]
    return pixels[chosen].reshape(len(chosen), -1) / 255, labels[chosen]


@pytest.mark.parametrize("n_components", [10, 100])
def test_a_list_alone_names_every_image_of_an_svd_basis_and_none_of_a_haar_basis(
    fashion, n_components
):
    rows, listed = fashion[0][:500], fashion[0][:1000]
    found = []
    for basis in (own_basis(rows, n_components), haar_basis(784, n_components)):
        read = CandidatesAlone(candidates=listed).recover(released(rows, basis)).basis
        places = np.arange(500)
        found.append(score_linkage(rows @ basis, read, candidates=listed, places=places).value)
    assert found[0] > 0.98
    assert found[1] < 0.02


def test_pictures_of_clothes_are_named_from_four_hundred_public_ones(fashion):
    """Notes 2.4: l = 100, 400 public pictures and labels, 62 % of 1,000."""
    (rows, public), (labels, theirs) = ((each[:500], each[1000:1400]) for each in fashion)
    release = released(rows, own_basis(rows, 100), labels=labels)
    attack = PublicSample(rows=public, labels=theirs, rng=np.random.default_rng(0))
    found = attack.recover(release)
    linked = score_linkage(release.rows, found.basis, candidates=rows, places=np.arange(500))
    assert score_content(found, rows).named.value > 0.55
    assert linked.value > 0.7


@soak
def test_the_mean_row_of_a_uniform_anchor_shows_how_bright_an_image_is(fashion):
    rows = fashion[0][:1000]
    basis, read = own_basis(rows, 100), []
    for secret in (anchor("uniform", 1000, 784), anchor("isometric", 784, 784)):
        seen = row_sums(released(rows, basis, secret))
        read.append(abs(np.corrcoef(rows.sum(axis=1), seen)[0, 1]))
    blind = rows @ basis @ KeyStream(bytes(32), "tests/blind").normal((100, 200))
    chance = np.abs(np.corrcoef(rows.sum(axis=1), blind.T)[0, 1:]).mean()
    assert read[0] > 0.999
    assert read[1] < chance + 0.3


@soak
def test_a_thousand_anchor_rows_are_found_among_five_thousand_public_images(fashion):
    rows, pool = fashion[0][:1000], fashion[0][1000:]
    places = np.random.default_rng(0).choice(5000, 1000, replace=False)
    secret = anchor("public", 1000, 784, public_rows=pool[places])
    release = released(rows, own_basis(rows, 100), secret, labels=fashion[1][:1000])
    first = PublicSample(
        rows=pool[:1000], labels=fashion[1][1000:2000], rng=np.random.default_rng(0)
    )
    found = anchor_rows(release, pool=pool, first=first.recover(release).basis)
    np.testing.assert_array_equal(pool[found], pool[places])


@soak
def test_sixteen_fresh_spans_of_50_components_give_every_image_exactly(fashion):
    rows, secret = fashion[0][:300], anchor("isometric", 784, 784)
    uploads = [released(rows, haar_basis(784, 50, number=number), secret) for number in range(16)]
    content = score_content(Repeated(anchor=secret, others=uploads[1:]).recover(uploads[0]), rows)
    assert content.named.value == 1.0
    assert content.explained.value > 1 - 1e-9
