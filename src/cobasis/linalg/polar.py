"""The orthogonal polar factor, which is all that a Procrustes fit is."""

from dataclasses import dataclass

import numpy as np

from cobasis.linalg.arrays import Matrix


@dataclass(frozen=True, kw_only=True)
class PolarFactor:
    """The factor nearest to a matrix, and how well the matrix determines it.

    Attributes
    ----------
    rotation : ndarray of shape (k, l)
        ``U V'`` of the thin singular value decomposition: orthonormal rows or columns,
        whichever are fewer. Reflections are kept: never corrected to determinant one.
    singular_values : ndarray of shape (min(k, l),)
        In decreasing order. Where the last is zero the factor is arbitrary.
    """

    rotation: Matrix
    singular_values: Matrix


def polar(matrix: Matrix) -> PolarFactor:
    """Return the orthogonal polar factor of `matrix`, by singular value decomposition.

    Parameters
    ----------
    matrix : ndarray of shape (k, l)
        Finite numbers.

    Returns
    -------
    PolarFactor
        The rotation and the singular values that say how far it is determined.

    Notes
    -----
    **Who sees what.** Arrays in, arrays out.

    **Cost.** ``22 l^3`` operations. Not by ``(M'M)^(-1/2)``, which squares the condition
    number.

    Examples
    --------
    >>> import numpy as np
    >>> polar(np.diag([3.0, -2.0])).rotation
    array([[ 1.,  0.],
           [ 0., -1.]])
    """
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    return PolarFactor(rotation=left @ right, singular_values=values)
