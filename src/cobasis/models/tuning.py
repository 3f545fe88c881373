"""What scikit-learn fits: searched by folds, and refused where it carries rows.

All parties share one map into the aligned space, so a support vector or a stored neighbour is a
record that each of them can project back with its own ``F_i G_i``.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from cobasis.errors import RowCarryingError
from cobasis.linalg.arrays import Array, Matrix
from cobasis.models import FAMILIES, Estimator, ModelName, Task
from cobasis.models.chain import Held

EARLY_STOPPING_ROWS = 200
"""With fewer rows the tenth that early stopping holds back costs more than it gives."""

_FOLDS = 5


def unfitted(name: ModelName, task: Task, *, n_rows: int, seed: int) -> Estimator:
    """Return the estimator whose grid is searched, as scikit-learn has it."""
    from sklearn import ensemble, linear_model, neural_network, svm

    number = task == "regression"
    # four fifths of the rows, as a fold of five trains on, are to be enough to hold back
    early = {"early_stopping": 4 * n_rows >= 5 * EARLY_STOPPING_ROWS, "random_state": seed}
    match name:
        case "logistic":
            return linear_model.LogisticRegression(max_iter=2000)
        case "mlp":
            network = neural_network.MLPRegressor if number else neural_network.MLPClassifier
            sizes = {"hidden_layer_sizes": (256,), "max_iter": 300}
            return network(learning_rate_init=2e-3, **sizes, **early)
        case "boosted_trees":
            trees = ensemble.HistGradientBoostingClassifier
            trees = ensemble.HistGradientBoostingRegressor if number else trees
            return trees(min_samples_leaf=10, **early)
    return svm.SVR() if number else svm.SVC()


def log_likelihood(
    estimator: Estimator, block: tuple[Matrix, Array], *, held: Held | None = None
) -> float:
    """Return the mean log-likelihood of labels, leaving out classes that were not fitted."""
    # on a few dozen rows it chooses better than accuracy does, which comes in steps
    rows, labels = block
    known = np.isin(labels, estimator.classes_)
    places = np.searchsorted(estimator.classes_, labels[known])
    likely = estimator.predict_proba(rows)[known]
    logits = np.log(np.maximum(likely, np.finfo(float).tiny))
    if held is not None:
        held.append((logits, places))
    true = logits[np.arange(len(places)), places]
    return float(np.mean(true)) if len(true) else 0.0


def tuned(
    name: ModelName, block: tuple[Matrix, Array], *, task: Task, seed: int, held: Held | None = None
) -> Estimator:
    """Fit a family with the value of its grid that cross-validates best, and say how it did."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV

    chosen, (rows, labels) = FAMILIES[name], block
    estimator = unfitted(name, task, n_rows=len(rows), seed=seed)
    if task == "classification" and "early_stopping" in estimator.get_params():
        # it holds back a tenth of a fold's rows, of every class some
        _, counts = np.unique(labels, return_counts=True)
        if min(counts) < _FOLDS or 10 * _FOLDS * len(counts) >= (_FOLDS - 1) * len(labels):
            estimator.set_params(early_stopping=False)
    tried: Held = []
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        splits = folds(labels, task=task, seed=seed)
        if not splits:
            return estimator.fit(rows, labels)
        likely = task == "classification" and not chosen.carries_rows
        scorer = lambda fitted, *fold: log_likelihood(fitted, fold, held=tried)  # noqa: E731
        search = GridSearchCV(
            estimator, dict(chosen.grid), cv=splits, scoring=scorer if likely else None
        ).fit(rows, labels)
    first = search.best_index_ * len(splits)  # value by value, fold by fold
    for logits, places in tried[first : first + len(splits)]:
        if held is not None and logits.shape[1] == len(search.classes_):
            held.append((logits, places))
    return search.best_estimator_


def folds(labels: Array, *, task: Task, seed: int) -> list[tuple[Any, Any]]:
    """Return shuffled folds, stratified where every class has a row for each; none of few rows."""
    from sklearn.model_selection import KFold, StratifiedKFold

    numbers = task != "classification"
    if len(labels) < 2 * _FOLDS:
        return []
    few = numbers or np.unique(labels, return_counts=True)[1].min() < _FOLDS
    kind = KFold if few else StratifiedKFold
    found = kind(_FOLDS, shuffle=True, random_state=seed).split(labels, labels)
    return [each for each in found if numbers or len(np.unique(labels[each[0]])) > 1]


# ---------------------------------------------------------------- models that carry training rows

_ROW_CARRYING = (
    "sklearn.svm._classes.SV",  # of classes and of numbers, as the next; not the linear ones
    "sklearn.svm._classes.NuSV",
    "sklearn.svm._classes.OneClassSVM",
    "sklearn.neighbors",
    "sklearn.gaussian_process",
    "sklearn.kernel_ridge",
    "sklearn.semi_supervised",
    "sklearn.kernel_approximation.Nystroem",
    "sklearn.decomposition._kernel_pca",
    "sklearn.cross_decomposition",
    "sklearn.impute._knn",
)
_SHARE_OF_ROWS = 0.01


def refuse_row_carrying(estimator: Estimator, rows: Matrix | None = None) -> None:
    parts = list(_parts(estimator, seen=set()))
    names = [f"{type(part).__module__}.{type(part).__qualname__}" for part in parts]
    found = next((name for name in names if name.startswith(_ROW_CARRYING)), None)
    reason = f"{found.rpartition('.')[2]} stores training rows" if found else ""
    if rows is not None and not found:
        known = {row.tobytes() for row in rows}
        for part in parts:
            if isinstance(part, np.ndarray) and _holds(part, known, rows.shape[1]):
                kind = type(estimator).__name__
                reason = f"{kind} holds training rows in an array of {part.shape}"
    if reason:
        raise RowCarryingError(
            f"{reason}: each party could project the others' records back with its own basis. Use "
            "'rff' (same accuracy, no rows) or 'mlp'; in simulation, allow_row_carrying=True."
        )


def _holds(array: Array, known: set[bytes], width: int) -> bool:
    """Whether at least one in a hundred of `array`'s rows, or columns, is a training row."""
    if array.ndim != 2 or array.dtype != np.float64:  # noqa: PLR2004
        return False
    for table in (array, array.T):
        if table.shape[1] == width and len(table):
            found = sum(row.tobytes() in known for row in np.ascontiguousarray(table))
            if found >= _SHARE_OF_ROWS * len(table):
                return True
    return False


def _parts(value: object, *, seen: set[int]) -> Iterator[object]:
    if id(value) in seen or isinstance(value, str | bytes | int | float):
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list | tuple | set):
        inner = list(value)
    elif isinstance(value, np.ndarray):
        inner = value.ravel().tolist() if value.dtype == object else []
    else:
        inner = list(getattr(value, "__dict__", {}).values())
    for each in inner:
        yield from _parts(each, seen=seen)


def stored_bytes(estimator: Estimator) -> int:
    parts = _parts(estimator, seen=set())
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
