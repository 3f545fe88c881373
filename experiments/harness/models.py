"""The papers' models, and how predictions are judged."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC

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
    return MLPClassifier(**{**MLP, **options}, random_state=seed)


def mlp_regressor(seed: int, **options: Any) -> Model:
    return MLPRegressor(**{**MLP, **options}, random_state=seed)


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
