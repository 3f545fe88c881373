"""Procrustes fits of images that are the target turned, from a few of their rows."""

from contextlib import suppress
from functools import cached_property

import numpy as np
from scipy.linalg import cho_solve

from cobasis.algorithms.images import Images
from cobasis.linalg.arrays import Matrix, orthonormality_defect

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

    The vector has a fixed seed: it must miss no difference, and need not be secret.
    """

    def __init__(self, rows: Matrix) -> None:
        self._rows = rows
        self._count = ROWS_A_COMPONENT * rows.shape[1]

    @cached_property
    def _lengths(self) -> Matrix:
        return _row_lengths(self._rows[: self._count])

    @cached_property
    def _inverse(self) -> Matrix:
        """What finds the turn from a few rows; empty where they determine none."""
        few = self._rows[: self._count]
        if _orthonormal(self._rows):
            with suppress(np.linalg.LinAlgError):
                return np.asarray(cho_solve((np.linalg.cholesky(few.T @ few), True), few.T))
        return np.zeros((0, 0))

    @cached_property
    def _vector(self) -> Matrix:
        return np.random.default_rng(0).standard_normal((self._rows.shape[1],))

    @cached_property
    def _image(self) -> Matrix:
        return self._rows @ self._vector

    @cached_property
    def _allowed(self) -> float:
        return ROUNDING * float(np.linalg.norm(self._image))

    def rotations(self, images: Images) -> dict[str, Matrix]:
        """Return the G_i of those images of a batch that are Z turned, if its last may be one.

        Images are as wide as Z. A turn leaves a row its length, so a few rows of the last tell.
        """
        last = list(images.values())[-1]
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not found
            off = np.abs(_row_lengths(last[: self._count]) - self._lengths)
            if not np.all(off <= NEARLY * self._lengths.max()) or not len(self._inverse):
                return {}
            return self._found(images)

    def _found(self, images: Images) -> dict[str, Matrix]:
        """Solve for each turn, and keep those that all rows agree with."""
        turns = np.stack([self._inverse @ image[: self._count] for image in images.values()])
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


def _row_lengths(rows: Matrix) -> Matrix:
    squares: Matrix = np.einsum("ij,ij->i", rows, rows)
    return np.sqrt(squares)


def _orthonormal(rows: Matrix) -> bool:
    """Return whether columns are orthonormal to rounding, by their lengths first."""
    lengths = np.einsum("ij,ij->j", rows, rows)
    return bool(np.abs(lengths - 1).max() <= ROUNDING) and orthonormality_defect(rows) <= ROUNDING
