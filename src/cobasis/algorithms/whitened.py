"""Whitened ODC: Procrustes between orthonormalised images (ours)."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from cobasis.algorithms.base import Fit, Scale, Target, with_scale
from cobasis.algorithms.fits import procrustes_fit
from cobasis.algorithms.images import Images
from cobasis.algorithms.reference import reference_of
from cobasis.linalg.arrays import Matrix


@dataclass(frozen=True, kw_only=True)
class Whitened:
    r"""ODC that does not care whether bases are orthonormal.

    With the thin QR :math:`A_i = Q_i R_i`: :math:`Z = Q_r` and
    :math:`G_i = R_i^{-1} \mathrm{polar}(Q_i' Z)`. Whatever invertible :math:`E_i` a party
    multiplies its basis with, :math:`F_i G_i` stays the same, up to one rotation common to
    all. Under an isometric anchor and orthonormal bases it is ODC.

    Parameters
    ----------
    reference : str, optional
        The party whose span is the target; by default the first.
    scale : float, "measured" or "paper"
        What the anchor makes of a unit vector. 1 for an isometric anchor, the default;
        ``"measured"`` takes the images' root mean square, which does depend on E_i.

    Notes
    -----
    **Who sees what.** Z spans what the reference's image spans.

    **Cost.** ODC's and one thin QR factorisation a party, ``4 a l^2`` operations. Never by
    the Gram matrix's inverse root, which squares the condition number.

    References
    ----------
    No paper has it; decision record 0007 in ``docs/decisions``.

    Examples
    --------
    >>> Whitened()
    Whitened(reference=None, scale=1.0)
    """

    reference: str | None = None
    scale: Scale = 1.0

    def target(self, images: Images) -> Target:
        """Orthonormalise the reference's image."""
        name, image = reference_of(images, self.reference)
        return Target(
            rows=with_scale(np.linalg.qr(image)[0], images, scale=self.scale), shaped_by=(name,)
        )

    def fit(self, image: Matrix, target: Target, *, party: str) -> Fit:
        """Rotate the orthonormalised image, and undo the orthonormalisation."""
        factor, triangle = np.linalg.qr(image)
        turn = procrustes_fit(factor, target.rows, party=party)
        size = np.linalg.norm(target.rows) / np.sqrt(target.rows.shape[1])
        change = solve_triangular(triangle, turn.change_of_basis * size)
        return Fit(change_of_basis=change, determination=turn.determination)
