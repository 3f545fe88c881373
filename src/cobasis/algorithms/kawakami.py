"""Kawakami-DC: least squares with a norm constraint per column (ODC paper, Algorithm 3)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cobasis.algorithms import Scale
from cobasis.algorithms.fits import Solves, Target, with_scale
from cobasis.algorithms.images import Images
from cobasis.algorithms.stacked import leading_directions
from cobasis.errors import OptionError
from cobasis.linalg.arrays import Matrix

_NO_SPREAD = 1e-8


@dataclass(frozen=True, kw_only=True)
class Kawakami(Solves):
    r"""Kawakami-DC: :math:`Z = U \Sigma^{-1}` from the SVD of :math:`[Q_1 \dots Q_c]`.

    The published form solves for the G_i without a target; least squares to this Z gives
    the same G_i, and gives late parties theirs.

    Parameters
    ----------
    weighting : {"none", "eigen"}
        ``"eigen"`` multiplies column k by ``exp(-(lambda_k - lambda_1) / (lambda_l -
        lambda_1))``, ``lambda = 2c - 2 sigma^2``; where all spans agree the lambdas are
        rounding, and the weights are 1.
    scale : float, "measured" or "paper"
        The one global scalar; with ``"paper"`` (and no weighting) the papers' constraint
        ``sum_i ||A_i g_ik||^2 = 1`` holds.

    Notes
    -----
    **Who sees what.** Z carries a trace of every party.

    **Cost.** A QR factorisation and least squares a party, ``a^2 c l`` for a Gram matrix and one
    eigendecomposition of size ``min(a, c l)``; two readings of the images.

    References
    ----------
    Kawakami, Takano and Imakura; ODC paper, Algorithm 3, eq. (47). Weighting: ODC paper, arXiv v4.
    """

    weighting: Literal["none", "eigen"] = "none"
    scale: Scale = "measured"

    def target(self, images: Images, *, workers: int | None = None) -> Target:
        """Average the parties' canonical directions on the anchor."""
        if self.weighting not in {"none", "eigen"}:
            raise OptionError(f"weighting={self.weighting!r} is not known. Choose none or eigen.")
        found, gain = leading_directions(images, size=min, orthonormalised=True, workers=workers)
        values = found.singular_values
        rows = found.directions / values
        if self.weighting == "eigen":
            rows = rows * eigen_weights(values, n_parties=len(images))
        rows = with_scale(rows, gain=gain, scale=self.scale)
        return Target(rows=rows, shaped_by=tuple(images))


def eigen_weights(singular_values: Matrix, *, n_parties: int) -> Matrix:
    """Return Kawakami's weights, all 1 where the eigenvalues differ by rounding only."""
    eigenvalues = 2.0 * n_parties - 2.0 * singular_values**2
    spread = eigenvalues[-1] - eigenvalues[0]
    if spread < _NO_SPREAD * 2 * n_parties:  # rounding of the subtraction, blown up by dividing
        return np.ones_like(singular_values)
    return np.asarray(np.exp(-(eigenvalues - eigenvalues[0]) / spread))
