"""The orthogonal polar factor, which is all that a Procrustes fit is, of a stack at once."""

from dataclasses import dataclass

import numpy as np

from cobasis.errors import NotFiniteError
from cobasis.linalg.arrays import Matrix

_NEGLIGIBLE = 3e-7  # of a defect ``||X'X - I||_F`` one correction leaves the square: here, 1e-13

_ORTHOGONAL = 3e-13
"""Columns that are this near to orthogonal, and to one length, only want dividing by it."""

_LARGEST = 1e150  # what can be squared and summed


@dataclass(frozen=True, kw_only=True)
class PolarFactor:
    """The factors nearest to a stack of matrices, and how well the matrices determine them."""

    # U V' of each thin SVD, orthonormal along the shorter side; reflections are kept
    rotation: Matrix
    singular_values: Matrix  # in decreasing order; where the last is zero the factor is arbitrary


def polar(matrices: Matrix) -> PolarFactor:
    if matrices.shape[-2] < matrices.shape[-1]:
        tall = polar(matrices.mT)
        return PolarFactor(rotation=tall.rotation.mT, singular_values=tall.singular_values)
    stack = matrices.reshape(-1, *matrices.shape[-2:])
    if not np.abs(stack).max() <= _LARGEST:  # nor is NaN
        raise NotFiniteError(
            "a matrix contains NaN, infinity or numbers too large to square, so it has no polar "
            "factor. Look for what was divided by zero, or is not a number in the data."
        )
    # What is orthogonal already, as of parties with one span, needs two products and no more.
    squares = np.sum(stack * stack, axis=-2)
    level = squares.min(axis=-1)
    orthogonal = np.all((squares.max(axis=-1) <= (1 + _ORTHOGONAL) * level) & (level > 0))
    if orthogonal:
        lengths = np.sqrt(squares)
        rotation = stack / lengths[:, None, :]
        excess = rotation.mT @ rotation - np.eye(stack.shape[-1])
        orthogonal = np.sum(excess**2) <= _ORTHOGONAL**2
    if not orthogonal:
        # Products and one eigh of a whole stack take a third of the time of an SVD a matrix. With
        # M'M = V L V' the columns of M V are orthogonal but for rounding, and at unit length
        # their defect stays small even where a singular value is: squaring it loses its digits
        # from L, but its length is taken from M V. The defect is measured and taken out by one
        # Newton step, and where it is larger than that can, the matrix goes through an SVD: where
        # the largest value is 1e4 times the others, say. A uniform anchor's mean makes one of 1e3.
        axes = np.linalg.eigh(stack.mT @ stack)[1]
        rotation, lengths, defects = _corrected(stack @ axes)
        rotation = rotation @ axes.mT
        for index in np.flatnonzero(~(defects <= _NEGLIGIBLE)):
            left, lengths[index], right = np.linalg.svd(stack[index], full_matrices=False)
            rotation[index] = left @ right
    values = np.sort(lengths, axis=-1)[:, ::-1]
    return PolarFactor(
        rotation=rotation.reshape(matrices.shape),
        singular_values=values.reshape(*matrices.shape[:-2], matrices.shape[-1]),
    )


def _corrected(columns: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Return the polar factor of nearly orthogonal columns, their lengths, and how nearly."""
    # Of columns X D of lengths d_i with X'X = I + E the factor is X (I - E o d_i / (d_i + d_j))
    # up to ||E||^2. Without the weights it would be X's factor, and not X D's: weak directions
    # would be turned as far as strong ones.
    values = np.linalg.norm(columns, axis=-2)
    lengths = np.where(values > 0, values, 1.0)
    unit = columns / lengths[:, None, :]
    excess = unit.mT @ unit - np.eye(columns.shape[-1])
    defects = np.linalg.norm(excess, axis=(-2, -1))
    excess *= lengths[:, :, None]
    excess /= lengths[:, :, None] + lengths[:, None, :]
    unit -= unit @ excess
    return unit, values, defects
