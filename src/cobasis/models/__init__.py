"""Model families, what they carry, and how they are trained on aligned rows.

scikit-learn is imported when a model is built, not when this package is.
The words for tasks and families are here, so that a command can list them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, get_args

from cobasis.errors import MissingExtraError

Unlabelled = Literal["clustering", "novelty", "representation"]
Task = Literal["classification", "regression", "count", "survival", "effect", Unlabelled, "table"]
MODELLESS: frozenset[Task] = frozenset({"representation", "table"})
"""Tasks that train nothing."""

UNLABELLED: frozenset[Task] = frozenset(get_args(Unlabelled))
"""Tasks of rows alone: no label leaves a party."""

OF_NUMBERS: frozenset[Task] = frozenset({"regression", "count", "survival", "effect"})
"""Tasks whose labels are numbers."""

RegressionName = Literal["ols", "logit", "firth", "poisson", "negative_binomial", "cox", "effect"]
"""Models whose coefficients come back with their errors; no penalty, every column. That of an
effect gives the propensity of treatment."""

LOGARITHMIC: frozenset[RegressionName] = frozenset({"poisson", "negative_binomial", "cox"})
"""Those that add up to the log of a rate, or of a hazard."""

Mixture = Literal["kmeans", "gaussian_mixture"]
ModelName = Literal[
    "logistic", "ridge", "mlp", "rff", "boosted_trees", "xgboost", "svm", Mixture, RegressionName
]

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
