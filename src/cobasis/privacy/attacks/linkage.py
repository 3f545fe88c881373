"""Somebody has a list of candidates and nothing else: no basis, no anchor, no labels."""

from dataclasses import dataclass

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.linalg.polar import polar
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.scores import nearest, squared_distances

_QUANTILES = np.linspace(0, 1, 65)[1:]
_REFERENCES = 1000
_BLOCK = 1024
_ROUNDS = 50


@dataclass(frozen=True, kw_only=True, repr=False)
class CandidatesAlone(Hidden):
    """Raw rows of people of whom many are in the release."""

    candidates: Matrix

    def recover(self, release: Release) -> Recovered:
        """Match people by their distances to everybody else, then improve matches and basis."""
        rows, listed = release.rows, self.candidates
        if min(listed.shape) < rows.shape[1]:
            raise ShapeError(
                f"candidates of shape {listed.shape} have fewer rows or columns than the release "
                f"has components, {rows.shape[1]}. Give a longer list."
            )
        # No rotation changes a distance, and people like the party's have nearly the same leading
        # directions: so a row and its person have nearly the same distances to everybody.
        leading = np.linalg.svd(listed, full_matrices=False)[2][: rows.shape[1]].T
        places = nearest(_fingerprints(rows), among=_fingerprints(listed @ leading))
        for _ in range(_ROUNDS):
            basis = polar(listed[places].T @ rows).rotation
            before, places = places, nearest(rows, among=listed @ basis)
            if np.array_equal(before, places):
                break
        return Recovered(rows=listed[places], basis=basis)


def _fingerprints(rows: Matrix) -> Matrix:
    """Return the quantiles of each row's distances to all, in units of the mean distance."""
    others = rows[np.linspace(0, len(rows) - 1, min(len(rows), _REFERENCES)).astype(int)]
    parts = [
        np.quantile(
            np.sqrt(squared_distances(rows[at : at + _BLOCK], others)), _QUANTILES, axis=1
        ).T
        for at in range(0, len(rows), _BLOCK)
    ]
    marks = np.concatenate(parts)
    return marks / max(float(marks.mean()), np.finfo(float).tiny)
