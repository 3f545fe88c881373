"""Finding out which public rows the anchor is made of.

**Who.** The analyst alone, if the anchor's rows come from a collection that it can get as well.
**What stops it.** An anchor that is drawn and not chosen: isometric or Gaussian, or Gaussian with
the public rows' mean and covariance, which keeps what they add to accuracy. **What does not.** A
large collection, a secret choice among its rows, fewer components.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.privacy.attacks.collusion import Collusion
from cobasis.privacy.attacks.release import Attack, Recovered, Release
from cobasis.privacy.attacks.scores import nearest
from experiments.attacks.anchor_image import image_of

_ROUNDS = 60


@dataclass(frozen=True, kw_only=True, repr=False)
class PublicAnchor(Hidden):
    """Somebody has the collection that anchor rows were taken from."""

    pool: Matrix
    first: Attack

    def recover(self, release: Release) -> Recovered:
        """Match anchor images and public rows, and collude with the rows that were found."""
        pool = as_matrix(self.pool, name="pool")
        return Collusion(anchor=pool[self.matches(release)]).recover(release)

    def matches(self, release: Release) -> npt.NDArray[np.intp]:
        """Say which public row each anchor row is.

        Matches give a basis, a basis gives better matches. The basis is kept to the leading
        directions of the public rows, turned: one right match in ten is then enough to begin with.
        """
        image = image_of(release)
        pool = as_matrix(self.pool, name="pool")
        basis = self.first.recover(release).basis
        if basis is None or basis.shape != (pool.shape[1], image.shape[1]):
            raise ShapeError(
                f"the first guess has no basis of {pool.shape[1]} features and {image.shape[1]} "
                "components to start from. Use PublicSample with the same pool."
            )
        leading: Matrix = np.linalg.svd(pool, full_matrices=False)[2][: image.shape[1]].T
        found = nearest(image, among=pool @ basis)
        for _ in range(_ROUNDS):
            before = found
            left, _, right = np.linalg.svd((pool[found] @ leading).T @ image)
            found = nearest(image, among=pool @ (leading @ (left @ right)))
            if np.array_equal(found, before):
                break
        return found
