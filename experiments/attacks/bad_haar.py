"""Reading the secret span off an anchor image whose anchor only looks like a Haar isometry."""

from collections.abc import Iterable

import numpy as np

from cobasis.linalg.arrays import Matrix
from cobasis.privacy.attacks import Recovered, Release
from experiments.attacks import image_of


def typical_anchor(draws: Iterable[Matrix]) -> Matrix:
    """Return what many anchors of this program have in common, one sign per anchor apart."""
    drawn = list(draws)
    flat = np.array([each.ravel() for each in drawn])
    weights = np.linalg.eigh(flat @ flat.T)[1][:, -1]
    common: Matrix = (weights @ flat).reshape(drawn[0].shape)
    return common


def read_by(release: Release, typical: Matrix) -> Recovered:
    """Take the typical anchor for the secret one: ``F_i ~ A' A_i``."""
    guess = typical.T @ image_of(release, anchor=typical)
    basis: Matrix = guess * (np.sqrt(guess.shape[1]) / np.linalg.norm(guess))
    return Recovered(rows=release.rows @ basis.T, basis=basis)
