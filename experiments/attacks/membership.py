"""Was this person among those that a model, or a shared basis, was made of? Simple thresholds.

A party knows records, labels and its own map, which all share; each score is higher for members.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Matrix
from cobasis.models.chain import Chain
from cobasis.models.trainer import TrainedModel
from cobasis.privacy.attacks.scores import nearest
from experiments.attacks.inversion import stored_rows


def by_fit(model: Chain | TrainedModel, aligned: Matrix, labels: npt.NDArray[Any]) -> Matrix:
    """Score each person: how sure the model is of the true label, or how near it comes."""
    method, classes = _scores_of(model)
    if method == "predict":
        predicted = np.asarray(model.predict(aligned), dtype=np.float64)
        nearness: Matrix = -np.square(predicted - labels)
        return nearness
    scores = model.scores(aligned, method=method)
    columns = np.flatnonzero(labels[:, np.newaxis] == classes) % len(classes)
    if method == "decision_function":
        return _margin(scores, columns)
    own = scores[np.arange(len(aligned)), columns]
    sure: Matrix = np.log(np.maximum(own, np.finfo(float).tiny))
    return sure


def by_stored_rows(model: Chain | TrainedModel, aligned: Matrix) -> Matrix:
    """Score each person: minus the distance to the nearest row that the model stores."""
    stored = stored_rows(model)
    apart: Matrix = np.linalg.norm(aligned - stored[nearest(aligned, among=stored)], axis=1)
    return -apart


def by_span(basis: Matrix, records: Matrix) -> Matrix:
    """Score each person: minus the share of the record that one party's own span misses."""
    span = np.linalg.qr(basis)[0]
    missed = np.linalg.norm(records - records @ span @ span.T, axis=1)
    share: Matrix = missed / np.linalg.norm(records, axis=1)
    return -share


def _scores_of(model: Chain | TrainedModel) -> tuple[str, npt.NDArray[Any]]:
    """Return what a model calls its scores, and the classes that they are for."""
    if isinstance(model, Chain):
        return model.method, np.arange(model.widths[-1])
    for method in ("predict_proba", "decision_function"):
        if hasattr(model.estimator, method) and hasattr(model.estimator, "classes_"):
            return method, model.estimator.classes_
    return "predict", np.empty(0)


def _margin(scores: Matrix, columns: npt.NDArray[np.intp]) -> Matrix:
    """Return how far the true class is ahead of the best other one."""
    if scores.ndim == 1:
        ahead: Matrix = np.where(columns == 1, scores, -scores)
        return ahead
    each = np.arange(len(scores))
    others = scores.copy()
    others[each, columns] = -np.inf
    margin: Matrix = scores[each, columns] - others.max(axis=1)
    return margin
