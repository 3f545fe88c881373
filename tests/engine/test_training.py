"""Out of core, models are those that training in memory gives; whatever is wrong is said first."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from cobasis.engine import training
from cobasis.engine.training import train_partitions
from cobasis.engine.training_linear import fit_ridge
from cobasis.engine.training_passes import TurnedRows, find_frame, here
from cobasis.errors import LabelError, OptionError, PartitionError, RowCarryingError
from cobasis.models.training import principal_axes, train
from engine.partitioned import aligned_rows, digits

CLASSES = {"task": "classification", "seed": 0}


def skewed(n_rows=900, width=6, seed=0):
    """Rows with a mean, distinct variances and third moments far from zero, and two classes."""
    rng = np.random.default_rng(seed)
    rows = (rng.exponential(size=(n_rows, width)) - 0.6) * np.logspace(0.5, -1, width)
    chance = 1 / (1 + np.exp(-3 * (rows[:, 1] - rows[:, 0] / 2 + 0.3)))
    return rows, (rng.random(n_rows) < chance).astype(np.int64)


def silent(*_):
    """Say nothing."""


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """Digits of 1,200 people, on disk and in memory, and 597 to test with."""
    fit, test = digits()
    return aligned_rows(tmp_path_factory.mktemp("digits"), *fit), fit, test


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_principal_axes_are_those_of_all_rows_at_once(tmp_path, dtype):
    rows, labels = skewed()
    aligned = aligned_rows(tmp_path, rows, labels, dtype=dtype)
    frame = find_frame(aligned, here(aligned, silent))
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(frame.axes, principal_axes(rows), atol=tolerance)
    np.testing.assert_allclose(frame.mean, rows.mean(axis=0), atol=tolerance)
    np.testing.assert_allclose(frame.covariance, np.cov(rows.T, bias=True), atol=tolerance)


@pytest.mark.parametrize("model", ["ridge", "logistic"])
def test_linear_models_tell_digits_as_those_in_memory_do(on_disk, model):
    """Within half a point of accuracy."""
    aligned, fit, (rows, labels) = on_disk
    found = train_partitions(aligned, model=model, **CLASSES).predict(rows)
    known = train(*fit, model=model, **CLASSES).predict(rows)
    assert np.mean(found == labels) >= np.mean(known == labels) - 0.005
    assert np.mean(found == known) > 0.99


def test_random_features_and_ridge_tell_digits_as_in_memory(tmp_path):
    """Within one point of accuracy, from 400 rows."""
    (rows, labels), (test, told) = digits()
    aligned = aligned_rows(tmp_path, rows[:400], labels[:400])
    found = train_partitions(aligned, model="rff", **CLASSES)
    known = train(rows[:400], labels[:400], model="rff", **CLASSES)
    accuracy = [np.mean(each.predict(test) == told) for each in (found, known)]
    assert accuracy[0] > accuracy[1] - 0.01
    assert accuracy[1] > 0.9


def test_logistic_regression_reaches_the_same_optimum(tmp_path):
    """scikit-learn's, with its tolerance turned down; likelihoods to five digits."""
    rows, labels = skewed()
    aligned = aligned_rows(tmp_path, rows, labels)
    found = train_partitions(aligned, model="logistic", **CLASSES)
    exact = LogisticRegression(C=found.estimator.C, tol=1e-10, max_iter=10_000).fit(rows, labels)
    np.testing.assert_allclose(
        found.scores(rows, method="predict_proba"), exact.predict_proba(rows), atol=1e-5
    )


@pytest.mark.parametrize("sample", [10, 100])
def test_a_sample_that_is_too_small_costs_passes_and_not_accuracy(tmp_path, monkeypatch, sample):
    rows, labels = skewed()
    labels = labels + 2 * (rows[:, 2] > 1.5)
    labels[-3:] = 7
    aligned = aligned_rows(tmp_path, rows, labels)
    monkeypatch.setattr(training, "SAMPLE_ROWS", sample)
    found = train_partitions(aligned, model="logistic", **CLASSES)
    exact = LogisticRegression(C=found.estimator.C, tol=1e-10, max_iter=10_000).fit(rows, labels)
    np.testing.assert_array_equal(found.estimator.classes_, np.unique(labels))
    np.testing.assert_allclose(
        found.scores(rows, method="predict_proba"), exact.predict_proba(rows), atol=5e-3
    )


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_ridge_is_exact(tmp_path, task):
    from sklearn.linear_model import Ridge, RidgeClassifier  # noqa: PLC0415

    rows, labels = skewed()
    target = labels if task == "classification" else rows @ np.arange(6.0) + labels
    aligned = aligned_rows(tmp_path, rows, target)
    found = train_partitions(aligned, model="ridge", task=task, seed=0)
    kind = RidgeClassifier if task == "classification" else Ridge
    exact = kind(alpha=found.estimator.alpha).fit(rows @ found.axes, target)
    np.testing.assert_allclose(found.estimator.coef_, exact.coef_, atol=1e-10)
    np.testing.assert_allclose(found.estimator.intercept_, exact.intercept_, atol=1e-10)
    np.testing.assert_array_equal(found.predict(rows) > 0.5, exact.predict(rows @ found.axes) > 0.5)


def test_ridge_takes_a_large_penalty_for_noise_and_a_small_one_for_a_line(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 6))
    penalties = []
    for place, target in enumerate((rng.normal(size=200), rows @ np.ones(6))):
        aligned = aligned_rows(tmp_path / str(place), rows, target)
        turned = TurnedRows(aligned=aligned, axes=np.eye(6))
        fitted = fit_ridge(turned, task="regression", over=here(aligned, silent))
        penalties.append(fitted.alpha)
    assert penalties[0] > 10
    assert penalties[1] < 0.01


def test_a_regression_on_diabetes_is_as_good_as_in_memory(tmp_path):
    rows, target = load_diabetes(return_X_y=True)
    aligned = aligned_rows(tmp_path, rows, target)
    options = {"model": "ridge", "task": "regression", "seed": 0}
    found, known = train_partitions(aligned, **options), train(rows, target, **options)
    assert r2_score(target, found.predict(rows)) > r2_score(target, known.predict(rows)) - 0.01


def test_a_perceptron_tells_digits_as_the_one_in_memory_does(on_disk):
    """With fixed settings on both sides; within one point."""
    aligned, fit, (rows, labels) = on_disk
    mine = MLPClassifier((64,), learning_rate_init=2e-3, max_iter=60, random_state=0)
    found = train_partitions(aligned, model=mine, **CLASSES, max_passes=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = train(*fit, model=mine, **CLASSES)
    accuracy = [np.mean(each.predict(rows) == labels) for each in (found, known)]
    assert accuracy[0] > accuracy[1] - 0.01
    assert not hasattr(mine, "coefs_")


def test_the_family_of_perceptrons_is_tuned_and_stops_early(tmp_path):
    aligned = aligned_rows(tmp_path, *skewed(400))
    rounds = []
    found = train_partitions(
        aligned,
        model="mlp",
        **CLASSES,
        report=lambda step, done, total: rounds.append((done, total)) if "train" in step else None,
    )
    rows, labels = skewed(2000, seed=1)
    known = train(*skewed(400), model="mlp", **CLASSES)
    assert np.mean(found.predict(rows) == labels) > np.mean(known.predict(rows) == labels) - 0.02
    assert found.estimator.get_params()["hidden_layer_sizes"] == (256,)
    assert rounds[-1][0] < rounds[-1][1] == 300


@pytest.mark.parametrize("model", [SGDClassifier(loss="log_loss", random_state=0), "logistic"])
def test_equal_seeds_train_equal_models(tmp_path, model):
    aligned = aligned_rows(tmp_path, *skewed())
    rows, _ = skewed(seed=1)
    one, two = (train_partitions(aligned, model=model, **CLASSES) for _ in range(2))
    np.testing.assert_array_equal(
        one.scores(rows, method="predict_proba"), two.scores(rows, method="predict_proba")
    )


def test_whatever_has_partial_fit_can_be_trained(tmp_path):
    rows, _ = skewed()
    target = rows @ np.arange(6.0)
    aligned = aligned_rows(tmp_path, rows, target)
    found = train_partitions(aligned, model=SGDRegressor(), task="regression", seed=0)
    assert np.corrcoef(found.predict(rows), target)[0, 1] > 0.99


@pytest.mark.parametrize("model", ["svm", KNeighborsClassifier()])
def test_a_model_that_carries_rows_is_refused_before_anything_is_read(tmp_path, model):
    aligned = aligned_rows(tmp_path, *skewed())
    for part in aligned.partitions:
        (aligned.path / part.name).unlink()
    with pytest.raises(RowCarryingError, match="stores training rows"):
        train_partitions(aligned, model=model, **CLASSES)


@pytest.mark.parametrize(
    ("labels", "task", "said"),
    [
        (None, "classification", "holds no labels"),
        (np.linspace(0, 1, 90), "classification", "holds float64 labels"),
        (np.zeros(90, dtype=np.int64), "classification", "all 90 rows of all 4 parties are of one"),
        (np.arange(90) % 2, "representation", "task='representation'"),
    ],
)
def test_labels_that_are_not_the_tasks_are_refused(tmp_path, labels, task, said):
    aligned = aligned_rows(tmp_path, skewed(90)[0], labels)
    with pytest.raises(LabelError, match=said):
        train_partitions(aligned, model="ridge", task=task, seed=0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "forest"}, "'forest' is no family"),
        ({"model": LogisticRegression()}, "LogisticRegression has no partial_fit"),
        ({"model": "mlp", "max_passes": 0}, "max_passes=0 trains nothing"),
    ],
)
def test_what_cannot_be_trained_is_an_option_error(tmp_path, options, said):
    aligned = aligned_rows(tmp_path, *skewed(90))
    with pytest.raises(OptionError, match=said):
        train_partitions(aligned, **options, **CLASSES)


def test_a_partition_that_changed_during_training_ends_it(tmp_path):
    aligned = aligned_rows(tmp_path, *skewed())
    file = aligned.path / aligned.partitions[2].name

    def change(step, done, total):
        if step == "principal axes" and done == total:
            data = bytearray(file.read_bytes())
            data[-1] ^= 1
            file.write_bytes(data)

    with pytest.raises(PartitionError, match=r"part-00002.* is not what was written"):
        train_partitions(aligned, model="ridge", **CLASSES, report=change)


def test_every_pass_reports_its_partitions(tmp_path):
    aligned = aligned_rows(tmp_path, *skewed(90))
    told = []
    train_partitions(aligned, model="ridge", **CLASSES, report=lambda *each: told.append(each))
    steps = ("moments", "principal axes", "ridge")
    assert told == [(step, done, 3) for step in steps for done in (1, 2, 3)]
