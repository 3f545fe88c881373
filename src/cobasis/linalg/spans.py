"""Subspaces: rank, angles, orthonormality, leading directions."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from cobasis.linalg.arrays import Matrix
from cobasis.linalg.cholesky import triangle_of

EPS = float(np.finfo(np.float64).eps)

ORTHONORMAL = 1e-10
"""How far C' C may be from I in columns that are called orthonormal."""

_WELL = 1e-3
"""Reciprocal condition number down to which a Gram matrix costs a cosine at most 1e-10."""


@dataclass(frozen=True, kw_only=True)
class RightSingular:
    """Leading right singular vectors of a table, and its numerical rank.

    Attributes
    ----------
    directions : ndarray of shape (n_columns, k)
        Orthonormal, strongest first, ``k = min(n_rows, n_columns)``.
    singular_values : ndarray of shape (k,)
        In decreasing order.
    rank : int
        How many stand above rounding; the directions after that are LAPACK's filling.
    """

    directions: Matrix
    singular_values: Matrix
    rank: int


def right_singular(table: Matrix) -> RightSingular:
    """Return all right singular vectors of `table`, uncentred."""
    _, values, right = np.linalg.svd(table, full_matrices=False)
    return RightSingular(
        directions=right.T, singular_values=values, rank=numerical_rank(values, table.shape)
    )


def numerical_rank(singular_values: Matrix, shape: tuple[int, ...]) -> int:
    """Count the singular values above ``max(shape) * eps * largest``."""
    return int(np.count_nonzero(singular_values > max(shape) * EPS * singular_values[0]))


def principal_cosines(first: Matrix, second: Matrix) -> Matrix:
    """Return the cosines of the principal angles between two column spans."""
    return cosines_to(np.linalg.qr(first)[0], second)


def cosines_to(axes: Matrix, columns: Matrix) -> Matrix:
    """Return `principal_cosines` to a span of which `axes` is an orthonormal basis.

    Well-conditioned columns go by the Cholesky factor R of their Gram matrix: Q is ``C R^-1``.
    """
    found = triangle_of(columns, least=_WELL)
    if found:
        seen = solve_triangular(found[0], columns.T @ axes, trans=1, check_finite=False)
    else:
        seen = np.linalg.qr(columns)[0].T @ axes
    return np.clip(np.linalg.svd(seen, compute_uv=False), 0.0, 1.0)


def orthonormality_defect(columns: Matrix) -> float:
    """Return ``max |C' C - I|``, zero for orthonormal columns."""
    gram = columns.T @ columns
    return float(np.max(np.abs(gram - np.eye(gram.shape[0]))))


def complete_orthonormal(columns: Matrix, extra: Matrix) -> Matrix:
    """Append directions of `extra` to orthonormal `columns`, made orthogonal to them."""
    rest = extra
    for _ in range(2):
        rest = np.linalg.qr(rest - columns @ (columns.T @ rest))[0]
    return np.hstack([columns, rest])
