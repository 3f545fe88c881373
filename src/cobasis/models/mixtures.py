"""Rows without labels: in which cluster each lies, and how unusual it is.

scikit-learn fits k-means and Gaussian mixtures of full covariance, which no turn of the rows
changes, and layers say what was found. The centre of one row is that row, and a party can take its
own rows away from a mean. So what few rows would be behind, or few of all parties but one, is
refused.
"""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cobasis.errors import RowCarryingError
from cobasis.features.contract import Feature
from cobasis.features.encoder import encoded_columns
from cobasis.linalg.arrays import EPS, Integers, Matrix
from cobasis.models import Estimator, Mixture
from cobasis.models.chain import LEAF, Affine, Chain, Layer, Trees
from cobasis.models.tuning import folds

MOST_ROWS = 20_000
"""Rows of all parties, in proportion, on which is fitted."""

FEWEST = 10
"""Rows behind every centre, and between two levels of novelty; an agreement may ask for more."""

_COMPONENTS, _LEVELS = (1, 2, 3, 5, 8), 1000


def fit_clusters(
    rows: Matrix, owners: Integers, *, model: Mixture, names: Sequence[Any], fewest: int, seed: int
) -> Chain:
    """Fit as many clusters as have names, that of most rows first; `owners` numbers parties."""
    n_clusters, least = min(len(names), len(rows)), fewest
    if model == "kmeans":
        from sklearn.cluster import KMeans

        found = _fitted(KMeans(n_clusters, n_init=10, tol=0.0, random_state=seed), rows)
    else:
        found = _mixture(rows, n_components=n_clusters, seed=seed, n_init=3)
        least = max(fewest, 2 * rows.shape[1])  # a covariance takes two for each column
    total, others = _counts(found, rows, owners, n_clusters=len(names))
    order = np.argsort(-total, kind="stable").astype(np.int64)
    few = (total < least) | (others < fewest)
    if told := [str(names[at]) for at, one in enumerate(order) if few[one]]:
        raise RowCarryingError(
            f"of {len(names)} clusters, {len(told)} ({', '.join(told[:5])}) would be made of fewer "
            f"than {least} rows, or of fewer than {fewest} beside those of one party, which knows "
            "its own. Means of few rows show them. Agree on fewer clusters."
        )
    layers = _nearest(found, rows, order) if model == "kmeans" else _densities(found, order)
    return Chain(family=model, layers=layers, head="probabilities")


def fit_novelty(rows: Matrix, owners: Integers, *, fewest: int, seed: int) -> Chain:
    """Fit the density of rows, and write as its number which share of rows is as unlikely."""
    n_rows, least = len(rows), max(fewest, 2 * rows.shape[1])
    fit, kept = partial(_mixture, seed=seed, n_init=1), list[Estimator]()
    for n in (each for each in _COMPONENTS if max(each, 2) * least <= n_rows):
        tried = fit(rows, n_components=n)
        total, others = _counts(tried, rows, owners, n_clusters=n)
        if total.min() >= least and others.min() >= fewest:
            kept.append(tried)
    if not kept:
        raise RowCarryingError(
            f"a density and its levels take {2 * least} rows, and {fewest} beside those of one "
            "party, which knows its own: of fewer, they show rows. Agree on fewer components, or "
            "wait for more parties."
        )
    best = min(kept, key=lambda each: float(each.bic(rows)))
    # What a density was fitted to is more likely under it than new rows of the same people are, so
    # levels are of rows that a fit has not seen.
    again = partial(fit, n_components=best.n_components)
    splits = folds(owners, task="novelty", seed=seed)
    unseen = [again(rows[one]).score_samples(rows[other]) for one, other in splits]
    n_levels = min(_LEVELS, n_rows // least)
    levels = np.quantile(np.concatenate(unseen), np.arange(1, n_levels) / n_levels)
    columns = np.repeat([0, LEAF], [len(levels), 2 * len(levels)])
    numbers = np.append(levels, np.tile([0.0, 1 / n_levels], len(levels)))
    above = Trees(n_in=1, n_out=1, n_trees=len(levels), columns=columns, numbers=numbers)
    last = Affine(weights=np.ones((1, 1)), offset=np.array([1 / n_levels]))
    layers = (*_densities(best, np.arange(best.n_components)), "LogSumExp", above, last)
    return Chain(family="gaussian_mixture", layers=layers, head="prediction")


def _counts(found: Estimator, rows: Matrix, owners: Integers, *, n_clusters: int) -> Matrix:
    """Count each cluster's rows, and those beside its largest party's; infinite where none are."""
    counts = np.zeros((n_clusters, owners.max() + 1))
    np.add.at(counts, (found.predict(rows), owners), 1)
    total = counts.sum(axis=1)
    others = total - counts.max(axis=1)
    return np.stack([total, np.where(others > 0, others, np.inf)])


def _fitted(estimator: Estimator, rows: Matrix) -> Estimator:
    with warnings.catch_warnings(action="ignore"):  # of rows that are alike, and steps without rest
        return estimator.fit(rows)


def _mixture(rows: Matrix, *, n_components: int, seed: int, n_init: int) -> Estimator:
    from sklearn.mixture import GaussianMixture

    told = {"tol": 1e-6, "max_iter": 200, "n_init": n_init, "random_state": seed}
    return _fitted(GaussianMixture(n_components, **told), rows)


def _nearest(found: Estimator, rows: Matrix, order: Integers) -> tuple[Layer, ...]:
    """Write centres as logits: k-means is a mixture of round Gaussians, each row all of one."""
    # less the square of a row, which is in all of them, -|x - c|^2 / (2 s^2) is affine
    centres: Matrix = found.cluster_centers_[order]
    spread = max(found.inertia_, EPS * float(np.sum(rows**2))) / rows.size
    offset = -np.sum(centres**2, axis=1) / (2 * spread)
    return (Affine(weights=centres.T / spread, offset=offset),)


def _densities(found: Estimator, order: Integers) -> tuple[Layer, ...]:
    """Write the log density of each component, its weight in it, in three layers."""
    factors: Matrix = found.precisions_cholesky_[order]  # (x - mean) @ factor is white
    whitened = np.einsum("ki,kij->kj", found.means_[order], factors)
    n_components, n_columns = whitened.shape
    logs = np.log(found.weights_[order]) - n_columns / 2 * np.log(2 * np.pi)
    logs += np.log(np.einsum("kii->ki", factors)).sum(axis=1)
    sums = -0.5 * np.eye(n_components).repeat(n_columns, axis=0)
    beside = factors.swapaxes(0, 1).reshape(n_columns, -1)
    white = Affine(weights=beside, offset=-whitened.ravel())
    return white, "Square", Affine(weights=sums, offset=logs)


def raw_centres(
    model: Chain,
    *,
    turn: Matrix,  # M, by which an encoded row becomes an aligned one
    features: Sequence[Feature],
) -> dict[str, list[float]]:
    """Return clusters' centres by raw column, of a level the share; none where l < m."""
    n_columns, first = len(turn.T), model.layers[0]
    if len(turn) != n_columns or not isinstance(first, Affine):
        return {}
    if model.family == "kmeans":  # weights are c / s^2, offsets -|c|^2 / (2 s^2)
        centres = first.weights.T * (-2 * first.offset.sum() / np.sum(first.weights**2))
    else:
        factors = first.weights.reshape(n_columns, -1, n_columns).transpose(1, 2, 0)
        centres = np.linalg.solve(factors, -first.offset.reshape(-1, n_columns, 1))[:, :, 0]
    told = zip(encoded_columns(features), np.linalg.solve(turn.T, centres.T), strict=True)
    return {
        each.name: (cells * each.scale + each.centre).tolist()
        for each, cells in told
        if not each.of  # a mean of products is no product of means
    }
