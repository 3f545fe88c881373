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

    Block power iteration with 20 more columns than wanted; a pass shrinks the error of
    direction k by the squared ratio of singular value ``size + 21`` to value k, so that
    directions without a gap behind them are the less exact ones.
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
        raise DimensionError(
            f"n_components={size} is not between 1 and the rank {rank} that a sketch of all anchor "
            "images together shows. Use a number between the two."
        )
    return directions[:, :size], values[:size]
