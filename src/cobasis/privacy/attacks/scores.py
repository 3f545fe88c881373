"""How much of the truth an attack recovered, with what guessing gives beside each figure."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Mask, Matrix, Places
from cobasis.privacy.attacks import Recovered, Release

CLOSE = 0.1  # a cell counts as recovered within this share of its column's range

_WORST = 0.01
_BLOCK = 1024
_SIGMAS = 3.0

NEIGHBOURS = 10  # of each person, so many nearest others are compared


@dataclass(frozen=True, kw_only=True)
class Share:
    """A figure, and what somebody who knows nothing of the release would reach."""

    value: float
    chance: float


@dataclass(frozen=True, kw_only=True)
class Content:
    distance: Share
    explained: Share
    worst_explained: float  # of the 1 % of people who were recovered best
    cells: Share
    named: Share


def score_content(recovered: Recovered, truth: Matrix, *, known: npt.ArrayLike = ()) -> Content:
    """Set recovered rows against the raw ones, but for people who were known beforehand."""
    asked = np.setdiff1d(np.arange(len(truth)), np.asarray(known, dtype=np.intp))
    guessed, true = recovered.rows[asked], truth[asked]
    average = np.broadcast_to(true.mean(axis=0), true.shape)
    errors, spread, size = (_squares(each) for each in (guessed - true, true - average, true))
    reach = CLOSE * np.ptp(truth, axis=0)
    best = np.argsort(errors / np.where(spread > 0, spread, 1.0), kind="stable")
    best = best[: max(1, round(_WORST * len(best)))]
    named = float(np.mean(nearest(guessed, among=truth) == asked))
    return Content(
        distance=Share(value=_ratio(errors, size) ** 0.5, chance=_ratio(spread, size) ** 0.5),
        explained=Share(value=1 - _ratio(errors, spread), chance=0.0),
        worst_explained=1 - _ratio(errors[best], spread[best]),
        cells=Share(value=_within(guessed, true, reach), chance=_within(average, true, reach)),
        named=Share(value=named, chance=1 / len(truth)),
    )


def explained(guessed: Matrix, truth: Matrix) -> float:
    """Return R2: the share of the truth's variance that a guess has."""
    return 1 - _ratio(_squares(guessed - truth), _squares(truth - truth.mean(axis=0)))


def score_linkage(rows: Matrix, basis: Matrix, *, candidates: Matrix, places: Places) -> Share:
    """Take each released person for the candidate whose projection is nearest; count who is."""
    found = nearest(rows, among=candidates @ basis)
    # twins cannot be told apart: which is found, the last bit of a product decides
    right = (candidates[found] == candidates[places]).all(axis=1)
    return Share(value=float(np.mean(right)), chance=1 / len(candidates))


def told_apart(scores: Matrix, really: Mask) -> float:
    """Return the AUC: how often somebody of the kind has the higher score; 0.5 is chance."""
    if really.all() or not really.any():
        raise ShapeError(
            f"of {len(really):,} people {really.sum():,} are of the kind that is looked for: there "
            "is nobody to tell apart. Give people of both kinds."
        )
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 -- keeps imports light

    return float(roc_auc_score(really, scores))


def score_structure(release: Release, truth: Matrix) -> dict[str, float]:
    """Compare a release's distances and neighbours with those of the raw rows."""
    from sklearn.neighbors import kneighbors_graph  # noqa: PLC0415 -- keeps imports light

    tables, n_rows = (release.rows, truth), len(release.rows)
    seen, real = (pdist(each, "sqeuclidean") for each in tables)
    spread = min(np.ptp(seen), np.ptp(real))
    correlation = np.corrcoef(seen, real)[0, 1] if spread > 0 else 0.0
    ours, theirs = (kneighbors_graph(each, NEIGHBOURS) for each in tables)
    alone, truly = (standing_alone(each) > _SIGMAS for each in tables)
    return {
        "neighbours_kept": float(ours.multiply(theirs).sum() / (n_rows * NEIGHBOURS)),
        "chance": NEIGHBOURS / (n_rows - 1),  # of a neighbour to be kept
        "distance_correlation": float(correlation),
        "alone": int(alone.sum()),
        "alone_in_truth": int((alone & truly).sum()),
    }


def standing_alone(rows: Matrix) -> Matrix:
    """Return how unusually far each person's nearest neighbour is, in standard deviations."""
    closest = np.ravel(KDTree(rows).query(rows, k=[2])[0])  # the first is oneself
    return np.asarray((closest - closest.mean()) / (float(closest.std()) or 1.0))


def nearest(rows: Matrix, *, among: Matrix) -> Places:
    """Return for each row the place of the nearest of some others (Euclidean, in blocks)."""
    halves = _squares(among) / 2  # |x|^2 is the same for all others, and needs no adding
    parts = [
        np.argmin(halves - rows[at : at + _BLOCK] @ among.T, axis=1)
        for at in range(0, len(rows), _BLOCK)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)


def _squares(rows: Matrix) -> Matrix:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _ratio(part: Matrix, whole: Matrix) -> float:
    """Return a ratio of two sums; where nothing varies, 0 if nothing was missed and else 1."""
    missed, spread = float(part.sum()), float(whole.sum())
    return missed / spread if spread > 0 else float(missed > 0)


def _within(guessed: Matrix, true: Matrix, reach: Matrix) -> float:
    """Return the share of cells within reach; where no column varies, all are known."""
    varied = reach > 0
    if not varied.any():
        return 1.0
    return float(np.mean(np.abs(guessed - true)[:, varied] <= reach[varied]))
