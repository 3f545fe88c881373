"""A list of candidates against Fashion-MNIST, with the evaluation data."""

import os
from pathlib import Path

import numpy as np
import pytest
from experiments.data.images import images

from cobasis.privacy.attacks.linkage import CandidatesAlone
from cobasis.privacy.attacks.scores import score_linkage
from privacy.attacks.constructions import haar_basis, own_basis, released

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        not (Path(os.environ.get("COBASIS_DATA", "nowhere")) / "fashion-mnist").is_dir(),
        reason="COBASIS_DATA names no folder with fashion-mnist",
    ),
]


@pytest.fixture(scope="module")
def candidates():
    """A thousand images, of which the first 500 are the party's."""
    pixels, _ = images("fashion-mnist")
    chosen = np.random.default_rng(0).permutation(len(pixels))[:1000]
    return pixels[chosen].reshape(1000, -1) / 255


def linked(candidates, basis):
    release = released(candidates[:500], basis)
    recovered = CandidatesAlone(candidates=candidates).recover(release)
    return score_linkage(
        release.rows, recovered, candidates=candidates, places=np.arange(500)
    ).value


@pytest.mark.parametrize("n_components", [10, 100])
def test_a_list_alone_names_every_image_of_an_svd_basis_and_none_of_a_haar_basis(
    candidates, n_components
):
    assert linked(candidates, own_basis(candidates[:500], n_components)) > 0.98
    assert linked(candidates, haar_basis(784, n_components)) < 0.02
