"""Whoever has a party's basis, or what gives it away, reads the party's rows off its upload."""

from dataclasses import dataclass

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.privacy.attacks.release import Recovered, Release


@dataclass(frozen=True, kw_only=True, repr=False)
class LeakedBasis(Hidden):
    """Somebody has the secret basis itself: stolen, or worked out by another attack."""

    basis: Matrix
    prior_rows: Matrix | None = None

    def recover(self, release: Release) -> Recovered:
        """Put released rows back where the basis took them from."""
        basis = as_matrix(self.basis, name="basis")
        rows = as_matrix(release.rows, name="the release's rows", columns=basis.shape[1])
        if self.prior_rows is None:
            return Recovered(rows=rows @ np.linalg.pinv(basis), basis=basis)
        prior = as_matrix(self.prior_rows, name="prior_rows", columns=len(basis))
        mean = prior.mean(axis=0)
        seen = (prior - mean) @ basis
        back: Matrix = np.linalg.pinv(seen) @ (prior - mean)  # (F' C F)^+ F' C, never squared
        return Recovered(rows=mean + (rows - mean @ basis) @ back, basis=basis)


@dataclass(frozen=True, kw_only=True, repr=False)
class Collusion(Hidden):
    """A party that has the anchor helps the analyst that has the anchor's image.

    A guessed seed of the anchor, and a public anchor whose rows were found, are the same attack.
    """

    anchor: Matrix

    def recover(self, release: Release) -> Recovered:
        """Read the basis off the anchor's image: ``F_i = A^+ A_i``."""
        if release.anchor_image is None:
            raise ShapeError(
                "the release has no anchor image, so the anchor is of no use. Give anchor_image, "
                "or use LeakedBasis."
            )
        anchor = as_matrix(self.anchor, name="anchor")
        image = as_matrix(release.anchor_image, name="the release's anchor_image")
        if len(image) != len(anchor):
            raise ShapeError(
                f"the anchor has {len(anchor)} rows and its image {len(image)}, so it is not "
                "this anchor's. Give the anchor that the release was made with."
            )
        basis = np.linalg.lstsq(anchor, image, rcond=None)[0]
        return LeakedBasis(basis=np.asarray(basis, dtype=np.float64)).recover(release)


@dataclass(frozen=True, kw_only=True, repr=False)
class OtherPartysFrame(Hidden):
    """A party that has its own basis helps the analyst; the anchor may be long destroyed.

    Alignment makes ``F_i G_i`` (nearly) equal for all parties, so one party's is everybody's.
    """

    basis: Matrix
    change: Matrix
    own_change: Matrix

    def recover(self, release: Release) -> Recovered:
        """Take the other party's frame for this one's: ``F_i ~ F_j G_j G_i^+``."""
        basis = as_matrix(self.basis, name="basis")
        own = as_matrix(self.own_change, name="own_change")
        change = as_matrix(self.change, name="change", columns=own.shape[1])
        if len(own) != basis.shape[1]:
            raise ShapeError(
                f"own_change has {len(own)} rows and the basis {basis.shape[1]} columns, so they "
                "are not one party's. Give the basis and the change of basis of the same party."
            )
        guess: Matrix = basis @ own @ np.linalg.pinv(change)
        return LeakedBasis(basis=guess).recover(release)
