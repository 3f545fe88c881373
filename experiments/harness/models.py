"""The papers' models, and how predictions are judged."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neural_network import MLPClassifier, MLPRegressor, _multilayer_perceptron
from sklearn.neural_network._stochastic_optimizers import AdamOptimizer
from sklearn.svm import SVC

Numbers = npt.NDArray[np.floating[Any]]

_compiled: Callable[[Callable[..., None]], Callable[..., None]] = numba.njit(
    cache=True, error_model="numpy"
)
"""Without fast-math: products and sums are rounded one by one, as NumPy's are."""


@_compiled
def _adam(
    weights: Numbers, gradient: Numbers, mean: Numbers, square: Numbers, factors: Sequence[float]
) -> None:
    """Move weights against a gradient, all in place."""
    beta_1, rest_1, beta_2, rest_2, epsilon, rate = factors
    for i in range(weights.size):
        slope = gradient[i]
        mean[i] = beta_1 * mean[i] + rest_1 * slope
        square[i] = beta_2 * square[i] + rest_2 * (slope * slope)
        weights[i] += rate * mean[i] / (np.sqrt(square[i]) + epsilon)


@_compiled
def _decayed(total: Numbers, weights: Numbers, decay: float, count: float) -> None:
    """Turn the sum of a batch's gradients into their mean with weight decay, in place."""
    for i in range(total.size):
        total[i] = (total[i] + decay * weights[i]) / count


class _Adam(AdamOptimizer):  # type: ignore[misc]
    """scikit-learn's optimiser with all its sums in one loop."""

    def update_params(self, params: Sequence[Numbers], grads: Sequence[Numbers]) -> None:
        self.t += 1
        beta_1, beta_2 = self.beta_1, self.beta_2
        rate = self.learning_rate_init * np.sqrt(1 - beta_2**self.t) / (1 - beta_1**self.t)
        kept = (beta_1, 1 - beta_1, beta_2, 1 - beta_2, self.epsilon)
        factors = (*map(params[0].dtype.type, kept), -rate)
        for arrays in zip(params, grads, self.ms, self.vs, strict=True):
            _adam(*(each.reshape(-1) for each in arrays), factors)


class _Sooner:
    """What both networks do differently: for dense rows, and Adam."""

    alpha: float
    coefs_: list[Numbers]
    early_stopping: bool

    def _fit_stochastic(self, *given: Any) -> None:
        parts: dict[str, Any] = {"AdamOptimizer": _Adam, "_safe_indexing": _rows}
        if self.early_stopping:
            losses = _multilayer_perceptron.LOSS_FUNCTIONS
            parts["LOSS_FUNCTIONS"] = dict.fromkeys(losses, _left_out)
        with patch.multiple(_multilayer_perceptron, **parts):
            super()._fit_stochastic(*given)  # type: ignore[misc]

    def _compute_loss_grad(  # noqa: PLR0917 -- scikit-learn's
        self,
        layer: int,
        count: int,
        activations: list[Numbers],
        deltas: list[Numbers],
        coef_grads: list[Numbers],
        intercept_grads: list[Numbers],
    ) -> None:
        total = activations[layer].T @ deltas[layer]
        weights = self.coefs_[layer].reshape(-1)
        decay = weights.dtype.type(self.alpha)
        _decayed(total.reshape(-1), weights, decay, total.dtype.type(count))
        coef_grads[layer] = total
        intercept_grads[layer] = deltas[layer].sum(axis=0) / count


def _rows(table: Numbers, chosen: npt.NDArray[np.intp]) -> Numbers:
    return table.take(chosen, axis=0)


def _left_out(*_: object) -> float:
    return 0.0


class FastMLPClassifier(_Sooner, MLPClassifier):  # type: ignore[misc]
    """scikit-learn's network for classes; ``loss_`` says nothing where it stops early."""


class FastMLPRegressor(_Sooner, MLPRegressor):  # type: ignore[misc]
    """The same for numbers; in single precision its last bits differ."""


Table = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]
Model = Any  # a scikit-learn estimator
Make = Callable[[int], Model]  # a model from a seed
MLP: Mapping[str, Any] = {
    "hidden_layer_sizes": (256,),
    "batch_size": 32,
    "early_stopping": True,
    "max_iter": 1000,
    "learning_rate_init": 1e-3,
}
"""ODC paper, section 7; the learning rate is scikit-learn's, since the paper has none."""


def mlp(seed: int, **options: Any) -> Model:
    """Return the papers' network for classes."""
    return FastMLPClassifier(**{**MLP, **options}, random_state=seed)


def mlp_regressor(seed: int, **options: Any) -> Model:
    """Return the same for numbers."""
    return FastMLPRegressor(**{**MLP, **options}, random_state=seed)


class FastSVC(SVC):  # type: ignore[misc]
    """scikit-learn's SVC predicting by matrix products: the same labels in a sixth of the time."""

    def predict(self, X: Table) -> Labels:  # noqa: N803 -- scikit-learn's name
        """Let each pair of classes vote, ties to the class that comes first, as libsvm does."""
        kernel = rbf_kernel(X, self.support_vectors_, gamma=self._gamma)
        ends = np.cumsum(self.n_support_)
        starts = ends - self.n_support_
        votes = np.zeros((len(X), len(self.classes_)), dtype=np.intp)
        parts = [
            kernel[:, a:b] @ self._dual_coef_[:, a:b].T for a, b in zip(starts, ends, strict=True)
        ]
        for (i, j), offset in zip(combinations(range(len(ends)), 2), self._intercept_, strict=True):
            first = parts[i][:, j - 1] + parts[j][:, i] + offset > 0
            votes[:, i] += first
            votes[:, j] += ~first
        found: Labels = self.classes_[votes.argmax(axis=1)]
        return found


def svm(_: int) -> Model:
    """Return the papers' support vector machine, which stores rows: simulation only."""
    return FastSVC(C=1.0, kernel="rbf", gamma="scale")


def fitted(model: Model, rows: Table, labels: Labels) -> Model:
    """Fit a model; that a network stops at its last epoch is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, labels)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """How predictions for a whole test set are judged."""

    predict: Callable[[Model, Table], Table]  # ``predict(model, rows)``
    judge: Callable[[Labels, Table], float]  # ``judge(labels, predictions)``


ACCURACY = Metric(
    predict=lambda model, rows: model.predict(rows),
    judge=lambda y, found: 100 * float(np.mean(y == found)),
)
RMSE = replace(ACCURACY, judge=lambda y, found: float(np.sqrt(np.mean(np.square(y - found)))))
ROC_AUC = Metric(
    predict=lambda model, rows: model.predict_proba(rows)[:, 1],
    judge=lambda y, found: 100 * float(roc_auc_score(y, found)),
)
PR_AUC = replace(ROC_AUC, judge=lambda y, found: 100 * float(average_precision_score(y, found)))
