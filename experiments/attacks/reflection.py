"""Working out another party's own span from the consensus span that all parties get."""

from collections.abc import Sequence

import numpy as np

from cobasis.linalg.arrays import Matrix


def last_span(consensus: Matrix, proposed: Sequence[Matrix]) -> Matrix:
    """Return the span of the one party whose proposed span is missing.

    Z is an invariant span of the sum of all projectors ``V_i V_i'``, so the missing one's
    part between Z and its complement is minus the sum of the others'. A projector whose
    principal angles to Z are t has singular values ``sin(2 t) / 2`` there, which gives t
    where it is below 45 degrees. With two parties this is ``2 Z Z' V_1 - V_1``.
    """
    between = np.zeros_like(consensus)
    for columns in proposed:
        own = np.linalg.qr(columns)[0]
        between -= own @ (own.T @ consensus)
    between -= consensus @ (consensus.T @ between)
    out, values, right = np.linalg.svd(between, full_matrices=False)
    angles = np.arcsin(np.clip(2 * values, 0.0, 1.0)) / 2
    last: Matrix = consensus @ right.T * np.cos(angles) + out * np.sin(angles)
    return last
