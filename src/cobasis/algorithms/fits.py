"""The two fits of the family: orthogonal Procrustes and least squares."""

import numpy as np
from scipy.linalg import solve_triangular

from cobasis.algorithms.base import Fit
from cobasis.errors import DimensionError, UndeterminedFitError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.polar import polar
from cobasis.linalg.spans import orthonormality_defect

DETERMINED = 1e-8
"""Below this ratio of singular values the polar factor is arbitrary (rounding decides)."""


def procrustes_fit(image: Matrix, target: Matrix, *, party: str) -> Fit:
    r"""Find the orthogonal G closest to the target: the polar factor of :math:`A_i' Z`.

    Parameters
    ----------
    image : ndarray of shape (n_anchor_rows, k)
        A_i.
    target : ndarray of shape (n_anchor_rows, n_components)
        Z. ``k <= n_components``, or any k where A_i has orthonormal columns.
    party : str
        For the message.

    Returns
    -------
    Fit
        G with ``G G' = I`` (or ``G' G = I`` where k is larger). Reflections are kept.

    Raises
    ------
    UndeterminedFitError
        Some directions of the party have no counterpart in the target.
    DimensionError
        k is above n_components and the image is not orthonormal.

    Notes
    -----
    **Who sees what.** One anchor image and Z.

    **Cost.** ``2 a k l`` operations for the product, ``22 l^3`` for the factor.

    References
    ----------
    ODC paper, Algorithm 4 and eq. (71).
    """
    if image.shape[1] > target.shape[1] and orthonormality_defect(image) > DETERMINED:
        msg = (
            f"party '{party}' has {image.shape[1]} components, the target {target.shape[1]}: a "
            "rotation cannot shorten a basis under this anchor. Take the party with the most "
            "components as reference, or anchor='isometric'."
        )
        raise DimensionError(msg)
    factor = polar(image.T @ target)
    values = factor.singular_values
    scale = float(np.linalg.norm(image) * np.linalg.norm(target))
    lost = int(np.count_nonzero(values <= max(DETERMINED * values[0], 1e-12 * scale)))
    if lost:
        msg = (
            f"{lost} of the {len(values)} directions of party '{party}' are undetermined: nothing "
            "in the target corresponds to them, so its rotation would be arbitrary. Check that "
            "all parties use the same features and anchor, lower n_components, or use "
            "basis='consensus'."
        )
        raise UndeterminedFitError(msg)
    return Fit(change_of_basis=factor.rotation, determination=float(values[-1] / values[0]))


def least_squares_fit(image: Matrix, target: Matrix) -> Fit:
    """Find the G that minimises ``||A_i G - Z||``, through a thin QR factorisation.

    Parameters
    ----------
    image : ndarray of shape (n_anchor_rows, k)
        A_i, of full column rank.
    target : ndarray of shape (n_anchor_rows, n_components)
        Z.

    Returns
    -------
    Fit
        ``G = A_i^+ Z``.

    Notes
    -----
    **Who sees what.** One anchor image and Z.

    **Cost.** ``4 a k^2`` operations. Not by the normal equations, which square the
    condition number.
    """
    factor, triangle = np.linalg.qr(image)
    values = np.linalg.svd(triangle, compute_uv=False)
    change = solve_triangular(triangle, factor.T @ target)
    return Fit(change_of_basis=change, determination=float(values[-1] / values[0]))
