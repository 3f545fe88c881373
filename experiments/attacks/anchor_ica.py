"""Reading the secret basis off the anchor's image, as the anchor's entries are not Gaussian."""

import warnings

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.privacy.attacks import Recovered, Release
from experiments.attacks import image_of

_STEPS = 100
"""A uniform anchor's components stand still after some dozens; a Gaussian one's never do."""


def anchor_ica(release: Release, *, n_features: int) -> Recovered:
    """Look for the directions along which the anchor image is least Gaussian."""
    image = image_of(release)
    n_components = image.shape[1]
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
    basis = np.zeros((n_features, n_components))
    basis[:n_components] = found
    return Recovered(rows=release.rows @ basis.T, basis=basis)


def row_sums(release: Release, *, entry_mean: float = 0.5) -> Matrix:
    """Read everybody's sum of features off the anchor image's mean row.

    The mean row of A is about ``entry_mean 1'``, so that of ``A F_i`` is about
    ``entry_mean 1' F_i``: the direction of the row sums, seen through the secret basis.
    """
    sums: Matrix = release.rows @ image_of(release).mean(axis=0) / entry_mean
    return sums
