"""The scikit-learn face of a round: one table, and one party name per row.

A face on :func:`cobasis.simulate` and nothing more, so everything here is a simulation in
one process. Between organisations each side runs its own half, `Party` or `Analyst`.
"""

from cobasis.estimators.predictor import (
    CollaborativeClassifier,
    CollaborativeRegressor,
    CollaborativeSurvival,
)
from cobasis.estimators.transformer import CollaborativeTransformer

__all__ = [
    "CollaborativeClassifier",
    "CollaborativeRegressor",
    "CollaborativeSurvival",
    "CollaborativeTransformer",
]
