"""What a model is worth on rows that it has not seen, and how sure of it so few rows make.

Intervals are of 95 %: Wilson's for accuracy, the curvature's for calibration, and by drawing rows
again for the others.
"""

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from cobasis.errors import CobasisError
from cobasis.linalg.arrays import Array, Matrix
from cobasis.models import FAMILIES, Estimator, ModelName, Task
from cobasis.models.passes import Block
from cobasis.models.trainer import train
from cobasis.models.tuning import folds, unfitted

Verdict = Literal["better", "no difference", "worse"]

COMPARED_ROWS = 4_000
"""Rows of all parties, in proportion, on which families are compared."""

_DRAWS, _CELLS = 500, 5 * 10**6
_TAIL, _Z = 0.025, 1.959964
_VAGUE = 10.0
"""A standard error of calibration: probabilities that tell two classes apart say nothing of it."""


class Figure(NamedTuple):
    value: float
    low: float
    high: float


def figures(
    truth: Array, predicted: Array, *, likely: Matrix | None, task: Task
) -> dict[str, Figure]:
    """Measure what such rows allow, of positions of classes with their probabilities too."""
    if task == "count":
        off, told = np.abs(truth - predicted), (predicted > 0) & np.isfinite(predicted)
        found = {"MAE": _redrawn(_mean, off)}
        if told.all():
            deviance = 2 * (scipy.special.xlogy(truth, truth / predicted) - truth + predicted)
            found = {"deviance": _redrawn(_mean, deviance), **found}
    elif task == "regression":
        off = np.abs(truth - predicted)
        found = {"R2": _redrawn(_r2, truth, predicted), "MAE": _redrawn(_mean, off)}
    else:
        right = truth == predicted
        share = scipy.stats.binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
        found = {"accuracy": Figure(float(right.mean()), float(share.low), float(share.high))}
        if likely is not None:
            told = truth[:, None] == np.arange(likely.shape[1])
            off = np.sum((likely - told) ** 2, axis=1) / (2 if likely.shape[1] == 2 else 1)  # noqa: PLR2004 -- as is usual
            found |= {"AUC": _redrawn(_auc, told, likely), "Brier": _redrawn(_mean, off)}
            found |= _calibration(truth, likely)
    return {name: each for name, each in found.items() if np.isfinite(each.value)}


def compared(ours: Array, other: Array, *, truth: Array, task: Task) -> Verdict:
    """Say whether `ours` is better than `other` on the same rows, by a test in pairs at 5 %."""
    # Of classes McNemar's exact one, which holds for however few rows; of numbers Student's, of
    # squared errors, whose mean is what R2 is made of.
    if task == "regression":
        gains = (other - truth) ** 2 - (ours - truth) ** 2
        p = scipy.stats.ttest_1samp(gains, 0.0).pvalue if np.ptp(gains) > 0 else 1.0
    else:
        gains = (ours == truth).astype(np.int64) - (other == truth)
        n_unlike = int(np.count_nonzero(gains))
        p = scipy.stats.binomtest(int(np.sum(gains > 0)), n_unlike).pvalue if n_unlike else 1.0
    if p >= 2 * _TAIL or np.isnan(p):
        return "no difference"
    return "better" if gains.mean() > 0 else "worse"


def cross_validated(
    block: Block, owners: Array, *, model: ModelName, task: Task, seed: int
) -> dict[str, Figure | None]:
    """Measure a family on rows of these parties, five folds, and of a new one, each left out."""
    # More than ten parties are left out by tenths. A family with a grid has its middle setting, or
    # each fold would search it anew. None stands where rows do not allow it.
    from sklearn.model_selection import LeaveOneGroupOut

    rows, labels = block
    fitted: ModelName | Estimator = model
    if grid := FAMILIES[model].grid:
        middle = {name: values[len(values) // 2] for name, values in grid.items()}
        fitted = unfitted(model, task, n_rows=len(labels), seed=seed).set_params(**middle)
    parts = {
        "these parties": folds(labels, task=task, seed=seed),
        "a new party": LeaveOneGroupOut().split(rows, groups=owners % 10),
    }
    how: dict[str, Any] = {"model": fitted, "task": task, "seed": seed, "tempered": False}
    found: dict[str, Figure | None] = {}
    for name, splits in parts.items():
        told, places = [], []
        try:
            with warnings.catch_warnings(action="ignore"):  # of few rows, and of few passes
                for learned, rest in splits:
                    one = train(rows[learned], labels[learned], **how)
                    told.append(one.predict(rows[rest]))
                    places.append(rest)
            truth, predicted = labels[np.concatenate(places)], np.concatenate(told)
            found[name] = next(iter(figures(truth, predicted, likely=None, task=task).values()))
        except (CobasisError, ValueError):  # a part without a class, or without rows
            found[name] = None
    return found


def _redrawn(measure: Callable[..., Array], *columns: Array) -> Figure:
    """Measure rows, and as many drawn from them with replacement, again and again."""
    value, *draws = measure(_times(len(columns[0])), *columns)
    if np.isnan(value):
        return Figure(value, value, value)
    return Figure(float(value), *map(float, np.nanquantile(draws, [_TAIL, 1 - _TAIL])))


@lru_cache(maxsize=1)  # for all figures of a report: to draw them takes longer than to measure
def _times(n_rows: int) -> Matrix:
    """Return how often each row was drawn, a column for each draw; the first has all once."""
    rng = np.random.default_rng(0)
    times = np.ones((n_rows, 1 + min(_DRAWS, 1 + _CELLS // n_rows)))
    for drawn in times.T[1:]:
        drawn[:] = np.bincount(rng.integers(0, n_rows, n_rows), minlength=n_rows)
    return times


def _mean(times: Matrix, values: Array) -> Array:
    return values @ times / len(values)


def _r2(times: Matrix, truth: Array, predicted: Array) -> Array:
    centred, tiny = truth - truth.mean(), np.finfo(float).eps * np.sum(truth**2)
    spread = centred**2 @ times - (centred @ times) ** 2 / len(truth)
    spread[spread <= tiny] = np.nan  # all of a draw are alike
    return np.asarray(1.0 - (truth - predicted) ** 2 @ times / spread)


def _auc(times: Matrix, told: Array, likely: Matrix) -> Array:
    """Return how often a row of a class ranks above one of another: the classes' mean, or NaN."""
    found = []
    for own, scores in zip(told.T, likely.T, strict=True):
        order = np.argsort(scores)
        alike = np.unique(scores[order], return_index=True)[1]
        shares = (times[order] * of[order, None] for of in (own, ~own))
        mine, rest = (np.add.reduceat(each, alike) for each in shares)
        above = np.sum(mine * (np.cumsum(rest, axis=0) - rest / 2), axis=0)
        found.append(np.ma.divide(above, mine.sum(axis=0) * rest.sum(axis=0)))
    return np.asarray(np.ma.mean(found, axis=0).filled(np.nan))


def _calibration(truth: Array, likely: Matrix) -> dict[str, Figure]:
    """Fit log-odds of the truth to a model's, of two classes: 1 and 0 where it is right (Cox)."""
    # Log-odds that are all alike have no slope, and those of one class no end.
    if likely.shape[1] != 2 or min(np.ptp(truth), np.ptp(likely[:, 1])) == 0:  # noqa: PLR2004
        return {}
    from sklearn.linear_model import LogisticRegression

    tiny = np.finfo(float).eps
    odds = scipy.special.logit(np.clip(likely[:, 1], tiny, 1 - tiny))[:, None]
    fitted = LogisticRegression(C=1e9, max_iter=1_000).fit(odds, truth)
    table, chance = np.column_stack([odds, np.ones(len(odds))]), fitted.predict_proba(odds)[:, 1]
    bend = table.T @ (table * (chance * (1 - chance))[:, None])
    spread = np.sqrt(np.diag(np.linalg.pinv(bend, hermitian=True)))
    if not spread.max() < _VAGUE:
        return {}
    told = zip(("slope", "intercept"), (*fitted.coef_[0], *fitted.intercept_), spread, strict=True)
    return {
        f"calibration {name}": Figure(
            float(value), float(value - _Z * off), float(value + _Z * off)
        )
        for name, value, off in told
    }
