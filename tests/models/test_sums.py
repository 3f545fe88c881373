"""Ridge and random features: exact, from sums, wherever rows lie; the penalty leaves one out."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge, RidgeClassifierCV, RidgeCV

from cobasis.models.passes import Threads, WholeRows
from cobasis.models.sums import PENALTIES, Design, Moments, fit_ridge
from cobasis.models.trainer import train
from models.blocks import Counted, Cut, principal_axes

CUTS = {
    "one block": (),
    "seven blocks": (20, 50, 51, 100, 180, 260),
    "blocks without rows": (0, 0, 150, 150, 300),
}


def digits(n_rows=300):
    rows, labels = load_digits(return_X_y=True)
    return rows[:n_rows] / 16, labels[:n_rows]


def design_of(rows, labels, *, n_classes):
    present = np.unique(labels) if n_classes else np.arange(0)
    return Design(width=rows.shape[1], waves=None, n_classes=n_classes, present=present)


@pytest.mark.parametrize("n_rows", [1797, 300, 65, 64, 63, 12])
@pytest.mark.parametrize("target", ["ten classes", "two classes", "a number"])
def test_ridge_is_scikit_learns_with_the_penalty_that_it_would_choose(n_rows, target):
    """More rows than columns, as many, and fewer, which are fitted by the products of rows."""
    rows, labels = digits(n_rows)
    labels = {"ten classes": labels, "two classes": labels % 2, "a number": np.sqrt(labels)}[target]
    n_classes = {"ten classes": 10, "two classes": 2, "a number": 0}[target]
    design = design_of(rows, labels, n_classes=n_classes)
    fitted, penalty = fit_ridge(WholeRows(rows, labels), design=design, over=Threads())
    kind = RidgeClassifierCV if n_classes else RidgeCV
    known = kind(alphas=PENALTIES).fit(rows, labels)
    assert penalty == known.alpha_
    exact = Ridge(alpha=penalty, solver="svd").fit(rows, design.targets(labels))
    size = np.abs(exact.coef_).max()
    np.testing.assert_allclose(fitted.weights, exact.coef_.T.reshape(64, -1), atol=1e-12 * size)
    np.testing.assert_allclose(fitted.offset, np.ravel(exact.intercept_), atol=1e-11)


@pytest.mark.parametrize("model", ["ridge", "rff", "logistic"])
@pytest.mark.parametrize("cut", CUTS)
def test_a_model_of_sums_is_the_same_however_rows_are_cut(model, cut):
    rows, labels = digits(400)
    options = {"model": model, "task": "classification", "seed": 3}
    known = train(rows, labels, **options)
    found = train(Cut(rows, labels, CUTS[cut]), **options)
    for one, two in zip(known.layers, found.layers, strict=True):
        if not isinstance(one, str):
            size = np.abs(one.weights).max()
            np.testing.assert_allclose(two.weights, one.weights, atol=1e-9 * size)
            np.testing.assert_allclose(two.offset, one.offset, atol=1e-9 * size)


def test_a_regression_is_the_same_however_rows_are_cut():
    rows, numbers = load_diabetes(return_X_y=True)
    options = {"task": "regression", "seed": 3}
    for model in ("ridge", "rff"):
        known = train(rows, numbers, model=model, **options).predict(rows)
        found = train(Cut(rows, numbers, (1, 200, 201)), model=model, **options).predict(rows)
        np.testing.assert_allclose(found, known, rtol=1e-9)


def test_random_features_are_those_that_scikit_learn_draws():
    rows, labels = digits()
    axes = principal_axes(rows)
    drawn = RBFSampler(gamma="scale", n_components=1000, random_state=5).fit(rows @ axes)
    fitted = train(rows, labels, model="rff", task="classification", seed=5)
    first, function, _ = fitted.layers
    np.testing.assert_allclose(first.weights, axes @ drawn.random_weights_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(first.offset, drawn.random_offset_)
    assert function == "Cos"


def test_columns_that_vary_little_around_a_large_mean_keep_their_digits():
    """Moments about zero would have lost them: 1e9 squared leaves 1e2 of rounding."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))
    numbers = rows @ [1.0, -2.0, 0.5]
    cut = Cut(rows + 1e8, numbers, (100, 101, 250))
    known = train(rows, numbers, model="ridge", task="regression", seed=0).layers[0]
    found = train(cut, model="ridge", task="regression", seed=0).layers[0]
    np.testing.assert_allclose(found.weights, known.weights, rtol=1e-6)


def test_moments_are_joined_exactly():
    rng = np.random.default_rng(0)
    rows, numbers = rng.normal(size=(60, 4)) + 3.0, rng.normal(size=(60, 2))
    found, other = Moments.none(4, 2), Moments.none(4, 2)
    found.take(rows[:10].copy(), numbers[:10])
    other.take(rows[10:35].copy(), numbers[10:35])
    other.take(rows[35:].copy(), numbers[35:])
    found.join([other, Moments.none(4, 2)])
    centred = rows - rows.mean(axis=0)
    np.testing.assert_allclose(np.tril(found.scatter), np.tril(centred.T @ centred), atol=1e-12)
    np.testing.assert_allclose(found.cross, centred.T @ numbers, atol=1e-12)
    assert found.n_rows == 60


@pytest.mark.parametrize("value", [0.0, 7.5])
@pytest.mark.parametrize("model", ["ridge", "rff", "logistic"])
def test_a_constant_column_changes_nothing_and_breaks_nothing(value, model):
    rows, labels = digits(200)
    labels = labels % 2
    wider = np.column_stack([rows, np.full(200, value)])
    options = {"model": model, "task": "classification", "seed": 0, "aligned": False}
    found, known = train(wider, labels, **options), train(rows, labels, **options)
    assert np.mean(found.predict(wider) == known.predict(rows)) > 0.97
    if model == "ridge":
        np.testing.assert_allclose(found.layers[0].weights[-1], 0.0, atol=1e-12)


def test_rows_that_are_all_alike_are_told_apart_by_nothing():
    rows, labels = np.ones((40, 3)), np.arange(40) % 4 // 3
    for model in ("ridge", "rff", "logistic"):
        fitted = train(rows, labels, model=model, task="classification", seed=0)
        assert set(fitted.predict(rows)) == {0}


def test_a_single_row_is_its_own_prediction():
    fitted = train(np.ones((1, 3)), np.array([4.0]), model="ridge", task="regression", seed=0)
    np.testing.assert_allclose(fitted.predict(np.zeros((2, 3))), 4.0)


@pytest.mark.parametrize("present", [(1, 3), (0, 2, 4)])
@pytest.mark.parametrize("model", ["ridge", "rff", "logistic"])
def test_a_class_without_rows_is_never_predicted(model, present):
    rows, labels = digits()
    labels = np.array(present)[labels % len(present)]
    fitted = train(rows, labels, model=model, task="classification", n_classes=5, seed=0)
    assert set(fitted.predict(rows)) == set(present)
    scores = fitted.scores(rows, method=fitted.method)
    absent = np.setdiff1d(np.arange(5), present)
    np.testing.assert_array_equal(scores[:, absent], 0.0 if fitted.likely else -1.0)


def test_a_model_of_sums_takes_few_passes():
    rows, labels = digits()
    taken = {}
    for model in ("ridge", "rff", "logistic"):
        over = Counted()
        train(rows, labels, model=model, task="classification", seed=0, over=over)
        taken[model] = len(over.steps)
    assert taken["ridge"] <= 4
    assert taken["rff"] <= 5
    assert taken["logistic"] <= 20


def test_fewer_rows_than_columns_take_a_table_of_rows_and_not_of_columns(monkeypatch):
    """Else the many small models of parties alone would take twenty times as long."""
    sizes = []
    solve = np.linalg.eigh

    def watched(table, **options):
        sizes.append(len(table))
        return solve(table, **options)

    monkeypatch.setattr(np.linalg, "eigh", watched)
    rows, labels = digits(90)
    train(rows, labels, model="rff", task="classification", seed=0)
    assert max(sizes) == 90
