"""Whoever has a party's basis, or what gives it away, reads the party's rows off its upload."""

from dataclasses import dataclass

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.privacy.attacks import Recovered, Release


@dataclass(frozen=True, kw_only=True, repr=False)
class LeakedBasis(Hidden):
    """Somebody has the secret basis itself: stolen, or worked out by another attack."""

    basis: Matrix
    prior_rows: Matrix | None = None

    def recover(self, release: Release) -> Recovered:
        """Put released rows back where the basis took them from."""
        basis, rows = self.basis, release.rows
        if self.prior_rows is None:  # nothing is known of what the basis does not span: take 0
            return Recovered(rows=rows @ np.linalg.pinv(basis), basis=basis)
        # The best linear guess of x from x F is mean + (x F - mean F) (F'CF)^+ F'C, with C the
        # covariance of like rows: it fills in what goes with the directions that are seen. With
        # P the centred like rows that factor is (P F)^+ P. Through F'CF the condition number
        # would be squared, and a prior of fewer rows than components would not be solvable.
        mean = self.prior_rows.mean(axis=0)
        prior = self.prior_rows - mean
        back = np.linalg.pinv(prior @ basis) @ prior
        return Recovered(rows=mean + (rows - mean @ basis) @ back, basis=basis)


@dataclass(frozen=True, kw_only=True, repr=False)
class Collusion(Hidden):
    """A party that has the anchor helps the analyst that has the anchor's image.

    A guessed seed of the anchor, and a public anchor whose rows were found, are the same attack.
    """

    anchor: Matrix

    def recover(self, release: Release) -> Recovered:
        """Read the basis off the anchor's image: ``F_i = A^+ A_i``."""
        image = release.anchor_image
        if image is None or len(image) != len(self.anchor):
            raise ShapeError(
                f"the anchor has {len(self.anchor):,} rows and the release's image of it "
                f"{0 if image is None else len(image):,}. Give the anchor of this release."
            )
        basis = np.asarray(np.linalg.lstsq(self.anchor, image, rcond=None)[0])
        return LeakedBasis(basis=basis).recover(release)
