"""Somebody has rows of the same kind: the two clouds of points are laid over each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.privacy.attacks.collusion import LeakedBasis
from cobasis.privacy.attacks.matching import (
    MOST,
    Clouds,
    fitted,
    grouped,
    laid_over,
    leading,
    misfit,
)
from cobasis.privacy.attacks.release import Recovered, Release

_SEARCHED = 300
"""Points among which starting points are compared and signs are tried."""

_MIDDLE = 1000

_SIGNS = 24
"""Leading directions whose signs are tried; of weaker ones the pairs tell the sign."""

_STEPS = 4
_SWEEPS = 3
_REFINEMENTS = 30
_LAST_REFINEMENTS = 8
_PENALTIES = (0.1,) * 10 + (0.01,) * 10 + (0.001,) * 10
_CLEARLY = 0.25
"""A basis of leading directions is given up for one with less than this share of its misfit."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PublicSample(Hidden):
    """Rows of the same kind as the party's, of other people."""

    rows: Matrix
    labels: npt.NDArray[Any] | None = None
    rng: np.random.Generator
    others: Sequence[Release] = field(default=())

    def recover(self, release: Release) -> Recovered:
        """Find the basis under which public rows look like released ones.

        Principal directions of both come first; their signs are tried one by one. Where labels
        are shared, the averages of the classes are another start. From each, points are matched
        and the basis is turned to the pairs, until that changes nothing; the closest is kept.
        """
        clouds = self._clouds(release)
        middle = clouds.sample(_MIDDLE, rng=self.rng)
        begun = [
            laid_over(middle, start, most=_REFINEMENTS) for start in _searched(clouds, self.rng)
        ]
        basis, _ = min(begun, key=lambda each: each[1])
        largest = max(len(ours) for ours, _ in clouds.groups)
        whole = clouds if largest <= MOST else clouds.sample(MOST, rng=self.rng)
        basis, _ = laid_over(whole, basis, most=_LAST_REFINEMENTS)
        if len(clouds.groups) > 1:
            other = fitted(whole, _from_averages(clouds), penalties=_PENALTIES)
            basis = min(basis, other, key=lambda each: _weighed(whole, each, basis))
            if basis is other:
                return LeakedBasis(basis=basis, prior_rows=self.rows).recover(release)
        mean = self.rows.mean(axis=0)
        return Recovered(rows=mean + (release.rows - mean @ basis) @ basis.T, basis=basis)

    def _clouds(self, release: Release) -> Clouds:
        """Put all releases together, and group them with the public rows by label."""
        public = as_matrix(self.rows, name="the public rows")
        own = as_matrix(release.rows, name="the release's rows")
        width = own.shape[1]
        if width > public.shape[1]:
            raise ShapeError(
                f"the release has {width} components and the public rows {public.shape[1]} "
                "features, so they are not of one kind. Give rows of all features."
            )
        others = [as_matrix(each.rows, name="others' rows", columns=width) for each in self.others]
        released = np.vstack([own, *others])
        given = [each.labels for each in (release, *self.others) if each.labels is not None]
        labels = np.concatenate(given) if len(given) == 1 + len(others) else None
        groups = grouped(labels, self.labels, sizes=(len(released), len(public)))
        return Clouds(released=released, public=public, groups=groups, along=leading(released))


def _weighed(clouds: Clouds, basis: Matrix, first: Matrix) -> float:
    """Return a basis' misfit; the first one's counts less, for it is bound to be orthonormal."""
    return misfit(clouds, basis) * (_CLEARLY if basis is first else 1.0)


def _searched(clouds: Clouds, rng: np.random.Generator) -> Iterator[Matrix]:
    """Yield bases to refine: each start searched with the labels, and one without them."""
    together = clouds.without_labels()
    for start in _starts(clouds):
        yield _signed(clouds, start, rng=rng)
    yield _signed(together, next(_starts(together)), rng=rng)


def _starts(clouds: Clouds) -> Iterator[Matrix]:
    """Yield bases to begin with: from principal directions, and from averages of classes."""
    spectral = np.linalg.svd(clouds.released, full_matrices=False)[2]
    directions = np.linalg.svd(clouds.public, full_matrices=False)[2][: len(spectral)].T
    strongest = spectral[: directions.shape[1]]
    signs = [
        _sign(clouds.released @ ours, clouds.public @ theirs)
        for ours, theirs in zip(strongest, directions.T, strict=True)
    ]
    yield _orthonormal((directions * signs) @ strongest)
    if len(clouds.groups) > 1:
        yield _orthonormal(_from_averages(clouds))


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
    found: Matrix = np.linalg.pinv(public, rcond=1e-3) @ released
    return found


def _orthonormal(columns: Matrix) -> Matrix:
    left, _, right = np.linalg.svd(columns, full_matrices=False)
    turned: Matrix = left @ right
    return turned


def _signed(clouds: Clouds, basis: Matrix, *, rng: np.random.Generator) -> Matrix:
    """Reverse released points along each principal direction, and keep what fits better.

    Two clouds that are nearly mirror images draw refinement into the wrong one; only a try of
    the other shows it.
    """
    directions = np.linalg.svd(clouds.released, full_matrices=False)[2][:_SIGNS]
    for _ in range(_SWEEPS):
        few, axes = clouds.sample(_SEARCHED, rng=rng).compressed()
        basis, best = laid_over(few, axes.T @ basis, most=_STEPS)
        changed = False
        for direction in directions:
            mirrored = basis - 2 * np.outer(basis @ direction, direction)
            tried, apart = laid_over(few, mirrored, most=_STEPS)
            if apart < best:
                basis, best, changed = tried, apart, True
        basis = axes @ basis
        if not changed:
            break
    return basis
