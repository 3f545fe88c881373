"""What anybody sees in a release without knowing anything: who is near whom, who stands alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.scores import Share

_BLOCK = 512
_SIGMAS = 3.0


@dataclass(frozen=True, kw_only=True, repr=False)
class StandingAlone(Hidden):
    """Somebody who opens the release looks for people whom nobody resembles."""

    def decide(self, release: Release) -> Matrix:
        """Score each person by the distance to the nearest other one."""
        return _alone(as_matrix(release.rows, name="the release's rows"))


@dataclass(frozen=True, kw_only=True)
class Structure:
    """How much of the raw rows' structure the release shows as it is."""

    distance_correlation: Share
    neighbours_kept: Share
    alone: int
    alone_in_truth: int


def score_structure(release: Release, truth: npt.ArrayLike, *, n_neighbours: int = 10) -> Structure:
    """Compare a release's distances and neighbours with those of the raw rows."""
    rows = as_matrix(release.rows, name="the release's rows")
    raw = as_matrix(truth, name="truth")
    n_rows = len(rows)
    if len(raw) != n_rows or not 0 < n_neighbours < n_rows:
        raise ShapeError(
            f"{n_rows} released rows, {len(raw)} raw ones and {n_neighbours} neighbours do not fit "
            "each other. Give the rows that the release was made of, and fewer neighbours."
        )
    moments, kept = np.zeros(5), 0
    for seen, real in zip(_distances(rows), _distances(raw), strict=True):
        apart = np.isfinite(seen)
        first, second = seen[apart], real[apart]
        products = (first @ first, second @ second, first @ second)
        moments += [first.sum(), second.sum(), *products]
        kept += _shared(seen, real, n_neighbours)
    alone = _alone(rows) > _SIGMAS
    return Structure(
        distance_correlation=Share(value=_correlation(moments, n_rows * (n_rows - 1)), chance=0.0),
        neighbours_kept=Share(
            value=kept / (n_rows * n_neighbours), chance=n_neighbours / (n_rows - 1)
        ),
        alone=int(alone.sum()),
        alone_in_truth=int((alone & (_alone(raw) > _SIGMAS)).sum()),
    )


def _distances(rows: Matrix) -> Iterator[Matrix]:
    """Yield squared distances to all, for a block of people at a time; infinite to oneself."""
    squares = np.einsum("ij,ij->i", rows, rows)
    for at in range(0, len(rows), _BLOCK):
        block = rows[at : at + _BLOCK]
        apart = squares[at : at + _BLOCK, np.newaxis] + squares - 2 * block @ rows.T
        apart = np.maximum(apart, 0)
        apart[np.arange(len(block)), at + np.arange(len(block))] = np.inf
        yield apart


def _alone(rows: Matrix) -> Matrix:
    """Return how unusually far each person's nearest neighbour is, in standard deviations."""
    if len(rows) < 2:  # noqa: PLR2004 -- nobody is nearest to a single person
        raise ShapeError("one row has no neighbours. Give at least 2 rows.")
    nearest = np.sqrt(np.concatenate([apart.min(axis=1) for apart in _distances(rows)]))
    spread = float(nearest.std())
    far: Matrix = (nearest - nearest.mean()) / (spread if spread > 0 else 1.0)
    return far


def _shared(first: Matrix, second: Matrix, count: int) -> int:
    """Count the nearest people that two blocks of distances have in common."""
    marks = np.zeros(first.shape, dtype=np.int8)
    each = np.arange(len(first))[:, np.newaxis]
    for distances in (first, second):
        marks[each, np.argpartition(distances, count - 1, axis=1)[:, :count]] += 1
    return int((marks == 2).sum())  # noqa: PLR2004 -- both


def _correlation(moments: Matrix, count: int) -> float:
    """Return Pearson's correlation from sums; 0 where one of the two does not vary."""
    (first, second), (squared, other, product) = moments[:2] / count, moments[2:] / count
    spread = max(squared - first**2, 0.0) * max(other - second**2, 0.0)
    return float((product - first * second) / spread**0.5) if spread > 0 else 0.0
