"""Procrustes fits of images that are the target turned, from a few of their rows."""

from contextlib import suppress

import numpy as np
from scipy.linalg import cho_solve

from cobasis.algorithms.images import Images
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.spans import orthonormality_defect

ROWS_A_COMPONENT = 2
"""How many rows a component are looked at; as many as columns would be badly conditioned."""

WORTH = 3
"""With less than so many times those rows, the product of all rows costs no more."""

ROUNDING = 1e-12
"""By how much of its length an image's product may differ from the target's."""

NEARLY = 1e-7
"""A solution further than this from orthogonal is no turn. Of what a nearer one lacks one step
towards its polar factor leaves the square: rounding."""


class TurnedTarget:
    r"""Finds the :math:`A_i = Z O_i` among images, and their :math:`G_i = O_i'`.

    Parties with one span under an isometric anchor send such images. Any few rows determine
    the turn, and one product of all rows with a vector tells whether there was no more to it.

    Parameters
    ----------
    rows : ndarray of shape (n_anchor_rows, n_components)
        Z. Nothing is found where it has fewer than six rows a component, or columns that are not
        orthonormal: it is because they are that such a fit is fully determined.

    Notes
    -----
    The vector has a fixed seed: it must miss no difference, and need not be secret.

    **Who sees what.** Anchor images of a batch, and Z.

    **Cost.** ``2 a l^2`` once. Then ``2 a l + 8 l^3`` operations a party in place of
    ``2 a l^2 + 18 l^3``; to see that a batch holds other images takes next to none.
    """

    def __init__(self, rows: Matrix) -> None:
        few = rows[: ROWS_A_COMPONENT * rows.shape[1]]
        self._inverse: Matrix = np.zeros((0, 0))
        if WORTH * len(few) <= len(rows) and _orthonormal(rows):
            with suppress(np.linalg.LinAlgError):  # these rows do not determine a turn
                self._inverse = cho_solve((np.linalg.cholesky(few.T @ few), True), few.T)
            self._vector = np.random.default_rng(0).standard_normal(rows.shape[1])
            self._image = rows @ self._vector
            self._allowed = ROUNDING * float(np.linalg.norm(self._image))

    def rotations(self, images: Images) -> dict[str, Matrix]:
        """Return the G_i of those images of a batch that are Z turned, if its last may be one."""
        last = list(images.values())[-1]
        if last.shape[1] != len(self._inverse):
            return {}
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not found
            return self._found(images) if self._keeps_length(last) else {}

    def _keeps_length(self, image: Matrix) -> bool:
        """Return whether a few rows could come from a turn: it leaves a vector its length."""
        turned = self._inverse @ (image[: self._inverse.shape[1]] @ self._vector)
        length = float(np.linalg.norm(self._vector))
        return abs(float(np.linalg.norm(turned)) - length) <= NEARLY * length

    def _found(self, images: Images) -> dict[str, Matrix]:
        """Solve for each turn, and keep those that all rows agree with."""
        count = self._inverse.shape[1]
        turns = np.stack([self._inverse @ image[:count] for image in images.values()])
        excess = turns.transpose(0, 2, 1) @ turns - np.eye(len(self._inverse))
        near = np.abs(excess).max(axis=(1, 2)) <= NEARLY
        turns -= turns @ excess / 2
        return {
            party: turn.T
            for (party, image), turn, each in zip(images.items(), turns, near, strict=True)
            if each and self._agrees(image, turn.T)
        }

    def _agrees(self, image: Matrix, rotation: Matrix) -> bool:
        """Return whether ``A_i G w`` is ``Z w`` up to rounding."""
        off = image @ (rotation @ self._vector) - self._image
        return float(np.linalg.norm(off)) <= self._allowed


def _orthonormal(rows: Matrix) -> bool:
    """Return whether columns are orthonormal to rounding, by their lengths first."""
    lengths = np.einsum("ij,ij->j", rows, rows)
    return bool(np.abs(lengths - 1).max() <= ROUNDING) and orthonormality_defect(rows) <= ROUNDING
