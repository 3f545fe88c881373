"""Digits at ten parties of 50 rows, as the demo has them."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cobasis.estimators import CollaborativeClassifier


@pytest.fixture(scope="session")
def digits():
    rows, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))
    rows, labels = (rows[order] - 8) / 16, labels[order]
    names = np.array([f"clinic{i}" for i in range(10)])
    return SimpleNamespace(
        X=rows[:500],
        y=labels[:500],
        parties=names[np.arange(500) % 10],
        X_test=rows[500:1000],
        y_test=labels[500:1000],
        parties_test=names[np.arange(500) // 50],
    )


@pytest.fixture(scope="session")
def small():
    """Six features, two classes, three parties of 30 rows, in mixed order."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(90, 6))
    return SimpleNamespace(
        X=rows,
        y=(rows @ [3.0, 2.0, 1.0, 0.0, 0.0, 0.0] > 0).astype(int),
        target=rows @ [3.0, 2.0, 1.0, 0.0, 0.0, 0.0],
        parties=rng.permutation(np.repeat(["east", "north", "south"], 30)),
    )


@pytest.fixture(scope="session")
def fitted(small):
    """A classifier that nobody changes."""
    model = CollaborativeClassifier(estimator="ridge", n_components=4, random_state=0)
    return model.fit(small.X, small.y, parties=small.parties)


class Frame:
    """What the estimators need of a data frame: columns and numbers."""

    def __init__(self, values, columns):
        self.values, self.columns, self.shape = np.asarray(values), columns, np.shape(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self):
        return len(self.values)


@pytest.fixture(scope="session")
def frame():
    return Frame
