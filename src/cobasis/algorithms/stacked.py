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
    size = min(table.shape[1] for table in listed) if n_components is None else n_components
    rank = numerical_rank(values, stacked.shape)
    if not 1 <= size <= rank:
        msg = (
            f"n_components={size} is not between 1 and the rank {rank} of all anchor images "
            "together, so the target has no such directions. Use a number between the two."
        )
        raise DimensionError(msg)
    return left[:, :size], values[:size]
