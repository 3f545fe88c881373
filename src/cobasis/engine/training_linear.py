"""Ridge out of core: exact, from sums over one pass.

Five folds are summed apart, so that cross-validation of the penalty needs no second pass:
squared errors on held-out rows follow from their moments alone.
"""

from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
from sklearn.linear_model import Ridge, RidgeClassifier

from cobasis.engine.partitions import Labels
from cobasis.engine.training_passes import Pass, TurnedRows, chunks, total
from cobasis.linalg.arrays import Matrix
from cobasis.models.families import Estimator, Task

_FOLDS = 5
_PENALTIES = np.logspace(-4, 4, 25).tolist()


@dataclass(frozen=True, kw_only=True)
class _Design:
    """What the normal equations are made of, besides the rows themselves."""

    rows: TurnedRows
    classes: tuple[int, ...]
    features: Estimator | None

    def columns(self, chunk: Matrix) -> Matrix:
        """Return what the model is linear in."""
        if self.features is None:
            return chunk
        return cast("Matrix", self.features.transform(chunk @ self.rows.axes))

    def targets(self, labels: Labels) -> Matrix:
        """Return numbers as they are, or +1 for a row's class and -1 for every other."""
        if not self.classes:
            return labels.astype(np.float64)[:, None]
        told = self.classes[1:] if len(self.classes) == 2 else self.classes  # noqa: PLR2004
        return np.where(labels[:, None] == np.array(told), 1.0, -1.0)


def fit_ridge(
    rows: TurnedRows, *, task: Task, over: Pass, features: Estimator | None = None
) -> Estimator:
    """Fit ridge regression, or the ridge classifier, to all rows."""
    classes = () if task == "regression" else tuple(rows.aligned.class_counts)
    design = _Design(rows=rows, classes=classes, features=features)
    folds = total(over(partial(_moments, design), "ridge"))
    n_targets = 1 if len(classes) in {0, 2} else len(classes)
    penalty = _best_penalty(folds, n_targets)
    weights, intercepts = _solved(folds.sum(axis=0), n_targets, [penalty])[0]
    if features is None:  # found in the rows' own frame: no row had to be turned
        weights = rows.axes.T @ weights
    kind, some = (RidgeClassifier, np.array(classes)) if classes else (Ridge, np.zeros(2))
    fitted = kind(alpha=penalty).fit(np.zeros((len(some), len(weights))), some)
    fitted.coef_ = weights.T.reshape(fitted.coef_.shape)
    fitted.intercept_ = intercepts.reshape(np.shape(fitted.intercept_))[()]
    return fitted


def _moments(design: _Design, index: int) -> Matrix:
    """Return each fold's moments of columns, a one, and targets, in one partition."""
    rows, labels = design.rows.aligned.read(index)
    folds: list[Matrix] = []
    for place, chunk in chunks(rows):
        columns = design.columns(chunk)
        targets = design.targets(cast("Labels", labels)[place])
        table = np.hstack([columns, np.ones((len(chunk), 1)), targets])
        found = [table[fold::_FOLDS].T @ table[fold::_FOLDS] for fold in range(_FOLDS)]
        folds = [a + b for a, b in zip(folds, found, strict=True)] if folds else found
    return np.array(folds)


def _best_penalty(folds: Matrix, n_targets: int) -> float:
    """Return the penalty with the smallest squared error on held-out folds."""
    errors = np.zeros(len(_PENALTIES))
    for held in folds:
        models = _solved(folds.sum(axis=0) - held, n_targets, _PENALTIES)
        for place, (weights, intercepts) in enumerate(models):
            residual = np.vstack([weights, intercepts[None], -np.eye(n_targets)])
            errors[place] += np.einsum("it,ij,jt->", residual, held, residual, optimize=True)
    return float(_PENALTIES[int(np.argmin(errors))])


def _solved(moments: Matrix, n_targets: int, penalties: list[float]) -> list[tuple[Matrix, Matrix]]:
    """Return weights and intercepts for each penalty, which the intercept is free of."""
    one = len(moments) - n_targets - 1
    means = moments[one] / moments[one, one]
    centred = moments - np.outer(moments[one], means)
    sizes, axes = np.linalg.eigh(centred[:one, :one])
    along = axes.T @ centred[:one, one + 1 :]
    found = []
    for penalty in penalties:
        weights = axes @ (along / (np.maximum(sizes, 0.0) + penalty)[:, None])
        found.append((weights, means[one + 1 :] - means[:one] @ weights))
    return found
