"""Comparing uploads: who came, who left, who is in two, and the same rows through several spans."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from cobasis.linalg.arrays import Hidden, Matrix, Places
from cobasis.linalg.polar import polar
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.known_records import read_through
from cobasis.privacy.attacks.scores import nearest
from experiments.attacks import basis_behind, image_of


def same_person(rows: Matrix, others: Matrix) -> tuple[Places, Matrix]:
    """Find each person's nearest row in another aligned upload, and how far it is."""
    places = nearest(rows, among=others)
    distances: Matrix = np.linalg.norm(rows - others[places], axis=1)
    return places, distances


def came(release: Release, before: Release) -> Matrix:
    """Score each row of an upload for having nobody like it in an earlier one."""
    return same_person(_aligned(release, before), before.rows)[1]


def left(release: Release, before: Release) -> Matrix:
    """Score each row of an earlier upload for having nobody like it in the later one."""
    return same_person(before.rows, _aligned(release, before))[1]


def outside(release: Release, before: Release, *, anchor: Matrix) -> Matrix:
    """Return the direction in which the later span leaves the earlier one, the anchor known."""
    first, second = (np.linalg.qr(basis_behind(each, anchor))[0] for each in (before, release))
    direction: Matrix = np.linalg.svd(second - first @ (first.T @ second))[0][:, 0]
    return direction


def _aligned(release: Release, before: Release) -> Matrix:
    """Return the later rows in the earlier frame."""
    earlier = image_of(before)
    change: Matrix = polar(image_of(release, anchor=earlier).T @ earlier).rotation
    return release.rows @ change


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
