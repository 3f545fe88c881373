"""Logistic regression out of core: the exact optimum, by L-BFGS with one pass for each step.

Weights are sought from those of a sample that fits in memory, in coordinates in which the
sample's objective is equally curved: few passes are left, and there is no learning rate to set.
"""

from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, softmax
from sklearn.linear_model import LogisticRegression

from cobasis.engine.partitions import AlignedRows, Labels
from cobasis.engine.training_passes import Frame, Pass, chunks, total
from cobasis.linalg.arrays import Matrix
from cobasis.models.families import Estimator
from cobasis.progress import Report

MAX_PASSES = 100
_TOLERANCE = 1e-5
_GAIN = 1e-9
_CURVATURE = 0.1
"""About what a likelihood's second derivative is: 0.25 at most, little where rows are told well."""

_SHARE = 0.03
_MANY = 2_000


@dataclass(frozen=True, kw_only=True)
class _Coordinates:
    """Coordinates in which the objective is about equally curved everywhere."""

    lower: Matrix
    shape: tuple[int, int]

    def weights(self, point: Matrix) -> Matrix:
        """Return weights, and below them the intercepts, in the rows' own frame."""
        table = point.reshape(len(self.lower), -1)
        return solve_triangular(self.lower.T, table, lower=False).reshape(self.shape)

    def point(self, weights: Matrix) -> Matrix:
        """Return where weights are in these coordinates."""
        moved: Matrix = self.lower.T @ weights.reshape(len(self.lower), -1)
        return moved.ravel()

    def gradient(self, gradient: Matrix) -> Matrix:
        """Turn a gradient by the weights into one by the point."""
        table = gradient.reshape(len(self.lower), -1)
        return solve_triangular(self.lower, table, lower=True).ravel()


def fit_logistic(
    aligned: AlignedRows,
    frame: Frame,
    *,
    start: Estimator,
    sample: Matrix,
    over: Pass,
    report: Report,
) -> Estimator:
    """Fit scikit-learn's logistic regression to all rows."""
    classes = np.array(list(aligned.class_counts))
    penalty = 1.0 / (start.get_params()["C"] * aligned.n_rows)
    begin = _starting_weights(start, classes, frame.axes)
    where = _coordinates(frame, sample @ frame.axes.T, begin, penalty)
    passes = iter(range(1, MAX_PASSES + 2))

    def objective(point: Matrix) -> tuple[float, Matrix]:
        weights = where.weights(point)
        found = total(over(partial(_loss_and_gradient, aligned, weights, classes)))
        loss, gradient = found[0] / aligned.n_rows, found[1:].reshape(weights.shape)
        gradient = gradient / aligned.n_rows
        gradient[:-1] += penalty * weights[:-1]
        report("logistic regression, passes", next(passes, MAX_PASSES), MAX_PASSES)
        size = 0.5 * penalty * float(np.sum(weights[:-1] ** 2))
        return float(loss) + size, where.gradient(gradient)

    best = minimize(
        objective,
        where.point(begin),
        args=(),
        method="L-BFGS-B",
        jac=True,
        options={"maxfun": MAX_PASSES, "gtol": _TOLERANCE, "ftol": _GAIN},
    )
    weights = where.weights(best.x)
    few = np.zeros((len(classes), aligned.n_components))
    fitted = LogisticRegression(**start.get_params()).fit(few, classes)
    fitted.coef_, fitted.intercept_ = (frame.axes.T @ weights[:-1]).T, weights[-1]
    fitted.n_iter_ = np.array([best.nit])
    return fitted


def _coordinates(frame: Frame, sample: Matrix, weights: Matrix, penalty: float) -> _Coordinates:
    """Return coordinates from the second derivative on a sample, at the weights to start from.

    A little of all rows' moments keeps apart what the sample does not. With very many weights
    the moments alone have to do.
    """
    moments = np.block(
        [
            [frame.covariance + np.outer(frame.mean, frame.mean), frame.mean[:, None]],
            [frame.mean[None], np.ones((1, 1))],
        ]
    )
    penalties = np.full(len(weights), penalty)
    penalties[-1] = np.finfo(float).eps * np.trace(moments)
    if weights.size > _MANY:
        curvature = _CURVATURE * moments + np.diag(penalties)
    else:
        curvature = _second_derivative(sample, weights)
        curvature += np.kron(
            _SHARE * _CURVATURE * moments + np.diag(penalties), np.eye(weights.shape[1])
        )
    return _Coordinates(
        lower=np.linalg.cholesky(curvature).astype(np.float64, copy=False), shape=weights.shape
    )


def _second_derivative(sample: Matrix, weights: Matrix) -> Matrix:
    """Return the mean loss's second derivative by the weights, row by row of their table."""
    rows = np.hstack([sample, np.ones((len(sample), 1))])
    logits, (height, width) = rows @ weights, weights.shape
    likely = expit(logits) if width == 1 else softmax(logits, axis=1)
    found = np.empty((height, width, height, width))
    for one in range(width):
        for other in range(one + 1):
            spread = likely[:, one] * ((one == other) - likely[:, other])
            block = rows.T @ (rows * spread[:, None]) / len(rows)
            found[:, one, :, other] = found[:, other, :, one] = block
    return found.reshape(height * width, -1)


def _starting_weights(start: Estimator, classes: Labels, axes: Matrix) -> Matrix:
    """Return the sample's weights in the rows' own frame, or zeros if it lacks a class."""
    n_columns = 1 if len(classes) == 2 else len(classes)  # noqa: PLR2004 -- two classes, one logit
    if not np.array_equal(getattr(start, "classes_", ()), classes):
        return np.zeros((len(axes) + 1, n_columns))
    return np.vstack([axes @ start.coef_.T, start.intercept_])


def _loss_and_gradient(
    aligned: AlignedRows, weights: Matrix, classes: Labels, index: int
) -> Matrix:
    """Return a partition's summed loss, followed by its gradient by the weights."""
    rows, labels = aligned.read(index)
    told = np.searchsorted(classes, cast("Labels", labels))
    loss, gradient = 0.0, np.zeros_like(weights)
    for place, chunk in chunks(rows):
        logits = chunk @ weights[:-1] + weights[-1]
        found, residual = _softmax(logits, told[place])
        loss += found
        gradient[:-1] += chunk.T @ residual
        gradient[-1] += residual.sum(axis=0)
    return np.concatenate([[loss], gradient.ravel()])


def _softmax(logits: Matrix, told: Labels) -> tuple[float, Matrix]:
    """Return the summed loss, and its derivative by the logits."""
    if logits.shape[1] == 1:
        likelihood = log_expit(np.where(told == 1, 1.0, -1.0) * logits[:, 0])
        wrong = -np.expm1(likelihood)
        return -float(likelihood.sum()), np.where(told == 1, -wrong, wrong)[:, None]
    likelihoods = logits - logsumexp(logits, axis=1, keepdims=True)
    residual = np.exp(likelihoods)
    rows = np.arange(len(told))
    residual[rows, told] -= 1.0
    return -float(likelihoods[rows, told].sum()), residual
