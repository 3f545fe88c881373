"""Putting several uploads of the same rows together, each through a span of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.leaked_basis import read_through
from experiments.attacks import basis_behind

_SAME = 1e-9
"""Directions that two spans share to this precision are one; rounding is no new direction."""

_SURE = 1e-2
"""No direction counts more than a hundred times as much as the one that is known least."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Repeated(Hidden):
    """Somebody has the anchor, and more uploads of the same people."""

    anchor: Matrix
    others: Sequence[Release]
    prior_rows: Matrix | None = None

    def recover(self, release: Release) -> Recovered:
        """Solve for rows that all uploads are projections of."""
        bases = [basis_behind(each, self.anchor) for each in (release, *self.others)]
        seen, through = release.rows, bases[0]
        for each, basis in zip(self.others, bases[1:], strict=True):
            seen = np.hstack([seen, self._sorted(each.rows, basis, seen=seen, through=through)])
            through = np.hstack([through, basis])
        rows: Matrix = seen @ np.linalg.pinv(through, rcond=_SAME)
        return Recovered(rows=rows, basis=bases[0])

    def _sorted(self, rows: Matrix, basis: Matrix, *, seen: Matrix, through: Matrix) -> Matrix:
        """Return an upload's rows in the order of what was seen before."""
        if self.prior_rows is None:
            return rows
        prior = self.prior_rows
        wrong = read_through(through, prior @ through, prior_rows=prior).rows - prior
        _, spread, axes = np.linalg.svd(wrong @ basis, full_matrices=False)
        weights = axes.T / np.maximum(spread, _SURE * spread.max(initial=_SAME))
        expected = read_through(through, seen, prior_rows=prior).rows @ basis
        order = linear_sum_assignment(cdist(expected @ weights, rows @ weights))[1]
        return rows[order]
