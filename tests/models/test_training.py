"""Training: by a table of families, tuned, in a frame that follows the rows, the same each time."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from aligned import rotation
from cobasis.errors import LabelError, NotFiniteError, OptionError, RowCarryingError, StepError
from cobasis.models import FAMILIES, TABULAR
from cobasis.models.trainer import refuse_model, train
from cobasis.models.tuning import tuned
from models.chains import quicken

CLASSES = {"task": "classification", "seed": 0}
TASKS = ("classification", "regression")


def skewed(seed=0, n_rows=150):
    """Rows with distinct variances and third moments far from zero, and two classes."""
    rng = np.random.default_rng(seed)
    rows = (rng.exponential(size=(n_rows, 4)) - 0.8) * [4.0, 2.0, 1.0, 0.5]
    labels = ((rows[:, 1] > 0.5) ^ (rows[:, 2] > 0.1)).astype(int)
    return rows, labels


def predictions(turn, *, aligned):
    rows, labels = skewed()
    trees = HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5, random_state=0)
    trained = train(rows @ turn, labels, model=trees, **CLASSES, aligned=aligned)
    return trained.scores(skewed(1)[0] @ turn, method="predict_proba")


def test_trees_see_the_same_rows_in_whatever_frame_they_were_aligned_by_principal_axes():
    for seed, mirror in product((0, 1), (1.0, -1.0)):
        found = predictions(rotation(4, seed) @ np.diag([1.0, mirror, 1.0, 1.0]), aligned=True)
        np.testing.assert_allclose(found, predictions(np.eye(4), aligned=True), atol=1e-9)
    expected = predictions(np.eye(4), aligned=False)
    assert np.abs(predictions(rotation(4, 0), aligned=False) - expected).max() > 0.05


def strength_of(rows, labels):
    """The C that was chosen, from the fitted weights: at the optimum they are C times the slope."""
    fitted = train(rows, labels, model="logistic", tempered=False, **CLASSES)
    weights = fitted.layers[0].weights[:, 1] - fitted.layers[0].weights[:, 0]
    slope = rows.T @ (labels - fitted.scores(rows, method="predict_proba")[:, 1])
    return float(weights @ weights / (weights @ slope))


def test_the_grid_is_searched_and_its_best_value_kept_but_of_fewer_than_ten_rows():
    """Pure noise is best left alone, a clean cut is not."""
    rng = np.random.default_rng(0)
    noise, labels = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    assert strength_of(noise, labels) <= 0.1001
    rows = rng.normal(size=(60, 4))
    assert strength_of(rows, (rows[:, 0] > 0).astype(int)) >= 9.999
    rows, labels = skewed(n_rows=9)
    labels[0], labels[1] = 0, 1
    assert strength_of(rows, labels) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("model", ["ridge", "rff", "logistic", "mlp", "boosted_trees", "xgboost"])
def test_a_temperature_changes_no_prediction_and_betters_likelihoods_of_new_rows(
    model, monkeypatch
):
    """Of each family; separable rows leave it finite, and a class without rows at zero."""
    rng, present = np.random.default_rng(0), [0, 2, 3]
    rows = rng.normal(size=(700, 4))
    labels = np.array(present)[np.digitize(rows[:, 0] + rng.normal(size=700), [-0.5, 0.5])]
    told = {"model": model, "n_classes": 5, **CLASSES}
    quicken(model, monkeypatch)
    plain, fitted = (
        train(rows[:200], labels[:200], tempered=tempered, **told) for tempered in (False, True)
    )
    new, truth = rows[200:], labels[200:]
    np.testing.assert_array_equal(fitted.predict(new), plain.predict(new))
    assert {*fitted.predict(new)} <= {*present}
    likely = fitted.scores(new, method="predict_proba")
    assert not likely[:, [1, 4]].any()
    before = plain.scores(new, method=plain.method)[:, present]
    if plain.method != "predict_proba":
        before = softmax(before, axis=1)
    losses = [log_loss(truth, each, labels=present) for each in (likely[:, present], before)]
    assert losses[0] < losses[1]
    if model in {"ridge", "rff", "logistic"}:
        apart = train(rows[:200], np.where(rows[:200, 0] > 0, 3, 1), **told)
        assert np.abs(apart.layers[-1].weights).max() < 1e3
        assert {*apart.predict(new)} == {1, 3}
        assert not apart.scores(new, method="predict_proba")[:, [0, 2, 4]].any()
        absent = plain.scores(new, method=plain.method)[:, [1, 4]]
        np.testing.assert_array_equal(absent, 0.0 if plain.likely else -1.0)


@pytest.mark.parametrize("labels", [np.arange(60) < 1, np.arange(60) < 5, np.arange(10)])
def test_a_rare_class_does_not_stop_the_search(labels):
    """Folds are stratified where each can hold every class; else one may hold only its own."""
    rows, _ = skewed(n_rows=len(labels))
    trained = train(rows, labels.astype(int), model="logistic", **CLASSES)
    assert trained.scores(rows, method="predict_proba").min() > 0


@pytest.mark.parametrize(("n_classes", "stops"), [(2, True), (25, False)])
def test_rows_are_held_back_only_where_every_class_has_some(n_classes, stops, monkeypatch):
    """Early stopping splits by class, which 25 classes do not allow; nor 199 rows in a fold."""
    few = replace(FAMILIES["boosted_trees"], grid={"learning_rate": [0.1], "max_iter": [3]})
    monkeypatch.setitem(FAMILIES, "boosted_trees", few)
    for n_rows, enough in ((250, True), (249, False)):
        rows, labels = skewed(n_rows=n_rows)[0], np.arange(n_rows) % n_classes
        fitted = tuned("boosted_trees", (rows, labels), **CLASSES)
        assert fitted.get_params()["early_stopping"] is (stops and enough)


def test_a_users_estimator_is_cloned_and_keeps_its_own_settings():
    rows, labels = skewed()
    mine = LogisticRegression(C=0.5)
    trained = train(rows, labels, model=mine, **CLASSES)
    assert trained.estimator.get_params()["C"] == 0.5
    assert trained.n_bytes >= 4 * 4 * 8 + trained.estimator.coef_.nbytes
    assert not hasattr(mine, "coef_")


@pytest.mark.parametrize(
    ("labels", "task", "error", "said"),
    [
        (np.array(["a", "b"] * 15), "classification", LabelError, "np.unique"),
        (np.ones(30, dtype=int), "classification", LabelError, "all 30 rows are of one class"),
        (np.arange(30) % 3, "classification", LabelError, "no positions in 2 classes"),
        (np.array(["a", "b"] * 15), "regression", LabelError, "no numbers"),
        (np.full(30, np.nan), "regression", NotFiniteError, "labels are not all finite"),
        (np.arange(30), "representation", OptionError, "no family for representation"),
        (np.arange(29), "regression", LabelError, "differ in number: 30 and 29"),
    ],
)
def test_labels_that_are_not_the_tasks_are_refused(labels, task, error, said):
    rows, fine = skewed(n_rows=30)
    n_classes = 2 if task == "classification" else None
    with pytest.raises(error, match=said):
        train(rows, labels, model="ridge", task=task, n_classes=n_classes, seed=0)
    with pytest.raises(StepError, match="no rows"):
        train(rows[:0], fine[:0], model="ridge", **CLASSES)
    rows[3, 1] = np.inf
    with pytest.raises(NotFiniteError, match="the rows are not all finite"):
        train(rows, fine, model="ridge", **CLASSES)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("task", TASKS)
def test_a_table_a_family_of_another_task_and_one_that_carries_rows_are_refused(name, task):
    error, told = OptionError, rf"'{name}' is (a regression table|no family for {task})"
    if name == "svm":
        error, told = RowCarryingError, "stores training rows"
    elif name not in TABULAR and task in FAMILIES[name].tasks:
        refuse_model(name, task)
        return
    with pytest.raises(error, match=told):
        refuse_model(name, task)


@pytest.mark.parametrize("model", ["ridge", "rff", "mlp", "boosted_trees", "xgboost"])
@pytest.mark.parametrize(("centre", "unit"), [(120, 15), (0, 1e-6), (2e9, 3e4)])
def test_a_numbers_unit_changes_no_prediction(model, centre, unit, monkeypatch):
    quicken(model, monkeypatch)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 3))
    labels = np.sin(rows[:, 0]) + rows[:, 1]
    plain, other = (
        train(rows, each, model=model, task="regression", seed=0).predict(rows)
        for each in (labels, centre + unit * labels)
    )
    np.testing.assert_allclose((other - centre) / unit, plain, atol=0.02)
    assert np.corrcoef(plain, labels)[0, 1] > 0.7


def test_labels_of_a_shuffled_frame_stay_with_their_rows():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    frame = pd.DataFrame(rows).assign(y=(rows[:, 0] > 0) * 1).sample(frac=1, random_state=1)
    told = {"model": "ridge", "task": "classification", "seed": 0}
    found = train(frame[[0, 1, 2]], frame["y"], **told).outputs(rows)
    right = train(frame[[0, 1, 2]].to_numpy(), frame["y"].to_numpy(), **told).outputs(rows)
    np.testing.assert_array_equal(found, right)
