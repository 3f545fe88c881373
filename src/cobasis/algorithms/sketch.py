"""The leading directions of a matrix that is too large in both directions, by block iteration."""

from collections.abc import Callable, Iterator

import numpy as np

from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.eigen import by_iteration
from cobasis.linalg.spans import numerical_rank

MAX_PASSES = 12
OVERSAMPLED = 20
STILL = 1e-10
"""Iteration ends when no wanted singular value moves by more than this share of it."""


def sketched(
    tables: Callable[[], Iterator[Matrix]], *, n_rows: int, size: int
) -> tuple[Matrix, Matrix]:
    """Return the leading left singular vectors and values of all tables side by side.

    Parameters
    ----------
    tables : callable
        Starts a pass: an iterator over tables of shape (n_rows, any).
    n_rows : int
        How many rows each has.
    size : int
        How many directions.

    Returns
    -------
    directions : ndarray of shape (n_rows, size)
        Orthonormal.
    singular_values : ndarray of shape (size,)
        In decreasing order.

    Raises
    ------
    DimensionError
        There are not that many directions.

    Notes
    -----
    Block power iteration with 20 more columns than wanted; a pass shrinks the error of
    direction k by the squared ratio of singular value ``size + 21`` to value k, so that
    directions without a gap behind them are the less exact ones.

    **Who sees what.** Arrays in, arrays out; the start is drawn from a fixed seed.

    **Cost.** At most 12 passes of ``4 a c l (size + 20)`` operations; memory ``3 a (size + 20)``.
    """
    rng = np.random.default_rng(0)
    start = rng.normal(size=(n_rows, min(size + OVERSAMPLED, n_rows)))

    def product(_: int, basis: Matrix) -> Matrix:
        image = np.zeros_like(basis)
        for table in tables():
            image += table @ (table.T @ basis)
        return image

    directions, values = by_iteration(product, start, count=size, passes=MAX_PASSES, still=STILL)
    rank = numerical_rank(values, (len(directions), len(directions)))
    if not 1 <= size <= rank:
        msg = (
            f"n_components={size} is not between 1 and the rank {rank} that a sketch of all anchor "
            "images together shows. Use a number between the two."
        )
        raise DimensionError(msg)
    return directions[:, :size], values[:size]
