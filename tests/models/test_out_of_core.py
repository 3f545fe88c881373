"""Mini-batches and xgboost: who judges, and how good they are."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score

from aligned import digits, rows_and_labels
from cobasis.errors import MissingExtraError, OptionError
from cobasis.models import FAMILIES, out_of_core
from cobasis.models.chain import Affine
from cobasis.models.out_of_core import fit_xgboost
from cobasis.models.passes import Job, Pass
from cobasis.models.sources import xgboost_layers
from cobasis.models.trainer import train
from models.chains import Cut

CLASSES = {"task": "classification", "seed": 0}
BOOSTED = {**CLASSES, "model": "xgboost"}
NUMBERS = {"task": "regression", "seed": 0}


def thirds(rows, labels):
    return Cut(rows, labels, (len(rows) // 3, 2 * len(rows) // 3))


def told_to(rounds):
    return lambda step, done, _: rounds.append(done) if "rounds" in step else None


@pytest.mark.parametrize(
    ("n_rows", "task"), [(400, "classification"), (150, "classification"), (400, "regression")]
)
def test_a_perceptron_of_many_blocks_is_tuned_and_stops_early(n_rows, task, monkeypatch):
    """Of 150 rows none is kept apart to judge by, and their own loss falls on and on."""
    monkeypatch.setattr(out_of_core, "ROUND_ROWS", 250)  # of 400 rows a pass is three rounds
    monkeypatch.setattr(out_of_core, "MAX_PASSES", 100)
    rows = np.random.default_rng(0).normal(size=(2400, 5))
    labels = rows[:, 0] + np.random.default_rng(1).normal(size=2400)
    labels = (labels > 0).astype(int) if task == "classification" else rows[:, 0]
    grid = {"alpha": [1e-4, 1.0], "tol": [1e-2]}  # the second for the search to end soon
    monkeypatch.setitem(FAMILIES, "mlp", replace(FAMILIES["mlp"], grid=grid))
    rounds, how = [], {"model": "mlp", "task": task, "seed": 0}
    found = train(thirds(rows[:n_rows], labels[:n_rows]), **how, report=told_to(rounds))
    predicted, truth = found.predict(rows[400:]), labels[400:]
    if task == "classification":
        assert np.mean(predicted == truth) > np.mean((rows[400:, 0] > 0) == truth) - 0.05
    else:
        assert r2_score(truth, predicted) > 0.9
    assert (rounds[-1] < out_of_core.MAX_PASSES) == (n_rows > 200)


def test_what_holds_all_rows_is_refused():
    cut = thirds(*rows_and_labels())
    for model, told in (
        (LogisticRegression(), "LogisticRegression holds all rows"),
        ("boosted_trees", r"600 rows of 5 columns .*'xgboost'"),
    ):
        with pytest.raises(OptionError, match=told):
            train(cut, model=model, **CLASSES)


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
    told = dict.fromkeys(Job.__dataclass_fields__) | {"axes": np.eye(4), "seed": 0, "over": Pass()}
    told |= {"task": n_classes and "classification", "present": np.arange(n_classes)}
    return fit_xgboost(Job(**told | {"rows": Cut(rows, labels, ())})), rows


@pytest.mark.parametrize("n_classes", [2, 3, 0])
def test_layers_give_what_xgboost_gives_also_of_a_row_on_a_split(n_classes, monkeypatch):
    """xgboost itself adds up in float32, so to 1e-6."""
    told, rows = boosted(n_classes, monkeypatch)
    assert told == boosted(n_classes, monkeypatch)[0]
    assert isinstance(xgboost_layers(told)[-1], Affine)
    splits, booster = [], xgboost.Booster()
    booster.load_model(bytearray(told))
    for tree in json.loads(told)["learner"]["gradient_booster"]["model"]["trees"]:
        columns, left = np.array(tree["split_indices"]), np.array(tree["left_children"])
        splits += [*np.array(tree["split_conditions"])[(columns == 0) & (left >= 0)]]
    on_split = np.tile(rows[0], (len(splits), 1)).astype(np.float32)
    on_split[:, 0] = splits
    below = np.nextafter(on_split, np.float32(-np.inf))
    known = []
    for each in (rows, curved(seed=1)[0], on_split, below):
        given, found = xgboost.DMatrix(each.astype(np.float32)), each.astype(np.float64)
        known.append(booster.predict(given, output_margin=True).reshape(len(each), -1))
        for layer in xgboost_layers(told):
            found = layer.apply(found)
        np.testing.assert_allclose(found, known[-1], rtol=0, atol=1e-6 * np.abs(known[-1]).max())
    assert len(np.unique(np.vstack(known[:2]))) > 50
    moved = (known[2] != known[3]).any(axis=1)
    assert np.mean(moved) > 0.2  # most splits are below others
