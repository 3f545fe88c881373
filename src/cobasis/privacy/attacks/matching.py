"""Two clouds of points laid over each other: whom to take for whom, and the map that follows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from cobasis.linalg.arrays import Hidden, Matrix

Places = npt.NDArray[np.intp]

MOST = 2000
"""Points of a group that are matched; of larger groups as many are drawn."""

_KINDS = 20
"""Labels of more kinds than this are numbers, and points are grouped by tenths of them."""

_SPREAD = 0.97
"""Of the released points' variance: matching looks at the leading directions that have so much."""

_GAIN = 1e-4
"""Refinement ends when the mean squared distance falls by less than this share."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Clouds(Hidden):
    """Released points and public ones, in groups that can only be matched within."""

    released: Matrix  # rows of the releases
    public: Matrix  # the attacker's own
    # places of both that belong together: one group of all where labels are not used
    groups: Sequence[tuple[Places, Places]]
    along: Matrix  # orthonormal directions of released points in which distances are taken

    def sample(self, size: int, *, rng: np.random.Generator) -> "Clouds":
        """Return about `size` released points and as many public ones, of all groups alike."""
        total = sum(len(ours) for ours, _ in self.groups)
        chosen, released, public = [], [], []
        ours_from, theirs_from = 0, 0
        for ours, theirs in self.groups:
            wanted = max(2, round(min(size / total, 1.0) * len(ours)))
            mine = rng.choice(ours, min(wanted, len(ours)), replace=False)
            yours = rng.choice(theirs, min(wanted, len(theirs)), replace=False)
            released.append(mine)
            public.append(yours)
            chosen.append(
                (
                    np.arange(ours_from, ours_from + len(mine)),
                    np.arange(theirs_from, theirs_from + len(yours)),
                )
            )
            ours_from += len(mine)
            theirs_from += len(yours)
        return Clouds(
            released=self.released[np.concatenate(released)],
            public=self.public[np.concatenate(public)],
            groups=chosen,
            along=self.along,
        )

    def compressed(self) -> tuple["Clouds", Matrix]:
        """Return the same with public points in coordinates of their own span, and its axes."""
        axes: Matrix = np.linalg.svd(self.public, full_matrices=False)[2].T
        return replace(self, public=self.public @ axes), axes

    def without_labels(self) -> "Clouds":
        """Return the same in one group of all."""
        everything = np.arange(len(self.released)), np.arange(len(self.public))
        return replace(self, groups=[everything])


def grouped(
    released: npt.NDArray[Any] | None, public: npt.NDArray[Any] | None, *, sizes: tuple[int, int]
) -> list[tuple[Places, Places]]:
    """Return which released and which public points belong together by their labels."""
    everything = [(np.arange(sizes[0]), np.arange(sizes[1]))]
    if released is None or public is None:
        return everything
    if released.dtype.kind == "f" and len(np.unique(released)) > _KINDS:
        edges = np.quantile(public, np.arange(1, 10) / 10)
        released, public = np.searchsorted(edges, released), np.searchsorted(edges, public)
    shared = np.intersect1d(released, public)
    found = [(np.flatnonzero(released == one), np.flatnonzero(public == one)) for one in shared]
    return found or everything


def leading(released: Matrix) -> Matrix:
    """Return the fewest principal directions that have nearly all of the variance.

    In the others noise would outweigh what tells points apart: in high dimensions all points are
    equally far from each other.
    """
    _, values, right = np.linalg.svd(released - released.mean(axis=0), full_matrices=False)
    shares = np.cumsum(values**2)
    enough = int(np.searchsorted(shares, _SPREAD * shares[-1])) + 1
    return right[:enough].T


def paired(clouds: Clouds, basis: Matrix) -> tuple[Places, Places]:
    """Match points so that those of a pair are near each other where the basis puts them."""
    ours, theirs = [], []
    projected, points = clouds.public @ (basis @ clouds.along), clouds.released @ clouds.along
    for mine, yours in clouds.groups:
        often = max(1, len(yours) // len(mine)), -(-len(mine) // len(yours))
        left, right = np.repeat(mine, often[0]), np.repeat(yours, often[1])
        targets = projected[right]
        costs = np.einsum("ij,ij->i", targets, targets) - 2 * points[left] @ targets.T
        rows, columns = linear_sum_assignment(costs)
        ours.append(left[rows])
        theirs.append(right[columns])
    return np.concatenate(ours), np.concatenate(theirs)


def laid_over(clouds: Clouds, basis: Matrix, *, most: int) -> tuple[Matrix, float]:
    """Match, turn released points onto their partners, and begin again.

    Each step lowers the distance, as in the Wasserstein-Procrustes method.
    """
    best = np.inf
    for _ in range(most):
        ours, theirs = paired(clouds, basis)
        partners, points = clouds.public[theirs], clouds.released[ours]
        left, cosines, right = np.linalg.svd(partners.T @ points, full_matrices=False)
        basis = left @ right
        apart = (np.sum(partners**2) + np.sum(points**2) - 2 * cosines.sum()) / len(points)
        if apart > best - _GAIN * abs(best):
            return basis, min(best, apart)
        best = apart
    return basis, best


def fitted(clouds: Clouds, basis: Matrix, *, penalties: Sequence[float]) -> Matrix:
    """Match, fit the basis to the pairs by penalised least squares, and begin again.

    For bases that are not made of leading directions, as a Haar basis is not: the distance is
    taken among components, where nothing is lost.
    """
    for penalty in penalties:
        ours, theirs = paired(clouds, basis)
        partners = clouds.public[theirs]
        gram = partners.T @ partners
        gram[np.diag_indices_from(gram)] += penalty * np.trace(gram) / len(gram)
        basis = np.asarray(np.linalg.solve(gram, partners.T @ clouds.released[ours]))
    return basis


def misfit(clouds: Clouds, basis: Matrix) -> float:
    """Return how far matched points are apart among components, as a share of released ones."""
    ours, theirs = paired(clouds, basis)
    points = clouds.released[ours]
    return float(np.sum((clouds.public[theirs] @ basis - points) ** 2) / np.sum(points**2))
