"""Training a family, tuned by cross-validation, on rows that lie in one frame."""

import warnings
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Matrix
from cobasis.models.carrying import refuse_row_carrying, stored_bytes
from cobasis.models.families import Estimator, Family, ModelName, Task, family

Labels = npt.NDArray[Any]

_FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    """A fitted model and the axes it was fitted in.

    Attributes
    ----------
    axes : ndarray of shape (n_components, n_components)
        Orthogonal; the first step of the model. Identity for raw rows.
    estimator : object
        With ``predict``, fitted on rows turned by the axes.
    """

    axes: Matrix = field(repr=False)
    estimator: Estimator

    def predict(self, rows: Matrix) -> Labels:
        """Predict labels for rows of shape (n_rows, n_components)."""
        predicted: Labels = self.estimator.predict(rows @ self.axes)
        return predicted

    def scores(self, rows: Matrix, *, method: str) -> Labels:
        """Call `method` (``predict_proba``, ``decision_function``) on turned rows."""
        scored: Labels = getattr(self.estimator, method)(rows @ self.axes)
        return scored

    @property
    def n_components(self) -> int:
        """How many columns its rows have."""
        return len(self.axes)

    @property
    def n_bytes(self) -> int:
        """What the model weighs: the bytes of its arrays."""
        return int(self.axes.nbytes) + stored_bytes(self.estimator)


def principal_axes(rows: Matrix) -> Matrix:
    """Return the principal axes of aligned rows, each with its sign fixed by the rows.

    The aligned frame is arbitrary, and trees or per-feature scalers depend on it. These axes
    do not: they follow the rows.
    """
    _, vectors = np.linalg.eigh(rows.T @ rows)
    axes = vectors[:, ::-1]
    return with_signs(axes, np.sum((rows @ axes) ** 3, axis=0))


def with_signs(axes: Matrix, third_moments: Matrix) -> Matrix:
    """Return axes with signs such that the third moments of the rows along them are positive."""
    signed: Matrix = axes * np.where(third_moments < 0, -1.0, 1.0)
    return signed


def train(
    rows: Matrix,
    labels: Labels,
    *,
    model: ModelName | Estimator,
    task: Task,
    seed: int,
    allow_row_carrying: bool = False,
    aligned: bool = True,
) -> TrainedModel:
    """Train a family, tuned by cross-validation, or an estimator as it is.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_components)
        Of all parties together, or of one for comparison.
    labels : ndarray of shape (n_rows,)
        At least two classes for classification.
    model : str or scikit-learn estimator
        A family's name, or an unfitted estimator or pipeline, which is cloned.
    task : {"classification", "regression"}
        What the family is for.
    seed : int
        For folds, initial weights and random features; no secret depends on it.
    allow_row_carrying : bool
        Accept a model that stores rows; simulation only.
    aligned : bool
        Turn to principal axes first; False for raw features, whose frame means something.

    Returns
    -------
    TrainedModel
        Ready to predict.

    Raises
    ------
    RowCarryingError
        The model stores training rows.
    OptionError
        No such family for the task.

    Notes
    -----
    **Who sees what.** The analyst trains; every party gets the model.

    **Cost.** Five folds for each value of the family's grid, then one fit.
    """
    axes = principal_axes(rows) if aligned else np.eye(rows.shape[1])
    turned = rows @ axes
    if isinstance(model, str):
        chosen = family(cast("ModelName", model), task)
        if chosen.carries_rows and not allow_row_carrying:
            refuse_row_carrying(chosen.build(task, len(rows), seed))
        fitted = tuned(chosen, turned, labels=labels, task=task, seed=seed)
    else:
        fitted = _fitted(model, turned, labels, allow_row_carrying=allow_row_carrying)
    if not allow_row_carrying:
        refuse_row_carrying(fitted, turned)
    return TrainedModel(axes=axes, estimator=fitted)


def _fitted(
    estimator: Estimator,
    rows: Matrix,
    labels: Labels,
    *,
    allow_row_carrying: bool,
) -> Estimator:
    """Fit a clone of the user's estimator."""
    from sklearn.base import clone

    if not allow_row_carrying:
        refuse_row_carrying(estimator)
    return clone(estimator).fit(rows, labels)


def tuned(chosen: Family, rows: Matrix, *, labels: Labels, task: Task, seed: int) -> Estimator:
    """Fit the family with the value of its grid that cross-validates best."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV

    estimator = chosen.build(task, len(rows), seed)
    if task == "classification" and not _can_hold_back(labels):
        stops = {"early_stopping"} & set(estimator.get_params())
        estimator.set_params(**dict.fromkeys(stops, False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not chosen.grid or len(rows) < 2 * _FOLDS:
            return estimator.fit(rows, labels)
        likely = task == "classification" and hasattr(estimator, "predict_proba")
        search = GridSearchCV(
            estimator,
            dict(chosen.grid),
            cv=_folds(labels, task, seed),
            scoring=_scored if likely else None,
        )
        return search.fit(rows, labels).best_estimator_


def _can_hold_back(labels: Labels) -> bool:
    """Whether early stopping can hold back a tenth of a fold's rows, of every class some."""
    _, counts = np.unique(labels, return_counts=True)
    enough = int(counts.min()) >= _FOLDS
    return enough and 10 * _FOLDS * len(counts) < (_FOLDS - 1) * len(labels)


def log_likelihood(estimator: Estimator, rows: Matrix, *, labels: Labels) -> float:
    """Return the mean log-likelihood of labels, leaving out classes that were not fitted.

    On a few dozen rows it chooses better than accuracy does, which comes in steps.
    """
    columns = np.searchsorted(estimator.classes_, labels)
    known = np.isin(labels, estimator.classes_)
    if not known.any():
        return 0.0
    likelihoods = estimator.predict_proba(rows[known])[np.arange(known.sum()), columns[known]]
    return float(np.mean(np.log(np.maximum(likelihoods, np.finfo(float).tiny))))


def _scored(estimator: Estimator, rows: Matrix, labels: Labels) -> float:
    """Score as scikit-learn's search asks for it."""
    return log_likelihood(estimator, rows, labels=labels)


def _folds(labels: Labels, task: Task, seed: int) -> list[tuple[Any, Any]]:
    """Return shuffled folds, stratified where every class has a row for each of them."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold
    if task == "classification":
        _, counts = np.unique(labels, return_counts=True)
        kind = StratifiedKFold if counts.min() >= _FOLDS else KFold
    folds: list[tuple[Any, Any]] = list(
        kind(_FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(labels)), labels)
    )
    if task == "regression":
        return folds
    return [(fit, test) for fit, test in folds if len(np.unique(labels[fit])) > 1]
