"""Mini-batches and xgboost: who judges, how good they are, and how an interrupted one goes on."""

import json
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import xgboost
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, SGDRegressor
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor

from aligned import digits
from cobasis.errors import (
    DiskError,
    MissingExtraError,
    NotFiniteError,
    OptionError,
    RowCarryingError,
)
from cobasis.models import FAMILIES, out_of_core
from cobasis.models.chain import Affine
from cobasis.models.out_of_core import fit_xgboost
from cobasis.models.passes import Split, Threads
from cobasis.models.sources import xgboost_layers
from cobasis.models.trainer import train
from models.chains import Cut

CLASSES = {"task": "classification", "seed": 0}
BOOSTED = {**CLASSES, "model": "xgboost"}
NUMBERS = {"task": "regression", "seed": 0}


class Diverging(MLPClassifier):
    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def rows_and_labels(n_rows=600):
    rows = np.random.default_rng(0).normal(size=(n_rows, 5))
    return rows, (rows[:, 0] * rows[:, 1] > 0).astype(np.int64)


def thirds(rows, labels):
    return Cut(rows, labels, (len(rows) // 3, 2 * len(rows) // 3))


def told_to(rounds, stop_after=None):
    def report(step, done, _):
        if "rounds" in step:
            rounds.append(done)
            if done == stop_after:
                raise KeyboardInterrupt

    return report


def perceptron(task="classification", *, shuffle=False):
    kind = MLPClassifier if task == "classification" else MLPRegressor
    options = {"learning_rate_init": 0.02, "shuffle": shuffle, "random_state": 0}
    return kind(hidden_layer_sizes=(16,), **options)


class JsonState(dict):
    def __setitem__(self, name, kept):
        tables, facts = kept
        copies = {key: each.copy() for key, each in tables.items()}
        super().__setitem__(name, (copies, json.loads(json.dumps(facts, allow_nan=False))))


def test_where_nothing_judges_all_rounds_are_learned_from(monkeypatch):
    """Of 150 rows none is kept apart, and SGDRegressor tells no loss."""
    monkeypatch.setattr(out_of_core, "MAX_PASSES", 25)
    rows, _ = rows_and_labels(150)
    rounds, source = [], thirds(rows, rows @ np.arange(5.0))
    model = SGDRegressor(random_state=0)
    found, again = (train(source, model=model, **NUMBERS, report=told_to(rounds)) for _ in "12")
    assert rounds == 2 * list(range(1, 26))
    assert found.estimator.t_ == 25 * 150 + 1
    np.testing.assert_array_equal(found.estimator.coef_, again.estimator.coef_)


def test_a_first_round_that_scores_no_number_is_an_error_that_says_so():
    with pytest.raises(NotFiniteError, match="first round Diverging scores nan"):
        train(thirds(*rows_and_labels(300)), model=Diverging(), **CLASSES)


def test_a_perceptron_of_many_blocks_tells_digits_as_that_of_one_does():
    """With fixed settings on both sides; within one point."""
    fit, (rows, labels) = digits()
    fit = [each[:600] for each in fit]
    mine = MLPClassifier((32,), learning_rate_init=5e-3, max_iter=30, random_state=0)
    found = train(thirds(*fit), model=mine, **CLASSES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = clone(mine).fit(*fit)
    accuracy = [np.mean(each.predict(rows) == labels) for each in (found, known)]
    assert accuracy[0] > accuracy[1] - 0.01
    assert not hasattr(mine, "coefs_")


def test_the_family_of_perceptrons_is_tuned_and_stops_early(monkeypatch):
    rows, _ = rows_and_labels(2400)
    labels = (rows[:, 0] + np.random.default_rng(1).normal(size=2400) > 0).astype(int)
    grid = {"alpha": [1e-4, 1.0], "tol": [1e-2]}  # the second for the search to end soon
    monkeypatch.setitem(FAMILIES, "mlp", replace(FAMILIES["mlp"], grid=grid))
    rounds = []
    found = train(thirds(rows[:400], labels[:400]), model="mlp", **CLASSES, report=told_to(rounds))
    best_possible = np.mean((rows[400:, 0] > 0) == labels[400:])
    assert np.mean(found.predict(rows[400:]) == labels[400:]) > best_possible - 0.05
    assert rounds[-1] < out_of_core.MAX_PASSES


def test_what_has_no_partial_fit_or_carries_rows_is_refused():
    cut = thirds(*rows_and_labels())
    for model, error, told in (
        (LogisticRegression(), OptionError, "LogisticRegression holds all rows.*with partial_fit"),
        ("svm", RowCarryingError, "stores training rows"),
        (KNeighborsClassifier(), RowCarryingError, "stores training rows"),
        ("boosted_trees", OptionError, r"600 rows of 5 columns .*'xgboost'"),
    ):
        with pytest.raises(error, match=told):
            train(cut, model=model, **CLASSES)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_an_interrupted_training_ends_in_the_same_weights(task, monkeypatch):
    monkeypatch.setattr(out_of_core, "ROUND_ROWS", 250)  # a pass is three rounds
    monkeypatch.setattr(out_of_core, "MAX_PASSES", 12)
    rows, labels = rows_and_labels()
    target = labels if task == "classification" else rows[:, 0] - rows[:, 1] ** 2
    given = {"model": perceptron(task), "task": task, "seed": 0}
    whole = train(thirds(rows, target), **given)
    state = JsonState()
    for rounds in (1, 7):
        with pytest.raises(KeyboardInterrupt):
            train(thirds(rows, target), **given, state=state, report=told_to([], rounds))
    assert list(state) == [out_of_core.STATE]
    resumed = train(thirds(rows, target), **given, state=state)
    for one, two in zip(whole.estimator.coefs_, resumed.estimator.coefs_, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not state


class Unreadable(JsonState):
    def __getitem__(self, name):
        raise DiskError(name)


@pytest.mark.parametrize("how", ["settings", "rows", "unreadable", "shuffled", "spoilt"])
def test_a_state_that_is_not_this_trainings_counts_as_none(how, monkeypatch):
    """A perceptron that shuffles keeps none, because it would end in other weights."""
    monkeypatch.setattr(out_of_core, "MAX_PASSES", 5)
    given = {"model": perceptron(shuffle=how == "shuffled"), **CLASSES}
    rows, labels = rows_and_labels()
    state, rounds = Unreadable() if how == "unreadable" else JsonState(), []
    with pytest.raises(KeyboardInterrupt):
        train(thirds(rows, labels), **given, state=state, report=told_to([], 3))
    if how == "spoilt":
        tables, _ = state[out_of_core.STATE]
        tables["now.000"] = tables["now.000"][:, :3]
    given["seed"] = int(how == "settings")
    rows = rows[::-1] if how == "rows" else rows
    found = train(thirds(rows, labels), **given, state=state, report=told_to(rounds))
    fresh = train(thirds(rows, labels), **given)
    assert rounds[0] == 1
    np.testing.assert_array_equal(found.estimator.coefs_[0], fresh.estimator.coefs_[0])


# ---------------------------------------------------------------- xgboost


def curved(n_rows=600, seed=0):
    rng = np.random.default_rng(seed)
    rows = (rng.exponential(size=(n_rows, 4)) - 0.8) * [4.0, 2.0, 1.0, 0.5]
    return rows, np.sin(rows[:, 0]) + rows[:, 1] * (rows[:, 2] > 0)


def test_trees_tell_even_digits_from_odd_as_scikit_learns_do(monkeypatch):
    """Within two points of accuracy, from one block and from several, one of them empty."""
    monkeypatch.setattr(out_of_core, "MAX_ROUNDS", 20)
    (rows, labels), (test, told) = digits()
    rows, labels = rows[:600], labels[:600]
    in_memory = HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=10, random_state=0)
    known = train(rows, labels % 2, **{**BOOSTED, "model": in_memory})
    for cuts in ((), (200, 200, 450)):
        found = train(Cut(rows, 3 * (labels % 2), cuts), **BOOSTED)  # classes may be any positions
        accuracy = np.mean(found.predict(test) == 3 * (told % 2))
        assert accuracy > np.mean(known.predict(test) == told % 2) - 0.02


def test_a_regression_stops_early_and_predicts_new_rows(monkeypatch):
    monkeypatch.setattr(out_of_core, "ENOUGH_FOR_STEPS", 100)  # as large tables have them
    rounds = []
    found = train(*curved(1500), model="xgboost", **NUMBERS, report=told_to(rounds))
    rows, target = curved(seed=1)
    assert r2_score(target, found.predict(rows)) > 0.8
    assert rounds[-1] < out_of_core.MAX_ROUNDS


def test_without_xgboost_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cobasis\[trees\]'"):
        train(*curved(), model="xgboost", **NUMBERS)


def boosted(n_classes, monkeypatch):
    """xgboost's own trees as JSON, and the rows that they were trained on: these lie on splits."""
    monkeypatch.setattr(out_of_core, "MAX_ROUNDS", 20)
    rows, target = curved()
    labels = np.digitize(target, {2: [0.1], 3: [-0.5, 0.5]}[n_classes]) if n_classes else target
    split = Split(axes=np.eye(4), n_rows=len(rows), seed=0)
    classes = np.arange(n_classes) if n_classes else None
    return fit_xgboost(Cut(rows, labels, ()), split=split, classes=classes, over=Threads()), rows


def as_xgboost(told, rows):
    booster = xgboost.Booster()
    booster.load_model(bytearray(told))
    given = xgboost.DMatrix(rows.astype(np.float32))
    return booster.predict(given, output_margin=True).reshape(len(rows), -1)


def as_layers(told, rows):
    for layer in xgboost_layers(told):
        rows = layer.apply(rows)
    return rows


def splits_of(told):
    for tree in json.loads(told)["learner"]["gradient_booster"]["model"]["trees"]:
        columns, left = np.array(tree["split_indices"]), np.array(tree["left_children"])
        yield from np.array(tree["split_conditions"])[(columns == 0) & (left >= 0)]


@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_layers_give_what_xgboost_gives_also_of_a_row_on_a_split(n_classes, monkeypatch):
    """xgboost itself adds up in float32, so to 1e-6."""
    told, rows = boosted(n_classes, monkeypatch)
    assert told == boosted(n_classes, monkeypatch)[0]
    assert isinstance(xgboost_layers(told)[-1], Affine)
    splits = [*splits_of(told)]
    on_split = np.tile(rows[0], (len(splits), 1)).astype(np.float32)
    on_split[:, 0] = splits
    below = np.nextafter(on_split, np.float32(-np.inf))
    known = []
    for each in (rows, curved(seed=1)[0], on_split, below):
        known.append(as_xgboost(told, each))
        found = as_layers(told, each.astype(np.float64))
        np.testing.assert_allclose(found, known[-1], rtol=0, atol=1e-6 * np.abs(known[-1]).max())
    assert len(np.unique(np.vstack(known[:2]))) > 50
    moved = (known[2] != known[3]).any(axis=1)
    assert np.mean(moved) > 0.2  # most splits are below others
