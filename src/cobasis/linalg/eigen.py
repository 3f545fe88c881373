"""Leading singular vectors from small symmetric matrices, and a triangle where those lose digits.

What the party does with its rows (`leading`) and the analyst with anchor images is the same.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh

from cobasis.linalg.arrays import Matrix

ACCURATE = 1e-3
"""Smallest ratio of the wanted singular values that survives being squared: error 2e-9."""


def of_gram(gram: Matrix, count: int, *, against: float = 0.0) -> tuple[Matrix, Matrix] | None:
    """Return the leading eigenvectors of ``W W'`` and the roots of their values, if exact."""
    size = len(gram)
    if not (1 <= count <= size and np.isfinite(np.trace(gram))):
        return None
    squares, vectors = eigh(
        gram, subset_by_index=(size - count, size - 1), lower=True, check_finite=False
    )
    if not squares[0] > ACCURATE**2 * max(squares[-1], against):
        return None
    return np.ascontiguousarray(vectors[:, ::-1]), np.sqrt(squares[::-1])


def of_columns(table: Matrix, count: int) -> tuple[Matrix, Matrix] | None:
    """Return what `of_gram` does for a table with fewer columns than rows: through ``W' W``."""
    found = of_gram(table.T @ table, count)
    if found is None:
        return None
    vectors, values = found
    directions, triangle = np.linalg.qr(table @ (vectors / values))
    return directions * np.sign(np.diag(triangle)), values


def stacked(*tables: Matrix) -> Matrix:
    """Return R of tables on top of each other: their singular values, and nothing is squared."""
    return np.asarray(np.linalg.qr(np.vstack(tables), mode="r"))


def by_iteration(
    product: Callable[[int, Matrix], Matrix],
    start: Matrix,
    *,
    count: int,
    passes: int,
    still: float,
) -> tuple[Matrix, Matrix]:
    """Return the leading left singular vectors and values of W by subspace iteration.

    A pass shrinks the error of direction j by the squared ratio of value ``k + 1`` to value j.
    """
    basis, before = np.linalg.qr(start)[0], np.zeros(count)
    for number in range(1, passes + 1):
        image = product(number, basis)
        squares, turn = np.linalg.eigh(basis.T @ image)
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
        directions = basis @ turn[:, ::-1]
        if np.allclose(values[:count], before, rtol=still, atol=0.0):
            break
        before, basis = values[:count], np.linalg.qr(image)[0]
    return directions, values
