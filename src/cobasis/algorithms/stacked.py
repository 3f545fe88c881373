"""The leading directions of all anchor images together."""

from collections.abc import Iterable

import numpy as np

from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.spans import numerical_rank


def leading_directions(tables: Iterable[Matrix], n_components: int | None) -> tuple[Matrix, Matrix]:
    """Return the top left singular vectors and values of the tables side by side.

    Without `n_components` there are as many as the narrowest table has columns.
    """
    listed = list(tables)
    stacked = np.hstack(listed)
    left, values, _ = np.linalg.svd(stacked, full_matrices=False)
    size = n_components or min(table.shape[1] for table in listed)
    rank = numerical_rank(values, stacked.shape)
    if size > rank:
        msg = (
            f"n_components={size} is above the rank {rank} of all anchor images together, so "
            f"the target has no direction to give the rest. Use n_components={rank} or less."
        )
        raise DimensionError(msg)
    return left[:, :size], values[:size]
