"""One image as ``Q R``, and least squares by it: through its Gram matrix where that is exact.

A Gram matrix squares the condition number; a second step on what the first left over gets the
digits back. What is too badly conditioned for that goes through Householder reflections.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from cobasis.errors import AnchorImageError, ConditionError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.linalg.cholesky import triangle_of
from cobasis.linalg.spans import numerical_rank

MAX_CONDITION = 1e10
"""Above this an inverse keeps fewer than six digits."""

_AT_ONCE = 1e-2
"""Reciprocal condition number down to which the first step alone is exact to 1e-11."""


@dataclass(frozen=True, kw_only=True)
class Factored:
    """A checked image as ``Q R``.

    Attributes
    ----------
    orthonormal : ndarray of shape (n_anchor_rows, n_components)
        Q.
    triangle : ndarray of shape (n_components, n_components)
        R, upper triangular.
    determination : float
        Smallest over largest singular value; down to 1e-5 LAPACK's estimate in the 1-norm.
    """

    orthonormal: Matrix
    triangle: Matrix
    determination: float


def factored(party: str, image: Matrix) -> Factored:
    """Return the thin QR factorisation of an image, or say why it is of no use.

    Yamamoto, Nakatsukasa, Yanagisawa and Fukaya, "Roundoff error analysis of the CholeskyQR2
    algorithm", Electron. Trans. Numer. Anal. 44 (2015).
    """
    found = triangle_of(image)
    if found is None:
        return by_reflections(party, image)
    triangle, determination = found
    orthonormal = image @ dtrtri(triangle)[0]
    if determination < _AT_ONCE:
        again = dpotrf(orthonormal.T @ orthonormal)[0]
        orthonormal, triangle = orthonormal @ dtrtri(again)[0], again @ triangle
    return Factored(orthonormal=orthonormal, triangle=triangle, determination=determination)


def least_squares(party: str, image: Matrix, *, target: Matrix) -> tuple[Matrix, float]:
    """Return the G that minimises ``||A_i G - Z||``, and how well A_i determines it.

    By the seminormal equations ``R' R G = A_i' Z``, corrected once for what they leave over.

    Bjorck, "Stability analysis of the method of seminormal equations for linear least squares
    problems", Linear Algebra Appl. 88/89 (1987).
    """
    found = triangle_of(image)
    if found is None:
        bad = by_reflections(party, image)
        change: Matrix = solve_triangular(bad.triangle, bad.orthonormal.T @ target)
        return change, bad.determination
    triangle, determination = found
    change = dpotrs(triangle, image.T @ target)[0]
    if determination < _AT_ONCE:
        change += dpotrs(triangle, image.T @ (target - image @ change))[0]
    return change, determination


def by_reflections(party: str, image: Matrix) -> Factored:
    """Return what `factored` does for an image of any condition, or say why it is of no use.

    Parameters, result and errors are those of :func:`factored`.
    """
    table = as_matrix(image, name=named(party))
    columns = table.shape[1]
    if not table.any():
        raise AnchorImageError(
            f"the anchor image of party '{party}' is zero, so it shows no basis at all. "
            "Ask the party to prepare its upload again."
        )
    orthonormal, triangle = np.linalg.qr(table)
    values = np.linalg.svd(triangle, compute_uv=False)
    rank = numerical_rank(values, table.shape)
    if rank < columns:
        raise AnchorImageError(
            f"the anchor image of party '{party}' has rank {rank} of {columns} components, so "
            f"{columns - rank} direction(s) of its basis cannot be aligned. Use an anchor with at "
            f"least {columns} independent rows, or n_components={rank} at every party."
        )
    condition = float(values[0] / values[-1])
    if condition > MAX_CONDITION:
        raise ConditionError(
            f"the anchor image of party '{party}' has condition number {condition:.1e}, above "
            f"{MAX_CONDITION:.0e}: its inverse would keep no usable digits. Ask the party for an "
            "orthonormal basis."
        )
    return Factored(orthonormal=orthonormal, triangle=triangle, determination=1 / condition)


def named(party: str) -> str:
    """Say which image an error is about."""
    return f"the anchor image of party '{party}'"
