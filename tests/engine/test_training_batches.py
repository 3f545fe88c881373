"""Who judges mini-batches, and what is returned when nobody can."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import SGDRegressor

from cobasis.engine.training import train_partitions
from cobasis.errors import NotFiniteError
from engine.partitioned import aligned_rows


class Diverging(ClassifierMixin, BaseEstimator):
    """Learns nothing; its likelihoods are what it was built with."""

    def __init__(self, likelihood=np.nan):
        self.likelihood = likelihood

    def partial_fit(self, X, labels, classes):  # noqa: ARG002
        self.classes_ = classes
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), self.likelihood)


def rows_of(n_rows):
    return np.random.default_rng(0).normal(size=(n_rows, 4))


def test_where_nothing_judges_all_rounds_are_learned_from(tmp_path):
    """Of 150 rows none is held out, and SGDRegressor tells no loss."""
    rows = rows_of(150)
    aligned = aligned_rows(tmp_path, rows, rows @ np.arange(4.0))
    rounds = []
    found = train_partitions(
        aligned,
        model=SGDRegressor(random_state=0),
        task="regression",
        seed=0,
        max_passes=25,
        report=lambda step, done, _: rounds.append(done) if "training" in step else None,
    )
    assert rounds == list(range(1, 26))
    assert found.estimator.t_ == 25 * 150 + 1


def test_a_first_round_that_scores_no_number_is_an_error_that_says_so(tmp_path):
    rows = rows_of(300)
    aligned = aligned_rows(tmp_path, rows, (rows[:, 0] > 0).astype(np.int64))
    with pytest.raises(NotFiniteError, match="first round Diverging scores nan"):
        train_partitions(aligned, model=Diverging(), task="classification", seed=0)
