"""Somebody has a list of candidates and nothing else: no basis, no anchor, no labels."""

import numpy as np
from scipy.spatial.distance import cdist

from cobasis.linalg.arrays import Matrix
from cobasis.linalg.polar import polar
from cobasis.privacy.attacks import Recovered
from cobasis.privacy.attacks.scores import nearest

_QUANTILES = np.linspace(0, 1, 65)[1:]
_REFERENCES = 1000
_ROUNDS = 50


def match_list(rows: Matrix, candidates: Matrix) -> Recovered:
    """Match released rows with a list by distances to everybody else; improve matches and basis."""
    # No rotation changes a distance, and people like the party's have nearly the same leading
    # directions: so a row and its person have nearly the same distances to everybody.
    leading = np.linalg.svd(candidates, full_matrices=False)[2][: rows.shape[1]].T
    places = nearest(_fingerprints(rows), among=_fingerprints(candidates @ leading))
    for _ in range(_ROUNDS):
        basis = polar(candidates[places].T @ rows).rotation
        before, places = places, nearest(rows, among=candidates @ basis)
        if np.array_equal(before, places):
            break
    return Recovered(rows=candidates[places], basis=basis)


def _fingerprints(rows: Matrix) -> Matrix:
    """Return the quantiles of each row's distances to all, in units of the mean distance."""
    others = rows[np.linspace(0, len(rows) - 1, min(len(rows), _REFERENCES)).astype(int)]
    marks: Matrix = np.quantile(cdist(rows, others), _QUANTILES, axis=1).T
    return marks / max(float(marks.mean()), np.finfo(float).tiny)
