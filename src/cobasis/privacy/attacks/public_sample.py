"""Somebody has rows of the same kind: the two clouds of points are laid over each other."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from cobasis.linalg.arrays import Array, Hidden, Matrix, Places
from cobasis.linalg.polar import polar
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.known_records import read_through

_SPREAD = 0.97
"""Of the released points' variance: matching looks at the leading directions that have so much."""

_GAIN = 1e-4  # refinement ends when the mean squared distance falls by less than this share

_SEARCHED, _MIDDLE, _MOST = 300, 1000, 2000
"""Points of which signs are tried, starts are refined and the best is: matching is cubic."""

_SIGNS = 24  # leading directions whose signs are tried; of weaker ones the pairs tell the sign

_SWEEPS, _STEPS, _REFINEMENTS, _LAST_REFINEMENTS = 3, 4, 30, 8
_PENALTIES = (0.1,) * 10 + (0.01,) * 10 + (0.001,) * 10
_CLEARLY = 0.25
"""A basis of leading directions is given up for one with less than this share of its misfit."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Clouds(Hidden):
    """Released points and public ones, each with its group, and only matched within."""

    released: Matrix  # rows of the releases
    public: Matrix  # the attacker's own
    ours: Array  # groups of the released points: all alike where labels are not used
    theirs: Array
    along: Matrix  # orthonormal directions of released points in which distances are taken

    @cached_property
    def groups(self) -> list[tuple[Places, Places]]:
        """Places of both that belong together."""
        return [
            (np.flatnonzero(self.ours == each), np.flatnonzero(self.theirs == each))
            for each in np.intersect1d(self.ours, self.theirs)
        ]

    def sample(self, size: int, *, rng: np.random.Generator) -> "Clouds":
        """Return about `size` released points and as many public ones, of all groups alike."""
        share = min(size / sum(len(ours) for ours, _ in self.groups), 1.0)
        chosen: list[list[Places]] = [[], []]
        for pair in self.groups:
            wanted = max(2, round(share * len(pair[0])))
            for side, places in zip(chosen, pair, strict=True):
                side.append(rng.choice(places, min(wanted, len(places)), replace=False))
        one, other = map(np.concatenate, chosen)
        return replace(
            self,
            released=self.released[one],
            public=self.public[other],
            ours=self.ours[one],
            theirs=self.theirs[other],
        )


def _leading(released: Matrix) -> Matrix:
    """Return the fewest principal directions that have nearly all of the variance."""
    # In the others noise would outweigh what tells points apart: in high dimensions all points
    # are equally far from each other.
    _, values, right = np.linalg.svd(released - released.mean(axis=0), full_matrices=False)
    shares = np.cumsum(values**2)
    enough = int(np.searchsorted(shares, _SPREAD * shares[-1])) + 1
    return right[:enough].T


def _paired(clouds: Clouds, basis: Matrix) -> tuple[Places, Places]:
    """Match points so that those of a pair are near each other where the basis puts them."""
    ours, theirs = [], []
    projected, points = clouds.public @ (basis @ clouds.along), clouds.released @ clouds.along
    for mine, yours in clouds.groups:
        # an assignment leaves out whom the smaller side has no partner for: so that everybody
        # counts, points of the smaller side stand as often as the larger one is larger
        often = max(1, len(yours) // len(mine)), -(-len(mine) // len(yours))
        left, right = np.repeat(mine, often[0]), np.repeat(yours, often[1])
        targets = projected[right]
        costs = np.einsum("ij,ij->i", targets, targets) - 2 * points[left] @ targets.T
        rows, columns = scipy.optimize.linear_sum_assignment(costs)
        ours.append(left[rows])
        theirs.append(right[columns])
    return np.concatenate(ours), np.concatenate(theirs)


def _laid_over(clouds: Clouds, basis: Matrix, *, most: int) -> tuple[Matrix, float]:
    """Match, turn released points onto their partners, and begin again (Wasserstein-Procrustes)."""
    best = np.inf
    for _ in range(most):
        ours, theirs = _paired(clouds, basis)
        partners, points = clouds.public[theirs], clouds.released[ours]
        left, cosines, right = np.linalg.svd(partners.T @ points, full_matrices=False)
        basis = left @ right
        apart = (np.sum(partners**2) + np.sum(points**2) - 2 * cosines.sum()) / len(points)
        if apart > best - _GAIN * abs(best):
            return basis, min(best, apart)
        best = apart
    return basis, best


def _fitted(clouds: Clouds, basis: Matrix) -> Matrix:
    """Match, fit the basis to the pairs by penalised least squares, and begin again."""
    # For bases that are not made of leading directions, as a Haar basis is not: the distance is
    # taken among components, where nothing is lost.
    for penalty in _PENALTIES:
        ours, theirs = _paired(clouds, basis)
        partners = clouds.public[theirs]
        gram = partners.T @ partners
        gram[np.diag_indices_from(gram)] += penalty * np.trace(gram) / len(gram)
        basis = np.asarray(np.linalg.solve(gram, partners.T @ clouds.released[ours]))
    return basis


def _misfit(clouds: Clouds, basis: Matrix) -> float:
    """Return how far matched points are apart among components, as a share of released ones."""
    ours, theirs = _paired(clouds, basis)
    points = clouds.released[ours]
    return float(np.sum((clouds.public[theirs] @ basis - points) ** 2) / np.sum(points**2))


def match_sample(
    release: Release,
    public: Matrix,
    *,
    labels: Array | None = None,
    rng: np.random.Generator,
) -> Recovered:
    """Find the basis under which rows of other people of the same kind look like released ones."""
    # Principal directions of both come first; their signs are tried one by one. Where labels
    # are shared, the averages of the classes are another start. From each, points are matched
    # and the basis is turned to the pairs, until that changes nothing; the closest is kept.
    ours, theirs = release.labels, labels
    if ours is None or theirs is None or not np.isin(ours, theirs).any():
        ours, theirs = np.zeros(len(release.rows)), np.zeros(len(public))
    clouds = Clouds(
        released=release.rows,
        public=public,
        ours=ours,
        theirs=theirs,
        along=_leading(release.rows),
    )
    middle = clouds.sample(_MIDDLE, rng=rng)
    begun = [_laid_over(middle, start, most=_REFINEMENTS) for start in _searched(clouds, rng)]
    basis, _ = min(begun, key=lambda each: each[1])
    largest = max(len(ours) for ours, _ in clouds.groups)
    whole = clouds if largest <= _MOST else clouds.sample(_MOST, rng=rng)
    basis, _ = _laid_over(whole, basis, most=_LAST_REFINEMENTS)
    if len(clouds.groups) > 1:
        # a basis that need not be orthonormal fits more, whatever is true: its misfit has to
        # be much the smaller one
        other = _fitted(whole, _from_averages(clouds))
        if _misfit(whole, other) < _CLEARLY * _misfit(whole, basis):
            return read_through(other, release.rows, prior_rows=public)
    mean = public.mean(axis=0)
    return Recovered(rows=mean + (release.rows - mean @ basis) @ basis.T, basis=basis)


def _searched(clouds: Clouds, rng: np.random.Generator) -> Iterator[Matrix]:
    """Yield bases to refine: each start searched with the labels, and one without them."""
    yield _signed(clouds, _from_directions(clouds), rng=rng)
    if len(clouds.groups) > 1:
        yield _signed(clouds, polar(_from_averages(clouds)).rotation, rng=rng)
    alike = np.zeros(len(clouds.released)), np.zeros(len(clouds.public))
    whole = replace(clouds, ours=alike[0], theirs=alike[1])
    yield _signed(whole, _from_directions(clouds), rng=rng)


def _from_directions(clouds: Clouds) -> Matrix:
    """Return the basis that takes principal directions of one cloud to those of the other."""
    spectral = np.linalg.svd(clouds.released, full_matrices=False)[2]
    directions = np.linalg.svd(clouds.public, full_matrices=False)[2][: len(spectral)].T
    strongest = spectral[: directions.shape[1]]
    signs = [
        _sign(clouds.released @ ours, clouds.public @ theirs)
        for ours, theirs in zip(strongest, directions.T, strict=True)
    ]
    return np.asarray(polar((directions * signs) @ strongest).rotation)


def _sign(ours: Matrix, theirs: Matrix) -> float:
    """Return the sign under which one set of scores is distributed more like the other."""
    at = np.linspace(0, 1, 101)
    goal = np.quantile(theirs, at)
    apart = [np.abs(np.quantile(sign * ours, at) - goal).mean() for sign in (1.0, -1.0)]
    return 1.0 if apart[0] <= apart[1] else -1.0


def _from_averages(clouds: Clouds) -> Matrix:
    """Return the smallest map that takes each class's public average to its released one."""
    public = np.array([clouds.public[theirs].mean(axis=0) for _, theirs in clouds.groups])
    released = np.array([clouds.released[ours].mean(axis=0) for ours, _ in clouds.groups])
    return np.asarray(np.linalg.pinv(public, rcond=1e-3) @ released)


def _signed(clouds: Clouds, basis: Matrix, *, rng: np.random.Generator) -> Matrix:
    """Reverse released points along each principal direction, and keep what fits better."""
    # Two clouds that are nearly mirror images draw refinement into the wrong one; only a try of
    # the other shows it.
    directions = np.linalg.svd(clouds.released, full_matrices=False)[2][:_SIGNS]
    for _ in range(_SWEEPS):
        few = clouds.sample(_SEARCHED, rng=rng)
        # 300 public points span 300 of 784 features at most: in their own axes each step is small
        axes: Matrix = np.linalg.svd(few.public, full_matrices=False)[2].T
        few = replace(few, public=few.public @ axes)
        basis, best = _laid_over(few, axes.T @ basis, most=_STEPS)
        changed = False
        for direction in directions:
            mirrored = basis - 2 * np.outer(basis @ direction, direction)
            tried, apart = _laid_over(few, mirrored, most=_STEPS)
            if apart < best:
                basis, best, changed = tried, apart, True
        basis = axes @ basis
        if not changed:
            break
    return basis
