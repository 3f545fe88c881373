from types import SimpleNamespace

import numpy as np
import pytest

from cobasis.estimators import CollaborativeClassifier


@pytest.fixture(scope="session")
def small():
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
    model = CollaborativeClassifier(estimator="ridge", n_components=4, random_state=0)
    return model.fit(small.X, small.y, parties=small.parties)
