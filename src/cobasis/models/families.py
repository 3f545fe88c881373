"""The model families that an agreement can name, each with its tuning grid.

Default families carry no rows: what a party gets back is weights. Random Fourier features
with ridge stand in for the RBF support-vector machine, whose file is made of rows.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from cobasis.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Estimator: TypeAlias = Any
"""Anything with scikit-learn's ``fit`` and ``predict``; scikit-learn itself is untyped."""

Task = Literal["classification", "regression", "representation"]
ModelName = Literal["logistic", "ridge", "mlp", "rff", "boosted_trees", "svm"]

MODELS: tuple[ModelName, ...] = get_args(ModelName)

EARLY_STOPPING_ROWS = 200
"""With fewer rows the tenth that early stopping holds back costs more than it gives."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """One row of the table of families.

    Attributes
    ----------
    tasks : tuple of str
        What it can be trained for.
    carries_rows : bool
        Whether a fitted model holds training rows.
    build : callable
        ``(task, n_rows, seed)`` to an unfitted estimator.
    grid : mapping of str to list
        What cross-validation chooses from; empty where the estimator tunes itself.
    """

    tasks: tuple[Task, ...]
    carries_rows: bool
    build: "Callable[[Task, int, int], Estimator]"
    grid: "Mapping[str, list[Any]]"


def family(name: ModelName, task: Task) -> Family:
    """Return a family by name, if it can do the task."""
    known = [each for each, row in FAMILIES.items() if task in row.tasks]
    if name not in known:
        raise OptionError(
            f"model '{name}' is no family for {task}. Choose one of {', '.join(known)}."
        )
    return FAMILIES[name]


def default_model(task: Task) -> ModelName:
    """Return the family that is used where none is named."""
    return "ridge" if task == "regression" else "logistic"


def _stops_early(n_rows: int) -> bool:
    """Whether four fifths of the rows, as a fold of five trains on, are enough to hold back."""
    return 4 * n_rows >= 5 * EARLY_STOPPING_ROWS


def _logistic(task: Task, n_rows: int, seed: int) -> Estimator:  # noqa: ARG001
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=2000)


def _ridge(task: Task, n_rows: int, seed: int) -> Estimator:  # noqa: ARG001
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV

    chosen = RidgeCV if task == "regression" else RidgeClassifierCV
    return chosen(alphas=np.logspace(-4, 4, 25))


def _mlp(task: Task, n_rows: int, seed: int) -> Estimator:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    chosen = MLPRegressor if task == "regression" else MLPClassifier
    return chosen(
        hidden_layer_sizes=(256,),
        learning_rate_init=2e-3,
        max_iter=300,
        early_stopping=_stops_early(n_rows),
        random_state=seed,
    )


def _rff(task: Task, n_rows: int, seed: int) -> Estimator:
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.pipeline import make_pipeline

    features = RBFSampler(gamma="scale", n_components=1000, random_state=seed)
    return make_pipeline(features, _ridge(task, n_rows, seed))


def _boosted_trees(task: Task, n_rows: int, seed: int) -> Estimator:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    chosen = (
        HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    )
    return chosen(early_stopping=_stops_early(n_rows), random_state=seed, min_samples_leaf=10)


def _svm(task: Task, n_rows: int, seed: int) -> Estimator:  # noqa: ARG001
    from sklearn.svm import SVC, SVR

    return SVR() if task == "regression" else SVC()


_BOTH: tuple[Task, ...] = ("classification", "regression")

FAMILIES: dict[ModelName, Family] = {
    "logistic": Family(
        tasks=("classification",),
        carries_rows=False,
        build=_logistic,
        grid={"C": [0.01, 0.1, 1.0, 10.0, 100.0]},
    ),
    "ridge": Family(tasks=_BOTH, carries_rows=False, build=_ridge, grid={}),
    "mlp": Family(tasks=_BOTH, carries_rows=False, build=_mlp, grid={"alpha": [1e-4, 1e-2, 1.0]}),
    "rff": Family(tasks=_BOTH, carries_rows=False, build=_rff, grid={}),
    "boosted_trees": Family(
        tasks=_BOTH, carries_rows=False, build=_boosted_trees, grid={"learning_rate": [0.03, 0.1]}
    ),
    "svm": Family(tasks=_BOTH, carries_rows=True, build=_svm, grid={"C": [0.1, 1.0, 10.0, 100.0]}),
}
