"""Model families, what they carry, and how they are trained on aligned rows.

scikit-learn is imported when a model is built, not when this package is.
The words for tasks and families are here, so that a command can list them.
"""

from typing import Any, Literal, TypeAlias

Task = Literal["classification", "regression", "representation"]
ModelName = Literal["logistic", "ridge", "mlp", "rff", "boosted_trees", "xgboost", "svm"]

Estimator: TypeAlias = Any
"""Anything with scikit-learn's ``fit`` and ``predict``; scikit-learn itself is untyped."""
