"""Mini-batches: who judges them, what is returned, and how an interrupted training goes on."""

import json
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor

from aligned import digits
from cobasis.errors import DiskError, NotFiniteError, OptionError, RowCarryingError
from cobasis.models import batches
from cobasis.models.trainer import train
from models.blocks import Cut

CLASSES = {"task": "classification", "seed": 0}


class Diverging(ClassifierMixin, BaseEstimator):
    """Learns nothing; its likelihoods are what it was built with."""

    def __init__(self, likelihood=np.nan):
        self.likelihood = likelihood

    def partial_fit(self, X, labels, classes):  # noqa: ARG002
        self.classes_ = classes
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), self.likelihood)


def rows_and_labels(n_rows=600):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, 5))
    return rows, (rows[:, 0] * rows[:, 1] > 0).astype(np.int64)


def thirds(rows, labels):
    return Cut(rows, labels, (len(rows) // 3, 2 * len(rows) // 3))


def told_to(rounds):
    """Put the number of each round of training into a list."""
    return lambda step, done, _: rounds.append(done) if step.startswith("training") else None


def stop_after(rounds):
    def report(step, done, total):  # noqa: ARG001
        if step.startswith("training") and done == rounds:
            raise KeyboardInterrupt

    return report


def perceptron(task="classification", **options):
    kind = MLPClassifier if task == "classification" else MLPRegressor
    options = {"learning_rate_init": 0.02, "shuffle": False, "random_state": 0, **options}
    return kind(hidden_layer_sizes=(16,), **options)


class JsonState(dict):
    """A state whose facts went through JSON."""

    def __setitem__(self, name, kept):
        tables, facts = kept
        copies = {key: each.copy() for key, each in tables.items()}
        super().__setitem__(name, (copies, json.loads(json.dumps(facts, allow_nan=False))))


def test_where_nothing_judges_all_rounds_are_learned_from(monkeypatch):
    """Of 150 rows none is kept apart, and SGDRegressor tells no loss."""
    monkeypatch.setattr(batches, "MAX_PASSES", 25)
    rows, _ = rows_and_labels(150)
    rounds = []
    found = train(
        thirds(rows, rows @ np.arange(5.0)),
        model=SGDRegressor(random_state=0),
        task="regression",
        seed=0,
        report=told_to(rounds),
    )
    assert rounds == list(range(1, 26))
    assert found.estimator.t_ == 25 * 150 + 1


def test_a_first_round_that_scores_no_number_is_an_error_that_says_so():
    with pytest.raises(NotFiniteError, match="first round Diverging scores nan"):
        train(thirds(*rows_and_labels(300)), model=Diverging(), **CLASSES)


def test_a_perceptron_of_many_blocks_tells_digits_as_that_of_one_does():
    """With fixed settings on both sides; within one point."""
    fit, (rows, labels) = digits()
    mine = MLPClassifier((64,), learning_rate_init=2e-3, max_iter=60, random_state=0)
    found = train(thirds(*fit), model=mine, **CLASSES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = train(*fit, model=mine, **CLASSES)
    accuracy = [np.mean(each.predict(rows) == labels) for each in (found, known)]
    assert accuracy[0] > accuracy[1] - 0.01
    assert not hasattr(mine, "coefs_")


def test_the_family_of_perceptrons_is_tuned_and_stops_early():
    rows, _ = rows_and_labels(2400)
    labels = (rows[:, 0] + np.random.default_rng(1).normal(size=2400) > 0).astype(int)
    rounds = []
    found = train(thirds(rows[:400], labels[:400]), model="mlp", **CLASSES, report=told_to(rounds))
    known = train(rows[:400], labels[:400], model="mlp", **CLASSES)
    accuracy = [np.mean(each.predict(rows[400:]) == labels[400:]) for each in (found, known)]
    assert accuracy[0] > accuracy[1] - 0.02
    assert found.layers[0].weights.shape == (5, 256)
    assert rounds[-1] < batches.MAX_PASSES


def test_whatever_has_partial_fit_can_be_trained_and_the_same_again():
    rows, labels = rows_and_labels()
    model = SGDClassifier(loss="log_loss", random_state=0)
    one, two = (train(thirds(rows, labels), model=model, **CLASSES) for _ in range(2))
    np.testing.assert_array_equal(
        one.scores(rows, method="predict_proba"), two.scores(rows, method="predict_proba")
    )


def test_what_has_no_partial_fit_or_carries_rows_is_refused():
    cut = thirds(*rows_and_labels())
    with pytest.raises(OptionError, match="LogisticRegression has no partial_fit"):
        train(cut, model=LogisticRegression(), **CLASSES)
    for model in ("svm", KNeighborsClassifier()):
        with pytest.raises(RowCarryingError, match="stores training rows"):
            train(cut, model=model, **CLASSES)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_an_interrupted_training_ends_in_the_same_weights(task, monkeypatch):
    monkeypatch.setattr(batches, "ROUND_ROWS", 250)  # a pass is three rounds
    monkeypatch.setattr(batches, "MAX_PASSES", 12)
    rows, labels = rows_and_labels()
    target = labels if task == "classification" else rows[:, 0] - rows[:, 1] ** 2
    given = {"model": perceptron(task), "task": task, "seed": 0}
    whole = train(thirds(rows, target), **given)
    state = JsonState()
    for rounds in (1, 7):
        with pytest.raises(KeyboardInterrupt):
            train(thirds(rows, target), **given, state=state, report=stop_after(rounds))
    assert list(state) == [batches.STATE]
    resumed = train(thirds(rows, target), **given, state=state)
    for one, two in zip(whole.estimator.coefs_, resumed.estimator.coefs_, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not state


@pytest.mark.parametrize(
    "how", ["other settings", "other rows", "no facts", "other shapes", "unreadable"]
)
def test_a_state_that_is_not_this_trainings_counts_as_none(how, monkeypatch):
    monkeypatch.setattr(batches, "MAX_PASSES", 5)
    given = {"model": perceptron(), "task": "classification", "seed": 0}
    rows, labels = rows_and_labels()
    state = JsonState()
    with pytest.raises(KeyboardInterrupt):
        train(thirds(rows, labels), **given, state=state, report=stop_after(3))
    tables, facts = state[batches.STATE]
    if how == "other settings":
        given["seed"] = 1
    elif how == "other rows":
        rows = rows[::-1]
    elif how == "no facts":
        facts.pop("steps")
    elif how == "other shapes":
        tables["now.000"] = tables["now.000"][:, :3]
    else:

        class Unreadable(JsonState):
            def __getitem__(self, name):
                raise DiskError(name)

        state = Unreadable()
    rounds = []
    found = train(thirds(rows, labels), **given, state=state, report=told_to(rounds))
    fresh = train(thirds(rows, labels), **given)
    assert rounds[0] == 1
    np.testing.assert_array_equal(found.estimator.coefs_[0], fresh.estimator.coefs_[0])


def test_a_perceptron_that_shuffles_keeps_no_state_because_it_would_end_in_other_weights():
    state = JsonState()
    with pytest.raises(KeyboardInterrupt):
        train(
            thirds(*rows_and_labels()),
            model=perceptron(shuffle=True),
            **CLASSES,
            state=state,
            report=stop_after(2),
        )
    assert not state
