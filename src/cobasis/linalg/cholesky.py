"""R of a tall table's ``Q R`` from its Gram matrix, where squaring it loses little."""

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrcon

from cobasis.linalg.arrays import Matrix

WELL = 1e-5
"""Reciprocal condition number down to which a Gram matrix tells a third of all digits."""


def triangle_of(table: Matrix, *, least: float = WELL) -> tuple[Matrix, float] | None:
    """Return the Cholesky factor of ``W' W`` and how well it is conditioned.

    R has a relative error of about the squared condition number times 2e-16.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gram = table.T @ table
    if not np.isfinite(np.trace(gram)):
        return None
    triangle, failed = dpotrf(gram)
    if failed:
        return None
    condition = float(dtrcon(triangle)[0])
    return (triangle, condition) if condition > least else None
