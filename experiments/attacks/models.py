"""What a party reads from the model that comes back: others' rows, and who was trained on.

All parties share one map into the aligned rows: whoever has it reads others' rows and models. Each
score of membership is higher for members; a party knows records, labels and its own map.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.models.chain import Chain
from cobasis.models.trainer import TrainedModel
from cobasis.privacy.attacks import Recovered
from cobasis.privacy.attacks.known_records import read_through
from cobasis.privacy.attacks.scores import nearest

_STORES = ("support_vectors_", "_fit_X", "X_train_", "X_fit_")
"""Where scikit-learn's vector machines, neighbours, Gaussian processes, kernel ridge keep rows."""

_SAME = 1e-6
"""Rows this near each other, in units of their size, are one row of two models."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelInversion(Hidden):
    """A party uses its own map on the rows inside the model that came back."""

    shared_map: Matrix

    def recover(self, model: Chain | TrainedModel) -> Recovered:
        """Project the stored rows back."""
        return self._back(stored_rows(model))

    def recover_newcomers(
        self, model: Chain | TrainedModel, before: Chain | TrainedModel
    ) -> Recovered:
        """Project back only what a later model stores and an earlier one did not."""
        return self._back(_fresh(stored_rows(model), stored_rows(before)))

    def _back(self, stored: Matrix) -> Recovered:
        return read_through(self.shared_map, stored)


def frame_of_another(shared_map: Matrix, *, change: Matrix) -> Matrix:
    """Take a party's map for that of another, whose change of basis is known: F_i ~ F_j G_j G_i^+.

    Alignment makes ``F_i G_i`` (nearly) equal for all; the anchor may be long destroyed.
    """
    return shared_map @ np.linalg.pinv(change)


def stored_rows(model: Chain | TrainedModel) -> Matrix:
    """Return the aligned rows that a fitted model keeps where scikit-learn's families keep them."""
    if isinstance(model, Chain):  # which has no place for rows
        return np.empty((0, model.widths[0]))
    found = [np.empty((0, len(model.axes)))]
    found += _kept(model.estimator, width=len(model.axes), seen=set())
    rows = np.concatenate(found)
    first = np.sort(np.unique(rows, axis=0, return_index=True)[1])
    aligned: Matrix = rows[first] @ model.axes.T
    return aligned


def _kept(part: object, *, width: int, seen: set[int]) -> Iterator[Matrix]:
    """Yield the tables of rows inside an estimator and the estimators inside it."""
    if id(part) in seen:
        return
    seen.add(id(part))
    inner = list(part) if isinstance(part, list | tuple) else []
    for name, value in getattr(part, "__dict__", {}).items():
        if name in _STORES and isinstance(value, np.ndarray) and value.shape[1:] == (width,):
            yield value
        elif hasattr(value, "__dict__") or isinstance(value, list | tuple):
            inner.append(value)
    for each in inner:
        yield from _kept(each, width=width, seen=seen)


def _fresh(rows: Matrix, before: Matrix) -> Matrix:
    """Return the rows that stand nowhere in `before`."""
    if not len(rows) or not len(before):
        return rows
    missed = np.linalg.norm(rows - before[nearest(rows, among=before)], axis=1)
    fresh: Matrix = rows[missed > _SAME * np.linalg.norm(rows) / len(rows) ** 0.5]
    return fresh


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
