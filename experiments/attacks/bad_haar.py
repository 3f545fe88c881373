"""Reading the secret span off an anchor image whose anchor only looks like a Haar isometry.

**Who.** The analyst alone, or whoever opens an upload and can read the program that draws the
anchor. **What stops it.** Stewart's construction to the letter, which `HaarIsometry` is:
the anchor's law is then the same from every side, and no guess of the span is better than any
other. **What does not.** A secret of any length; checks that A' A = I, that the parties agree, or
that accuracy is right: every bad draw passes all of them.
"""

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
