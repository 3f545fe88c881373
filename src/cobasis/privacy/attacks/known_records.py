"""Somebody knows beforehand the basis, a list of people, a few records, or one fact of a few."""

from bisect import bisect_left
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.spatial.distance import cdist

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Mask, Matrix, Places
from cobasis.linalg.polar import polar
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.scores import explained, nearest, told_apart

_QUANTILES = np.linspace(0, 1, 65)[1:]
_REFERENCES = 1000
_ROUNDS = 50

_PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6)
"""Shares of what known records have outside the basis: how much the fit is held back."""

_NONE = 1e-13  # of what is released, squared: the least penalty, where nothing is outside

_HALF, _ELEVENTH = 0.5, 0.09
_ASKED = 200  # people among whom `fewest_known` looks; of larger tables as many are drawn

_STRENGTH = 10.0
"""Inverse weight of the penalty, for rows of size 1: between 1 and 100 it hardly matters."""


def read_through(basis: Matrix, rows: Matrix, *, prior_rows: Matrix | None = None) -> Recovered:
    """Put released rows back where a basis took them from, stolen or found by another attack."""
    if prior_rows is None:  # nothing is known of what the basis does not span: take 0
        return Recovered(rows=rows @ np.linalg.pinv(basis), basis=basis)
    # The best linear guess of x from x F is mean + (x F - mean F) (F'CF)^+ F'C, with C the
    # covariance of like rows: it fills in what goes with the directions that are seen. With
    # P the centred like rows that factor is (P F)^+ P. Through F'CF the condition number
    # would be squared, and a prior of fewer rows than components would not be solvable.
    mean = prior_rows.mean(axis=0)
    prior = prior_rows - mean
    back = np.linalg.pinv(prior @ basis) @ prior
    return Recovered(rows=mean + (rows - mean @ basis) @ back, basis=basis)


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


def back_to_records(released: Matrix, records: Matrix) -> Matrix:
    """Return the l x m matrix that takes known people's released rows to their records."""
    from sklearn.linear_model import RidgeCV  # noqa: PLC0415 -- keeps imports light

    # Ridge regression, since what a record has outside the basis is noise to this fit. Plain
    # least squares interpolates it once k reaches l: its error explodes there, so that more known
    # people would seem to give less away (double descent). The penalty is chosen by leaving out
    # one known person after the other.
    seen, told = np.sum(released**2), np.sum(records**2)
    if len(records) == 1 or not seen:  # nothing is left to judge by
        return np.asarray(np.linalg.pinv(released) @ records)
    scale = max(float(told - seen) / len(records), _NONE * float(seen))
    fitted = RidgeCV(alphas=scale * np.array(_PENALTIES), fit_intercept=False)
    # where l is m, l known people give all away exactly, and without any of them nothing is left
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.atleast_2d(fitted.fit(released, records).coef_).T


def fewest_known(
    release: Release, truth: Matrix, *, rng: np.random.Generator, draws: int
) -> tuple[int | None, int | None, int]:
    """Find how few known people rebuild half, how few name one in eleven, and how many were tried.

    None where the most that were tried are too few.
    """
    tried = max(1, min(2 * release.rows.shape[1], len(truth) // 2))
    orders = [rng.permutation(len(truth)) for _ in range(draws)]

    @cache
    def at(known: int) -> Matrix:
        found = [_figures(release.rows, truth, order, known=known) for order in orders]
        return np.asarray(np.mean(found, axis=0))

    explained = _first(lambda known: bool(at(known)[0] >= _HALF), tried)
    named = _first(lambda known: bool(at(known)[1] >= _ELEVENTH), tried)
    return explained, named, tried


def _figures(released: Matrix, rows: Matrix, order: Places, *, known: int) -> tuple[float, float]:
    places, asked = order[:known], order[known:][-_ASKED:]
    guessed = released[asked] @ back_to_records(released[places], rows[places])
    named = np.mean((rows[nearest(guessed, among=rows)] == rows[asked]).all(axis=1))
    return explained(guessed, rows[asked]), float(named)


def _first(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number up to `most` that is enough, where more always are."""
    return bisect_left(range(1, most), 1, key=enough) + 1 if enough(most) else None


def infer_attribute(
    release: Release, column: Matrix, *, rng: np.random.Generator, n_known: int, draws: int = 10
) -> tuple[float, float]:
    """Try to read who is above a column's median, knowing it of a few; ShapeError for no two.

    AUC of the rows, and of the labels, which say something of it anyway.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 -- keeps imports light

    above = column > np.median(column)
    if not above.any():  # most people have the highest value: look for the others
        above = column >= np.median(column)
    rows, labels = release.rows, _label_columns(release)
    size = float(np.sqrt(np.mean(np.einsum("ij,ij->i", rows, rows)))) or 1.0
    found = np.zeros((draws, 2))
    for draw in range(draws):
        places = _chosen(above, n_known=n_known, rng=rng)
        asked = np.setdiff1d(np.arange(len(above)), places)
        for which, columns in enumerate((rows / size, labels)):
            fitted = LogisticRegression(C=_STRENGTH, max_iter=1000)
            scores = fitted.fit(columns[places], above[places]).decision_function(columns[asked])
            found[draw, which] = told_apart(scores, above[asked])
    auc, from_labels = found.mean(axis=0)
    return float(auc), float(from_labels)


def _chosen(above: Mask, *, n_known: int, rng: np.random.Generator) -> Places:
    kinds = np.flatnonzero(above), np.flatnonzero(~above)
    if not all(map(len, kinds)):
        raise ShapeError(
            "all people have one value in this column, so there is nothing to infer. Leave it out."
        )
    one = [int(rng.choice(kind)) for kind in kinds]
    others = np.setdiff1d(np.arange(len(above)), one)
    more = rng.choice(others, size=min(n_known - 2, len(others)), replace=False)
    return np.concatenate([np.asarray(one, dtype=np.intp), more])


def _label_columns(release: Release) -> Matrix:
    """Return labels as numbers: one column a class, or the standardised value."""
    labels, columns = release.labels, np.zeros((len(release.rows), 1))
    if labels is not None and labels.dtype.kind == "f":
        columns = ((labels - labels.mean()) / (float(labels.std()) or 1.0)).reshape(-1, 1)
    elif labels is not None:
        columns = (labels[:, np.newaxis] == np.unique(labels)).astype(float)
    return columns
