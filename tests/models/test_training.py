"""Training: tuned, in a frame that follows the rows, and the same again from the same seed."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from cobasis.errors import LabelError, NotFiniteError, OptionError, StepError
from cobasis.models import families
from cobasis.models.families import FAMILIES
from cobasis.models.trainer import train
from models.blocks import principal_axes

SIZES = np.array([4.0, 2.0, 1.0, 0.5])


def skewed(seed=0, n_rows=150):
    """Rows with distinct variances and third moments far from zero, and two classes."""
    rng = np.random.default_rng(seed)
    rows = (rng.exponential(size=(n_rows, 4)) - 0.8) * SIZES
    labels = ((rows[:, 1] > 0.5) ^ (rows[:, 2] > 0.1)).astype(int)
    return rows, labels


def rotation(seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(4, 4)))[0]


def quick_trees():
    return HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5, random_state=0)


def predictions(turn, *, aligned):
    """Of trees trained in the frame `turn`, for new rows in the same frame."""
    rows, labels = skewed()
    options = {"model": quick_trees(), "task": "classification", "seed": 0, "aligned": aligned}
    trained = train(rows @ turn, labels, **options)
    return trained.scores(skewed(1)[0] @ turn, method="predict_proba")


FRAMES = {
    "a rotation": rotation(0),
    "another rotation": rotation(1),
    "a reflection": rotation(1) @ np.diag([1.0, -1.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_trees_see_the_same_rows_in_whatever_frame_they_were_aligned(frame):
    expected = predictions(np.eye(4), aligned=True)
    np.testing.assert_allclose(predictions(FRAMES[frame], aligned=True), expected, atol=1e-9)


def test_without_principal_axes_trees_depend_on_the_arbitrary_frame():
    """The positive control of the test above."""
    expected = predictions(np.eye(4), aligned=False)
    assert np.abs(predictions(rotation(0), aligned=False) - expected).max() > 0.05


@pytest.mark.parametrize("seed", range(3))
def test_axes_are_orthogonal_strongest_first_and_skewed_to_the_right(seed):
    rows, _ = skewed(seed)
    turned = rows @ rotation(seed)
    axes = principal_axes(turned)
    scores = turned @ axes
    np.testing.assert_allclose(axes.T @ axes, np.eye(4), atol=1e-12)
    moments = scores.T @ scores
    np.testing.assert_allclose(moments, np.diag(np.diag(moments)), atol=1e-9)
    assert np.all(np.diff(np.diag(moments)) < 0)
    assert np.all((scores**3).sum(axis=0) > 0)


def test_equal_seeds_train_equal_models():
    one, two = (train(*skewed(), model="rff", task="classification", seed=5) for _ in range(2))
    np.testing.assert_array_equal(one.layers[-1].weights, two.layers[-1].weights)


def strength_of(rows, labels):
    """The C that was chosen, from the fitted weights: at the optimum they are C times the slope."""
    fitted = train(rows, labels, model="logistic", task="classification", seed=0)
    weights = fitted.layers[0].weights[:, 1] - fitted.layers[0].weights[:, 0]
    slope = rows.T @ (labels - fitted.scores(rows, method="predict_proba")[:, 1])
    return float(weights @ weights / (weights @ slope))


def test_the_grid_is_searched_and_its_best_value_kept():
    """Pure noise is best left alone, a clean cut is not."""
    rng = np.random.default_rng(0)
    noise, labels = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    assert strength_of(noise, labels) <= 0.1001
    rows = rng.normal(size=(60, 4))
    assert strength_of(rows, (rows[:, 0] > 0).astype(int)) >= 9.999


def test_fewer_than_ten_rows_are_fitted_without_a_search():
    rows, labels = skewed(n_rows=9)
    labels[0], labels[1] = 0, 1
    assert strength_of(rows, labels) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("n_rare", [1, 4, 5])
def test_a_rare_class_does_not_stop_the_search(n_rare):
    """Folds are stratified where each can hold every class, and shuffled where not."""
    rows, _ = skewed(n_rows=60)
    labels = np.zeros(60, dtype=int)
    labels[:n_rare] = 1
    trained = train(rows, labels, model="logistic", task="classification", seed=0)
    assert trained.scores(rows, method="predict_proba").min() > 0


def test_folds_that_hold_only_classes_of_their_own_judge_nothing():
    rows, _ = skewed(n_rows=10)
    trained = train(rows, np.arange(10), model="logistic", task="classification", seed=0)
    assert trained.scores(rows, method="predict_proba").shape == (10, 10)


@pytest.mark.parametrize(("n_classes", "stops"), [(2, True), (3, False), (40, False)])
def test_rows_are_held_back_only_where_every_class_has_some(n_classes, stops, monkeypatch):
    """Early stopping splits by class, which neither one row nor 40 classes allow."""
    few = {"learning_rate": [0.1], "max_iter": [3]}
    trees = replace(FAMILIES["boosted_trees"], grid=few)
    monkeypatch.setitem(FAMILIES, "boosted_trees", trees)
    rows, labels = skewed(n_rows=260)
    labels[0] = n_classes - 1
    if n_classes == 40:
        labels = np.arange(260) % 40
    block = rows, labels
    fitted = families.tuned("boosted_trees", block, task="classification", seed=0)
    assert fitted.get_params()["early_stopping"] is stops


def test_convergence_is_not_reported_but_other_warnings_are():
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415

    rows, labels = skewed(n_rows=30)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(rows, labels, model="logistic", task="classification", seed=0)
    assert not [each for each in caught if issubclass(each.category, ConvergenceWarning)]


def test_a_users_estimator_is_cloned_and_keeps_its_own_settings():
    rows, labels = skewed()
    mine = LogisticRegression(C=0.5)
    trained = train(rows, labels, model=mine, task="classification", seed=0)
    assert trained.estimator is not mine
    assert trained.estimator.get_params()["C"] == 0.5
    assert trained.n_bytes >= 4 * 4 * 8 + trained.estimator.coef_.nbytes
    assert not hasattr(mine, "coef_")


def test_random_features_are_within_two_points_of_the_support_vector_machine():
    """They stand in for it, so that no row has to travel."""
    X, y = load_digits(return_X_y=True)
    fit, test, fitted, tested = train_test_split(
        X / 16, y, train_size=700, random_state=0, stratify=y
    )
    options = {"task": "classification", "seed": 0, "allow_row_carrying": True}
    accuracy = {
        model: np.mean(train(fit, fitted, model=model, **options).predict(test) == tested)
        for model in ("rff", "svm")
    }
    assert accuracy["svm"] > 0.95
    assert accuracy["rff"] > accuracy["svm"] - 0.02


def test_one_class_alone_is_refused():
    rows, _ = skewed(n_rows=30)
    with pytest.raises(LabelError, match="all 30 rows are of one class"):
        train(rows, np.ones(30, dtype=int), model="logistic", task="classification", seed=0)


@pytest.mark.parametrize(
    ("labels", "task", "error", "said"),
    [
        (np.array(["a", "b"] * 15), "classification", LabelError, "np.unique"),
        (np.arange(30) % 2 - 1, "classification", LabelError, "no positions"),
        (np.arange(30) % 3, "classification", LabelError, "no positions in 2 classes"),
        (np.arange(30) % 2 + 0.5, "classification", LabelError, "needs integers"),
        (np.array(["a", "b"] * 15), "regression", LabelError, "no numbers"),
        (np.full(30, np.nan), "regression", NotFiniteError, "labels are not all finite"),
        (np.arange(30), "representation", OptionError, "no family for representation"),
        (np.arange(29), "regression", LabelError, "30 rows and 29 labels"),
    ],
)
def test_labels_that_are_not_the_tasks_are_refused(labels, task, error, said):
    rows, _ = skewed(n_rows=30)
    n_classes = 2 if task == "classification" else None
    with pytest.raises(error, match=said):
        train(rows, labels, model="ridge", task=task, n_classes=n_classes, seed=0)


def test_rows_that_are_not_finite_and_no_rows_at_all_are_refused():
    rows, labels = skewed(n_rows=30)
    with pytest.raises(StepError, match="no rows"):
        train(rows[:0], labels[:0], model="ridge", task="classification", seed=0)
    rows[3, 1] = np.inf
    with pytest.raises(NotFiniteError):
        train(rows, labels, model="ridge", task="classification", seed=0)
