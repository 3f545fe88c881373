"""xgboost's trees: as good as scikit-learn's, the same from the same seed, and they travel."""

import json
import sys

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import r2_score

from aligned import digits
from cobasis.errors import MissingExtraError, OptionError
from cobasis.models import boosted_trees
from cobasis.models.boosted_trees import fit_xgboost
from cobasis.models.passes import Threads, WholeRows
from cobasis.models.sources import read_chain
from cobasis.models.trainer import TrainedModel, train
from models.blocks import Cut, principal_axes

CLASSES = {"model": "xgboost", "task": "classification", "seed": 0}
CUTS = {2: [0.1], 3: [-0.5, 0.5], 0: None}


def curved(n_rows=600, seed=0):
    """Rows with a target that no plane gives."""
    rng = np.random.default_rng(seed)
    rows = (rng.exponential(size=(n_rows, 4)) - 0.8) * [4.0, 2.0, 1.0, 0.5]
    return rows, np.sin(rows[:, 0]) + rows[:, 1] * (rows[:, 2] > 0)


def boosted(n_classes, monkeypatch):
    """xgboost's own model, the rows it was trained on, whose values splits are made of."""
    monkeypatch.setattr(boosted_trees, "MAX_ROUNDS", 20)
    rows, target = curved()
    labels = target if n_classes == 0 else np.digitize(target, CUTS[n_classes])
    axes = principal_axes(rows)
    fitted = fit_xgboost(
        WholeRows(rows, labels),
        axes=axes,
        classes=np.arange(n_classes) if n_classes else None,
        seed=0,
        over=Threads(),
    )
    return TrainedModel(axes=axes, estimator=fitted), rows


def test_trees_tell_even_digits_from_odd_as_scikit_learns_do(monkeypatch):
    """Within two points of accuracy, from one block and from several, one of them empty."""
    monkeypatch.setattr(boosted_trees, "MAX_ROUNDS", 60)
    (rows, labels), (test, told) = digits()
    in_memory = HistGradientBoostingClassifier(max_iter=60, min_samples_leaf=10, random_state=0)
    known = train(rows, labels % 2, **{**CLASSES, "model": in_memory})
    for cuts in ((), (400, 400, 900)):
        found = train(Cut(rows, labels % 2, cuts), **CLASSES)
        accuracy = [np.mean(each.predict(test) == told % 2) for each in (found, known)]
        assert accuracy[0] > accuracy[1] - 0.02
        likelihoods = found.scores(test, method="predict_proba")
        np.testing.assert_allclose(likelihoods.sum(axis=1), 1.0, atol=1e-6)


def test_classes_may_be_any_positions(monkeypatch):
    monkeypatch.setattr(boosted_trees, "MAX_ROUNDS", 30)
    rows, target = curved()
    labels = np.digitize(target, [-0.5, 0.5]) * 2 + 1
    found = train(rows, labels, **CLASSES, n_classes=7)
    assert set(found.predict(rows)) == {1, 3, 5}
    assert np.mean(found.predict(rows) == labels) > 0.9


def test_a_regression_stops_early_and_predicts_new_rows():
    rounds = []
    report = lambda step, done, _: rounds.append(done) if "boosting" in step else None  # noqa: E731
    found = train(*curved(1500), model="xgboost", task="regression", seed=0, report=report)
    rows, target = curved(seed=1)
    assert r2_score(target, found.predict(rows)) > 0.8
    assert rounds[-1] < boosted_trees.MAX_ROUNDS


def test_steps_from_rows_kept_apart_are_as_good_as_from_all(monkeypatch):
    """As large tables have them; R2 on new rows within 0.03."""
    monkeypatch.setattr(boosted_trees, "MAX_ROUNDS", 40)
    rows, target = curved(seed=1)
    scores = []
    for enough in (10_000, 200):
        monkeypatch.setattr(boosted_trees, "ENOUGH_FOR_STEPS", enough)
        found = train(*curved(3000), model="xgboost", task="regression", seed=0)
        scores.append(r2_score(target, found.predict(rows)))
    assert scores[1] > scores[0] - 0.03
    assert scores[0] > 0.8


def test_equal_seeds_boost_equal_trees(monkeypatch):
    one, two = (boosted(2, monkeypatch)[0].estimator for _ in range(2))
    np.testing.assert_array_equal(one.raw, two.raw)


def test_a_fitted_model_weighs_its_trees_and_carries_no_row(monkeypatch):
    found, _ = boosted(2, monkeypatch)
    assert found.n_bytes > found.estimator.raw.nbytes > 1000


def test_without_xgboost_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cobasis\[trees\]'"):
        train(*curved(), model="xgboost", task="regression", seed=0)


def test_scikit_learns_trees_of_more_rows_than_one_block_are_refused_with_the_other_name():
    rows, target = curved()
    with pytest.raises(OptionError, match=r"600 rows of 4 columns .* Choose model='xgboost'"):
        train(Cut(rows, target, (300,)), model="boosted_trees", task="regression", seed=0)


@pytest.mark.parametrize("n_classes", CUTS)
def test_a_chain_gives_what_xgboost_gives(n_classes, monkeypatch):
    """xgboost itself adds up in float32, so to 1e-6; rows that were trained on lie on splits."""
    model, known = boosted(n_classes, monkeypatch)
    rows = np.vstack([known, curved(seed=1)[0]])
    task = "classification" if n_classes else "regression"
    read = read_chain(model, task=task, n_classes=n_classes)
    wanted, found = model.predict(rows), read.predict(rows)
    if n_classes:
        np.testing.assert_array_equal(found, wanted)
        wanted = model.scores(rows, method="predict_proba")
        found = read.scores(rows, method="predict_proba")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    assert len(np.unique(wanted)) > 50


def test_a_row_on_a_split_goes_to_the_side_that_xgboost_sends_it(monkeypatch):
    model, rows = boosted(0, monkeypatch)
    turned = TrainedModel(axes=np.eye(4), estimator=model.estimator)
    read = read_chain(turned, task="regression", n_classes=0)
    told = json.loads(bytes(model.estimator.booster.save_raw("json")))
    trees = told["learner"]["gradient_booster"]["model"]["trees"]
    splits = [
        split
        for tree in trees
        for split, column, left in zip(
            tree["split_conditions"], tree["split_indices"], tree["left_children"], strict=True
        )
        if column == 0 and left >= 0
    ]
    on_split = np.tile(rows[0] @ model.axes, (len(splits), 1)).astype(np.float32)
    on_split[:, 0] = splits
    below = np.nextafter(on_split, np.float32(-np.inf))
    wanted = [turned.predict(each.astype(np.float64)) for each in (on_split, below)]
    found = [read.predict(each.astype(np.float64)) for each in (on_split, below)]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    assert np.mean(wanted[0] != wanted[1]) > 0.2  # most splits are below others
