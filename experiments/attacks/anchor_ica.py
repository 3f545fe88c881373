"""Reading the secret basis off the anchor's image, because the anchor's entries are not Gaussian.

**Who.** The analyst alone, or whoever opens an upload. **What stops it.** The isometric and the
Gaussian anchor: ``A F_i`` is then distributed the same whatever ``F_i`` is. **What does not.**
Keeping a uniform anchor's seed secret, however long; fewer components only slow it down; more
anchor rows, which alignment likes, make it exact.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.linalg.rng import KeyStream
from cobasis.linalg.threads import one_blas_thread
from cobasis.privacy.attacks.release import Recovered, Release
from cobasis.privacy.attacks.scores import Share
from experiments.attacks.anchor_image import image_of

_STEPS = 100
"""A uniform anchor's components stand still after some dozens; a Gaussian one's never do."""

_BLIND = 200
"""Random directions whose mean is called chance."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AnchorIca(Hidden):
    """Somebody knows that the anchor's entries are independent, and nothing else."""

    n_features: int

    def recover(self, release: Release) -> Recovered:
        """Look for the directions along which the anchor image is least Gaussian."""
        image = image_of(release)
        n_rows, n_components = image.shape
        if n_components > min(self.n_features, n_rows - 1):
            raise ShapeError(
                f"n_components={n_components} is above n_features={self.n_features}, or not "
                f"below the {n_rows} anchor rows, so there are not that many sources. Give the "
                "sizes of the round."
            )
        search = FastICA(
            n_components=n_components,
            whiten="unit-variance",
            w_init=np.eye(n_components),  # nothing is left to chance: the same release, same guess
            max_iter=_STEPS,
        )
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # what a Gaussian anchor looks like
            found: Matrix = search.fit(image).components_
        found = found / np.linalg.norm(found, axis=1, keepdims=True)
        found *= np.where((image @ found.T).mean(axis=0) < 0, -1.0, 1.0)[:, np.newaxis]
        basis = np.zeros((self.n_features, n_components))
        basis[:n_components] = found
        return Recovered(rows=release.rows @ basis.T, basis=basis)


@dataclass(frozen=True, kw_only=True, repr=False)
class AnchorMean(Hidden):
    """Somebody knows what the anchor's entries are on average, and nothing else."""

    entry_mean: float = 0.5

    def row_sums(self, release: Release) -> Matrix:
        """Read everybody's sum of features off the anchor image's mean row.

        The mean row of A is about ``entry_mean 1'``, so that of ``A F_i`` is about
        ``entry_mean 1' F_i``: the direction of the row sums, seen through the secret basis.
        """
        sums: Matrix = release.rows @ image_of(release).mean(axis=0) / self.entry_mean
        return sums


def score_row_sums(release: Release, truth: npt.ArrayLike) -> Share:
    """Say how well the row sums can be read off a release whose anchor may be uniform."""
    image = image_of(release)
    sums = as_matrix(truth, name="truth").sum(axis=1)
    stream = KeyStream(bytes(32), "attacks/chance")
    blind = release.rows @ stream.normal((image.shape[1], _BLIND))
    read = AnchorMean().row_sums(release)
    found = np.abs(np.corrcoef(np.column_stack([sums, read, blind]), rowvar=False)[0, 1:])
    return Share(value=float(found[0]), chance=float(found[1:].mean()))
