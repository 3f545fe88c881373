"""The networks and machines of the experiments are scikit-learn's, only sooner."""

import numpy as np
import pytest
from experiments.harness import models
from experiments.harness.models import FastMLPClassifier, FastMLPRegressor, svm
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.svm import SVC

PAIRS = {"classes": (MLPClassifier, FastMLPClassifier), "numbers": (MLPRegressor, FastMLPRegressor)}
OPTIONS = {"hidden_layer_sizes": (24,), "batch_size": 32, "max_iter": 8, "random_state": 3}


def table(kind, *, classes, dtype):
    rng = np.random.default_rng(5)
    rows = rng.random((300, 7)).astype(dtype)
    scores = rows @ rng.normal(size=(7, classes)) + rng.normal(size=(300, classes)) / 4
    return rows, scores.argmax(axis=1) if kind == "classes" else scores[:, 0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "classes", "dtype", "early_stopping"),
    [
        ("classes", 2, np.float64, True),
        ("classes", 5, np.float64, False),
        ("classes", 2, np.float32, False),
        ("classes", 5, np.float32, True),
        ("numbers", 1, np.float64, True),
    ],
)
def test_weights_are_the_same_bits(kind, classes, dtype, early_stopping):
    rows, labels = table(kind, classes=classes, dtype=dtype)
    plain, fast = (
        make(**OPTIONS, early_stopping=early_stopping).fit(rows, labels) for make in PAIRS[kind]
    )
    assert fast.n_iter_ == plain.n_iter_
    for ours, theirs in zip(
        fast.coefs_ + fast.intercepts_, plain.coefs_ + plain.intercepts_, strict=True
    ):
        assert ours.dtype == theirs.dtype == dtype
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(fast.predict(rows), plain.predict(rows))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", PAIRS)
def test_every_batch_takes_the_compiled_steps_and_no_loss(monkeypatch, kind):
    called = []

    def counted(name, compiled):
        return lambda *arrays: (called.append(name), compiled(*arrays))[1]

    for name in ("_adam", "_decayed", "_rows"):
        monkeypatch.setattr(models, name, counted(name, getattr(models, name)))
    rows, labels = table(kind, classes=3, dtype=np.float64)
    fast = PAIRS[kind][1](**OPTIONS, early_stopping=True).fit(rows, labels)
    batches = fast.n_iter_ * 9  # 270 rows for training
    counts = {name: called.count(name) for name in called}
    assert counts == {"_rows": batches, "_decayed": 2 * batches, "_adam": 4 * batches}
    assert max(fast.loss_curve_) < 1e-3  # nothing but the weight decay's term


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_early_stopping_the_loss_decides_and_is_scikit_learns():
    rows, labels = table("classes", classes=3, dtype=np.float64)
    options = {**OPTIONS, "max_iter": 200, "tol": 1e-2, "n_iter_no_change": 3}
    plain, fast = (make(**options).fit(rows, labels) for make in PAIRS["classes"])
    assert fast.loss_curve_ == plain.loss_curve_
    assert fast.n_iter_ == plain.n_iter_ < 200


def test_the_fast_machine_predicts_what_scikit_learn_does():
    """Of ten classes and of two, also where test rows are far from all support vectors."""
    rng = np.random.default_rng(0)
    for load in (load_digits, load_breast_cancer):
        data = load()
        rows = data.data / data.data.max(axis=0).clip(1)
        train, test = np.array_split(rng.permutation(len(rows)), 2)
        labels = np.array([f"class {label}" for label in data.target])
        ours = svm(0).fit(rows[train], labels[train])
        theirs = SVC(C=1.0, kernel="rbf", gamma="scale").fit(rows[train], labels[train])
        for seen in (rows[test], rng.normal(size=(500, rows.shape[1])), 10 + rows[test]):
            assert np.array_equal(ours.predict(seen), theirs.predict(seen))
