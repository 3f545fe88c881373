"""Logistic regression: scikit-learn's optimum by Newton's steps, of few weights or many."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from cobasis.errors import NotFiniteError
from cobasis.models import logistic
from cobasis.models.logistic import fit_logistic
from cobasis.models.passes import Threads, WholeRows
from cobasis.models.trainer import train
from models.blocks import Counted


def digits(n_rows=500):
    rows, labels = load_digits(return_X_y=True)
    return rows[:n_rows] / 16, labels[:n_rows]


def fitted(rows, labels, *, strength, over=None):
    present = np.unique(labels)
    n_outputs = 1 if len(present) == 2 else len(present)
    return fit_logistic(
        WholeRows(rows, labels),
        present=present,
        strength=strength,
        start=np.zeros((n_outputs, 65)),
        over=over or Threads(),
    )


@pytest.mark.parametrize("most", [2_000, 0], ids=["a table", "conjugate gradients"])
@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_weights_are_those_of_scikit_learns_exact_solver(n_classes, strength, most, monkeypatch):
    monkeypatch.setattr(logistic, "MOST_WEIGHTS", most)
    rows, labels = digits()
    labels = labels % n_classes
    found = fitted(rows, labels, strength=strength)
    exact = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-13, max_iter=200)
    exact.fit(rows, labels)
    size = np.abs(exact.coef_).max()
    np.testing.assert_allclose(found.weights, exact.coef_.T, atol=1e-8 * size)
    spread = found.offset - found.offset.mean()
    wanted = exact.intercept_ - exact.intercept_.mean()
    np.testing.assert_allclose(spread, wanted, atol=1e-7 * size)


def test_rows_that_a_plane_tells_apart_settle_too():
    """The penalty alone bends the loss there; steps are halved until they gain."""
    rows, labels = digits(60)
    over = Counted()
    found = fitted(30 * rows, labels, strength=100.0, over=over)
    logits = 30 * rows @ found.weights + found.offset
    np.testing.assert_array_equal(logits.argmax(axis=1), labels)
    assert len(over.steps) < 60


def test_a_sample_without_some_class_costs_passes_and_not_accuracy(monkeypatch):
    from cobasis.models import trainer  # noqa: PLC0415

    rows, labels = digits(400)
    labels = np.where(np.arange(400) > 395, 10, labels)
    known = train(rows, labels, model="logistic", task="classification", seed=0)
    monkeypatch.setattr(trainer, "SAMPLE_ROWS", 40)
    found = train(rows, labels, model="logistic", task="classification", seed=0)
    assert set(found.predict(rows)) == set(known.predict(rows)) == set(range(11))


def test_what_does_not_settle_is_an_error(monkeypatch):
    monkeypatch.setattr(logistic, "MOST_PASSES", 2)
    with pytest.raises(NotFiniteError, match="did not settle within 2 passes"):
        fitted(*digits(), strength=100.0)
