"""Reading the secret span off an anchor image whose anchor only looks like a Haar isometry.

**Who.** The analyst alone, or whoever opens an upload and can read the program that draws the
anchor. **What stops it.** Stewart's construction to the letter, which `HaarIsometry` is:
the anchor's law is then the same from every side, and no guess of the span is better than any
other. **What does not.** A secret of any length; checks that A' A = I, that the parties agree, or
that accuracy is right: every bad draw passes all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.privacy.attacks.release import Recovered, Release
from experiments.attacks.anchor_image import anchor_behind, image_of


@dataclass(frozen=True, kw_only=True, repr=False)
class TypicalAnchor(Hidden):
    """Somebody knows what anchors of this program look like on the whole, and no secret."""

    anchor: Matrix

    def recover(self, release: Release) -> Recovered:
        """Take the typical anchor for the secret one: ``F_i ~ A' A_i``."""
        image = image_of(release)
        guess = anchor_behind(image, self.anchor).T @ image
        basis: Matrix = guess * (np.sqrt(guess.shape[1]) / np.linalg.norm(guess))
        return Recovered(rows=release.rows @ basis.T, basis=basis)


def typical_anchor(draws: Iterable[Matrix]) -> Matrix:
    """Return what many anchors have in common, one sign per anchor apart."""
    drawn = list(draws)
    if not drawn:
        raise ShapeError("there are no draws to compare. Draw some anchors with keys of your own.")
    flat = np.array([each.ravel() for each in drawn])
    weights = np.linalg.eigh(flat @ flat.T)[1][:, -1]
    common: Matrix = (weights @ flat).reshape(drawn[0].shape)
    return common
