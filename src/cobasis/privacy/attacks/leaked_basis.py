"""Whoever has a party's basis, or what gives it away, reads the party's rows off its upload."""

import numpy as np

from cobasis.linalg.arrays import Matrix
from cobasis.privacy.attacks import Recovered


def read_through(basis: Matrix, rows: Matrix, *, prior_rows: Matrix | None = None) -> Recovered:
    """Put released rows back where the basis took them from, stolen or found by another attack."""
    if prior_rows is None:  # nothing is known of what the basis does not span: take 0
        return Recovered(rows=rows @ np.linalg.pinv(basis), basis=basis)
    # The best linear guess of x from x F is mean + (x F - mean F) (F'CF)^+ F'C, with C the
    # covariance of like rows: it fills in what goes with the directions that are seen. With
    # P the centred like rows that factor is (P F)^+ P. Through F'CF the condition number
    # would be squared, and a prior of fewer rows than components would not be solvable.
    mean = prior_rows.mean(axis=0)
    prior = prior_rows - mean
    back = np.linalg.pinv(prior @ basis) @ prior
    return Recovered(rows=mean + (rows - mean @ basis) @ back, basis=basis)
