"""Model families, what they carry, and how they are trained on aligned rows.

The table of families is here, and scikit-learn is imported when a model is built.

Default families carry no rows: what a party gets back is weights. Random Fourier features
with ridge stand in for the RBF support-vector machine, whose file is made of rows.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from cobasis.errors import MissingExtraError, OptionError

Unlabelled = Literal["clustering", "novelty", "representation"]
Task = Literal["classification", "regression", "count", "survival", "effect", Unlabelled, "table"]
MODELLESS: frozenset[Task] = frozenset({"representation", "table"})

UNLABELLED: frozenset[Task] = frozenset(get_args(Unlabelled))
"""Tasks of rows alone: no label leaves a party."""

UNSCORED = MODELLESS | UNLABELLED | {"effect"}
"""Tasks whose models rows that were held back say nothing of."""

OF_NUMBERS: frozenset[Task] = frozenset({"regression", "count", "survival", "effect"})

RegressionName = Literal["ols", "logit", "firth", "poisson", "negative_binomial", "cox", "effect"]
"""Models whose coefficients come back with their errors; no penalty, every column. That of an
effect gives the propensity of treatment."""

Mixture = Literal["kmeans", "gaussian_mixture"]
ModelName = Literal[
    "logistic", "ridge", "mlp", "rff", "boosted_trees", "xgboost", "svm", Mixture, RegressionName
]

ChainFamily = Literal["linear", "logistic", "mlp", "rff", "boosted_trees", Mixture, "regression"]


@dataclass(frozen=True, kw_only=True)
class Family:
    """All that depends on the family outside its own fit: one row of the table."""

    tasks: tuple[Task, ...] = ("classification", "regression")
    chain: ChainFamily | None  # None where a model cannot leave the process it was made in
    # of what is searched by folds; empty where scikit-learn does not fit the family
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    carries_rows: bool = False
    additive: bool = False  # from sums over rows: on a cluster too; a party may mix it with its own
    by_sums: bool = False  # a table that masked totals give as well
    logarithmic: bool = False  # a table of the log of a rate, or of a hazard


FAMILIES: dict[ModelName, Family] = {
    "logistic": Family(
        tasks=("classification",),
        chain="logistic",
        grid={"C": [0.01, 0.1, 1.0, 10.0, 100.0]},
        additive=True,
    ),
    "ridge": Family(chain="linear", additive=True),
    "mlp": Family(chain="mlp", grid={"alpha": [1e-4, 1e-2, 1.0]}),
    "rff": Family(chain="rff", additive=True),
    "boosted_trees": Family(chain="boosted_trees", grid={"learning_rate": [0.03, 0.1]}),
    "xgboost": Family(chain="boosted_trees"),
    "svm": Family(chain=None, grid={"C": [0.1, 1.0, 10.0, 100.0]}, carries_rows=True),
    "kmeans": Family(tasks=("clustering",), chain="kmeans"),
    "gaussian_mixture": Family(tasks=("clustering", "novelty"), chain="gaussian_mixture"),
    "ols": Family(tasks=("regression",), chain="regression", by_sums=True),
    "logit": Family(tasks=("classification",), chain="regression", by_sums=True),
    "firth": Family(tasks=("classification",), chain="regression"),
    "poisson": Family(tasks=("count",), chain="regression", by_sums=True, logarithmic=True),
    "negative_binomial": Family(tasks=("count",), chain="regression", logarithmic=True),
    "cox": Family(tasks=("survival",), chain="regression", by_sums=True, logarithmic=True),
    "effect": Family(tasks=("effect",), chain="regression"),
}

AGREED_AS: Mapping[ChainFamily | None, tuple[ModelName, ...]] = {
    row.chain: tuple(name for name, other in FAMILIES.items() if other.chain == row.chain)
    for row in FAMILIES.values()
}
"""What an agreement may call the family of a model's file."""

TABULAR = AGREED_AS["regression"]

DEFAULT_MODELS: Mapping[Task, ModelName] = {
    "classification": "logistic",
    "regression": "ridge",
    "count": "poisson",
    "survival": "cox",
    "effect": "effect",
    "clustering": "kmeans",
    "novelty": "gaussian_mixture",
    "representation": "logistic",
}


def family(name: ModelName, task: Task) -> Family:
    if name not in FAMILIES or task not in FAMILIES[name].tasks:
        known = [each for each, row in FAMILIES.items() if task in row.tasks]
        raise OptionError(
            f"model '{name}' is no family for {task}. Choose one of {', '.join(known)}."
        )
    return FAMILIES[name]


Estimator: TypeAlias = Any
"""Anything with scikit-learn's ``fit`` and ``predict``; scikit-learn itself is untyped."""


@contextmanager
def needing(package: str, *, extra: str, what: str) -> Iterator[None]:
    """Say how to install a package that an extra brings, where importing it fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs the package {package}, which is not installed. Install it with: "
            f"pip install 'cobasis[{extra}]'"
        ) from error
