"""Imakura-DC: least squares onto the leading directions of all images (ODC paper, Algorithm 2)."""

from dataclasses import dataclass

import numpy as np

from cobasis.algorithms import Scale
from cobasis.algorithms.fits import Solves, Target, with_scale
from cobasis.algorithms.images import Images
from cobasis.algorithms.stacked import leading_directions
from cobasis.errors import OptionError
from cobasis.linalg.arrays import Matrix, as_matrix


@dataclass(frozen=True, kw_only=True)
class Imakura(Solves):
    r"""Imakura-DC: :math:`Z = U R`, U the top left singular vectors of :math:`[A_1 \dots A_c]`.

    There are as many of them as the narrowest image has columns.

    Parameters
    ----------
    factor : ndarray of shape (n_components, n_components), optional
        R, invertible; by default the identity.
    scale : float, "measured" or "paper"
        The one global scalar; ``"paper"`` leaves U R as it is, of size 1/sqrt(a).

    Notes
    -----
    **Who sees what.** Z carries a trace of every party.

    **Cost.** ``a^2 c l`` operations for a Gram matrix, one eigendecomposition of size
    ``min(a, c l)``, and least squares a party; two readings of the images.

    References
    ----------
    Imakura and Sakurai; ODC paper, Algorithm 2, eq. (27), Theorem 4.3.
    """

    factor: Matrix | None = None
    scale: Scale = "measured"

    def target(self, images: Images, *, workers: int | None = None) -> Target:
        """Take the leading left singular vectors, times R."""
        found, gain = leading_directions(images, size=min, workers=workers)
        rows = found.directions
        if self.factor is not None:
            given, size = as_matrix(self.factor, name="factor"), rows.shape[1]
            rank = int(np.linalg.matrix_rank(given))
            if given.shape != (size, size) or rank < size:
                raise OptionError(
                    f"factor has shape {given.shape} and rank {rank}, so it is no invertible "
                    f"{size} x {size} matrix and would lose directions. Leave it out, or draw "
                    "another."
                )
            rows = rows @ given
        rows = with_scale(rows, gain=gain, scale=self.scale)
        return Target(rows=rows, shaped_by=tuple(images))
