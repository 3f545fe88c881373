"""Linear families are scikit-learn's, exactly, from sums, however rows are cut into blocks."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifierCV, RidgeCV

from cobasis.errors import NotFiniteError
from cobasis.models import linear, passes
from cobasis.models.linear import PENALTIES, Design, fit_logistic, fit_ridge
from cobasis.models.passes import Pass, WholeRows
from cobasis.models.trainer import train
from models.chains import Counted, Cut, principal_axes

CLASSES = {"task": "classification", "seed": 0}


def digits(n_rows=300):
    rows, labels = load_digits(return_X_y=True)
    return rows[:n_rows] / 16, labels[:n_rows]


def thirds(rows, labels):
    third = len(rows) // 3
    return Cut(rows, labels, (0, 0, third, third, 2 * third))


@pytest.mark.parametrize("n_rows", [1797, 65, 12])
@pytest.mark.parametrize("target", ["ten classes", "two classes", "a number"])
def test_ridge_is_scikit_learns_with_the_penalty_that_leaving_rows_out_chooses(n_rows, target):
    """More rows than columns, and fewer, which one block fits by the products of rows."""
    rows, labels = digits(n_rows)
    labels = {"ten classes": labels, "two classes": labels % 2, "a number": np.sqrt(labels)}[target]
    n_classes = {"ten classes": 10, "two classes": 2, "a number": 0}[target]
    present = np.unique(labels) if n_classes else np.arange(0)
    design = Design(width=64, waves=None, n_classes=n_classes, present=present)
    kind = RidgeClassifierCV if n_classes else RidgeCV
    penalty = kind(alphas=PENALTIES).fit(rows, labels).alpha_
    exact = Ridge(alpha=penalty, solver="svd").fit(rows, design.targets(labels))
    size = np.abs(exact.coef_).max()
    for source in (WholeRows(rows, labels), thirds(rows, labels))[: 2 if n_rows > 64 else 1]:
        fitted, chosen, held = fit_ridge(source, design=design, over=Pass())
        assert chosen == penalty
        np.testing.assert_allclose(fitted.weights, exact.coef_.T.reshape(64, -1), atol=1e-12 * size)
        np.testing.assert_allclose(fitted.offset, np.ravel(exact.intercept_), atol=1e-11)
        if n_classes == 10:
            found, told = (np.concatenate(each) for each in zip(*held, strict=True))
            np.testing.assert_array_equal(told, labels)
            for left in (0, n_rows // 3, n_rows - 1):
                others = np.arange(n_rows) != left
                again = Ridge(alpha=penalty).fit(rows[others], design.targets(labels[others]))
                np.testing.assert_allclose(found[left], again.predict(rows[[left]])[0], atol=1e-9)


def test_random_features_are_those_that_scikit_learn_draws_and_ridge_is_fitted_to_them():
    (rows, labels), over = digits(), Counted()
    axes = principal_axes(rows)
    drawn = RBFSampler(gamma="scale", n_components=1000, random_state=0).fit(rows @ axes)
    first, function, last = train(
        thirds(rows, labels), model="rff", tempered=False, **CLASSES, over=over
    ).layers
    np.testing.assert_allclose(first.weights, axes @ drawn.random_weights_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(first.offset, drawn.random_offset_)
    assert (function, len(over.steps) <= 4) == ("Cos", True)
    known = RidgeClassifierCV(alphas=PENALTIES).fit(drawn.transform(rows @ axes), labels)
    waves = known.coef_.T * np.sqrt(2 / 1000)
    np.testing.assert_allclose(last.weights, waves, atol=1e-9 * np.abs(waves).max())


def fitted(source, *, strength, over=None):
    present = np.unique(source.labels)
    n_outputs = 1 if len(present) == 2 else len(present)
    start = np.zeros((n_outputs, source.n_columns + 1))
    over = over or Pass()
    return fit_logistic(source, present=present, strength=strength, start=start, over=over)


@pytest.mark.parametrize("most", [2_000, 0], ids=["a table", "conjugate gradients"])
@pytest.mark.parametrize("strength", [0.01, 100.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_weights_are_those_of_scikit_learns_exact_solver(
    n_classes, strength, most, monkeypatch
):
    monkeypatch.setattr(linear, "MOST_WEIGHTS", most)
    rows, labels = digits(300)
    labels = labels % n_classes
    source, over = thirds(rows, labels) if most else Cut(rows, labels, ()), Counted()
    found = fitted(source, strength=strength, over=over)
    assert len(over.steps) <= 20 or not most
    exact = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-13, max_iter=200)
    exact.fit(rows, labels)
    size = np.abs(exact.coef_).max()
    np.testing.assert_allclose(found.weights, exact.coef_.T, atol=1e-8 * size)
    spread = found.offset - found.offset.mean()
    wanted = exact.intercept_ - exact.intercept_.mean()
    np.testing.assert_allclose(spread, wanted, atol=1e-7 * size)


def test_rows_that_a_plane_tells_apart_settle_too_and_what_does_not_is_an_error(monkeypatch):
    """The penalty alone bends the loss there; steps are halved until they gain."""
    rows, labels = digits(60)
    over = Counted()
    found = fitted(Cut(30 * rows, labels, ()), strength=100.0, over=over)
    logits = 30 * rows @ found.weights + found.offset
    np.testing.assert_array_equal(logits.argmax(axis=1), labels)
    assert len(over.steps) < 60
    monkeypatch.setattr(linear, "MOST_PASSES", 2)
    with pytest.raises(NotFiniteError, match="did not settle within 2 passes"):
        fitted(Cut(*digits(), ()), strength=100.0)


def test_a_sample_without_some_class_costs_passes_and_not_accuracy(monkeypatch):
    rows, labels = digits(200)
    labels = np.where(np.arange(200) > 195, 10, labels)
    monkeypatch.setattr(passes, "SAMPLE_ROWS", 40)
    found = train(rows, labels, model="logistic", **CLASSES)
    assert set(found.predict(rows)) == set(range(11))


@pytest.mark.parametrize("model", ["ridge", "rff", "logistic"])
def test_a_model_of_sums_is_the_same_however_rows_are_cut_and_takes_few_passes(model):
    rows, labels = digits(150)
    labels, over = labels % 3, Counted()
    known = train(rows, labels, model=model, **CLASSES, over=over)
    assert len(over.steps) <= {"ridge": 4, "rff": 4, "logistic": 20}[model]
    found = train(thirds(rows, labels), model=model, **CLASSES)
    for one, two in zip(known.layers, found.layers, strict=True):
        if not isinstance(one, str):
            size = np.abs(one.weights).max()
            np.testing.assert_allclose(two.weights, one.weights, atol=1e-9 * size)
            np.testing.assert_allclose(two.offset, one.offset, atol=1e-9 * size)


def test_columns_that_vary_little_around_a_large_mean_keep_their_digits():
    """Moments about zero would have lost them: 1e8 squared leaves 1 of rounding."""
    rows = np.random.default_rng(0).normal(size=(400, 3))
    numbers = rows @ [1.0, -2.0, 0.5]
    cut = Cut(rows + 1e8, numbers, (100, 101, 250))
    found = train(cut, model="ridge", task="regression", seed=0).layers[0]
    known = RidgeCV(alphas=PENALTIES).fit(rows, numbers)
    np.testing.assert_allclose(found.weights[:, 0], known.coef_, rtol=1e-6)


@pytest.mark.parametrize("model", ["ridge", "rff", "logistic"])
def test_constant_columns_and_rows_that_are_all_alike_break_nothing(model):
    rows, labels = digits(200)
    wider = np.column_stack([rows, np.full(200, 7.5), np.zeros(200)])
    fitted = train(wider, labels % 2, model=model, **CLASSES, aligned=False)
    known = train(rows, labels % 2, model=model, **CLASSES, aligned=False)
    assert np.mean(fitted.predict(wider) == known.predict(rows)) > 0.97
    if model == "ridge":
        one = train(np.ones((1, 3)), np.array([4.0]), model="ridge", task="regression", seed=0)
        np.testing.assert_allclose(one.predict(np.zeros((2, 3))), 4.0)
    alike = np.ones((40, 3))
    assert set(train(alike, np.arange(40) % 4 // 3, model=model, **CLASSES).predict(alike)) == {0}
