"""Was this person among those that a model, or a shared basis, was made of? Simple thresholds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.errors import OptionError, ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.models.chain import Chain
from cobasis.models.trainer import TrainedModel
from cobasis.privacy.attacks.scores import nearest
from experiments.attacks.inversion import stored_rows


@dataclass(frozen=True, kw_only=True, repr=False)
class MembershipByFit(Hidden):
    """A party asks the model how well it fits people whose records and labels it knows."""

    shared_map: Matrix
    records: Matrix
    labels: npt.NDArray[Any]

    def decide(self, model: Chain | TrainedModel) -> Matrix:
        """Score each person: how sure the model is of the true label, or how near it comes."""
        rows = _aligned(self.records, self.shared_map)
        labels = np.asarray(self.labels)
        if labels.shape != (len(rows),):
            raise ShapeError(
                f"labels have shape {labels.shape} for {len(rows)} people. Give one for each."
            )
        method, classes = _scores_of(model)
        if method == "predict_proba":
            likely = model.scores(rows, method=method)
            own = likely[np.arange(len(rows)), _columns(labels, classes)]
            sure: Matrix = np.log(np.maximum(own, np.finfo(float).tiny))
            return sure
        if method == "decision_function":
            return _margin(model.scores(rows, method=method), _columns(labels, classes))
        predicted = np.asarray(model.predict(rows), dtype=np.float64)
        nearness: Matrix = -np.square(predicted - np.asarray(labels, dtype=np.float64))
        return nearness


@dataclass(frozen=True, kw_only=True, repr=False)
class MembershipByStoredRows(Hidden):
    """A party looks for people whose records it knows among the rows that the model stores."""

    shared_map: Matrix
    records: Matrix

    def decide(self, model: Chain | TrainedModel) -> Matrix:
        """Score each person: minus the distance to the nearest stored row."""
        stored, rows = stored_rows(model), _aligned(self.records, self.shared_map)
        if not len(stored):
            raise ShapeError(
                "the model stores no rows, so nobody can be looked up. Use MembershipByFit."
            )
        apart: Matrix = np.linalg.norm(rows - stored[nearest(rows, among=stored)], axis=1)
        return -apart


@dataclass(frozen=True, kw_only=True, repr=False)
class MembershipBySpan(Hidden):
    """Somebody who is handed one party's own span asks who lies in it."""

    records: Matrix

    def decide(self, basis: npt.ArrayLike) -> Matrix:
        """Score each person: minus the share of the record that the span misses."""
        span = np.linalg.qr(as_matrix(basis, name="basis"))[0]
        records = as_matrix(self.records, name="records", columns=len(span))
        lengths = np.linalg.norm(records, axis=1)
        missed = np.linalg.norm(records - records @ span @ span.T, axis=1)
        share: Matrix = missed / np.where(lengths > 0, lengths, 1.0)
        return -share


def _aligned(records: Matrix, shared_map: Matrix) -> Matrix:
    """Return records as the model sees them."""
    taken = as_matrix(shared_map, name="shared_map")
    rows: Matrix = as_matrix(records, name="records", columns=len(taken)) @ taken
    return rows


def _scores_of(model: Chain | TrainedModel) -> tuple[str, npt.NDArray[Any]]:
    """Return what a model calls its scores, and the classes that they are for."""
    if isinstance(model, Chain):
        return model.method, np.arange(model.widths[-1])
    for method in ("predict_proba", "decision_function"):
        if hasattr(model.estimator, method) and hasattr(model.estimator, "classes_"):
            return method, model.estimator.classes_
    return "predict", np.empty(0)


def _columns(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return where each label stands among the model's classes."""
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise OptionError(
            f"{unknown.size} of the labels given are no classes of the model, which has "
            f"{len(classes)}. Give labels as the model was trained on them."
        )
    return np.searchsorted(classes, labels)


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
