"""The orthogonal polar factor, which is all that a Procrustes fit is, of a stack at once.

The one file of array-API code: NumPy arrays and PyTorch tensors stay what and where they are.
"""

from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from cobasis.errors import NotFiniteError

Array = Any  # an array of any library that follows the array API standard, float64
_NEGLIGIBLE = 3e-7  # of a defect ``||X'X - I||_F`` one correction leaves the square: here, 1e-13

_ORTHOGONAL = 3e-13
"""Columns that are this near to orthogonal, and to one length, only want dividing by it."""

_LARGEST = 1e150  # what can be squared and summed


@dataclass(frozen=True, kw_only=True)
class PolarFactor:
    """The factors nearest to a stack of matrices, and how well the matrices determine them."""

    # U V' of each thin SVD, orthonormal along the shorter side; reflections are kept
    rotation: Array
    singular_values: Array  # in decreasing order; where the last is zero the factor is arbitrary


def polar(matrices: Array) -> PolarFactor:
    """Return the orthogonal polar factor of each matrix of a stack."""
    xp = array_namespace(matrices)
    if matrices.shape[-2] < matrices.shape[-1]:
        tall = polar(xp.matrix_transpose(matrices))
        return PolarFactor(
            rotation=xp.matrix_transpose(tall.rotation), singular_values=tall.singular_values
        )
    stack = xp.reshape(matrices, (-1, *matrices.shape[-2:]))
    if not xp.max(xp.abs(stack)) <= _LARGEST:  # nor is NaN
        raise NotFiniteError(
            "a matrix contains NaN, infinity or numbers too large to square, so it has no polar "
            "factor. Look for what was divided by zero, or is not a number in the data."
        )
    # What is orthogonal already, as of parties with one span, needs two products and no more.
    squares = xp.sum(stack * stack, axis=-2)
    level = xp.min(squares, axis=-1)
    orthogonal = xp.all((xp.max(squares, axis=-1) <= (1 + _ORTHOGONAL) * level) & (level > 0))
    if orthogonal:
        lengths = xp.sqrt(squares)
        rotation = stack / lengths[:, None, :]
        values = xp.sort(lengths, axis=-1, descending=True)
        excess = _excess(xp, rotation)
        orthogonal = xp.sum(excess * excess) <= _ORTHOGONAL**2
    if not orthogonal:
        # Products and one eigh of a whole stack take a third of the time of an SVD a matrix. With
        # M'M = V L V' the columns of M V are orthogonal but for rounding, and at unit length
        # their defect stays small even where a singular value is: squaring it loses its digits
        # from L, but its length is taken from M V. The defect is measured and taken out by one
        # Newton step, and where it is larger than that can, the matrix goes through an SVD: where
        # the largest value is 1e4 times the others, say. A uniform anchor's mean makes one of 1e3.
        axes = xp.linalg.eigh(xp.matrix_transpose(stack) @ stack)[1]
        rotation, lengths, defects = _corrected(xp, stack @ axes)
        rotation = rotation @ xp.matrix_transpose(axes)
        values = xp.sort(lengths, axis=-1, descending=True)
        for index in map(int, xp.nonzero(~(defects <= _NEGLIGIBLE))[0]):
            left, values[index, ...], right = xp.linalg.svd(stack[index, ...], full_matrices=False)
            rotation[index, ...] = left @ right
    return PolarFactor(
        rotation=xp.reshape(rotation, matrices.shape),
        singular_values=xp.reshape(values, (*matrices.shape[:-2], matrices.shape[-1])),
    )


def _corrected(xp: Any, columns: Array) -> tuple[Array, Array, Array]:  # noqa: ANN401
    """Return the polar factor of nearly orthogonal columns, their lengths, and how nearly."""
    # Of columns X D of lengths d_i with X'X = I + E the factor is X (I - E o d_i / (d_i + d_j))
    # up to ||E||^2. Without the weights it would be X's factor, and not X D's: weak directions
    # would be turned as far as strong ones.
    values = xp.sqrt(xp.sum(columns * columns, axis=-2))
    lengths = xp.where(values > 0, values, xp.ones_like(values))
    unit = columns / lengths[:, None, :]
    excess = _excess(xp, unit)
    defects = xp.sqrt(xp.sum(excess * excess, axis=(-2, -1)))
    excess *= lengths[:, :, None]
    excess /= lengths[:, :, None] + lengths[:, None, :]
    unit -= unit @ excess
    return unit, values, defects


def _excess(xp: Any, columns: Array) -> Array:  # noqa: ANN401
    """Return ``X'X - I``."""
    gram = xp.matrix_transpose(columns) @ columns
    gram -= xp.eye(columns.shape[-1], dtype=columns.dtype, device=columns.device)
    return gram
