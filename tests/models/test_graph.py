"""A model file gives what scikit-learn gives, for every family that may travel."""

import numpy as np
import onnx
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cobasis.errors import LabelError, OptionError, RowCarryingError, ShapeError
from cobasis.models import graph_wire
from cobasis.models.graph import to_graph
from cobasis.models.graph_model import GraphModel, as_graph_model
from cobasis.models.training import TrainedModel, train
from models.graphs import KINDS, PRECISIONS, WIDTH, agreed, graph_of, labels_of, rows_of, trained


def expected_scores(model, rows):
    """scikit-learn's scores with a column for each class, and how `scores` calls them."""
    method = "predict_proba" if hasattr(model.estimator, "predict_proba") else "decision_function"
    return model.scores(rows, method=method), method


def agree_with(model, read, *, tolerance, n_classes):
    """Compare everything a file gives with the estimator, on rows it has not seen."""
    rows = rows_of(seed=1)
    wanted = model.predict(rows)
    if n_classes == 0:
        size = np.abs(wanted).max()
        np.testing.assert_allclose(read.predict(rows), wanted, rtol=0, atol=tolerance * size)
        assert np.ptp(wanted) > 10
        return
    scores, method = expected_scores(model, rows)
    size = max(1.0, np.abs(scores).max())
    np.testing.assert_allclose(
        read.scores(rows, method=method), scores, rtol=0, atol=tolerance * size
    )
    np.testing.assert_array_equal(read.predict(rows), wanted)
    assert len(np.unique(wanted)) == n_classes


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("name", "task", "n_classes"), KINDS)
def test_a_file_of_every_family_gives_what_scikit_learn_gives(name, task, n_classes, precision):
    data = graph_of(name, task, n_classes, precision)
    onnx.checker.check_model(data, full_check=True)
    read = GraphModel(data=data, **agreed(task, n_classes))
    assert read.checked.precision == precision
    tolerance = PRECISIONS[precision]
    agree_with(trained(name, task, n_classes), read, tolerance=tolerance, n_classes=n_classes)


def test_every_family_that_carries_no_rows_is_among_them():
    assert {name for name, _, _ in KINDS} == {"logistic", "ridge", "mlp", "rff", "boosted_trees"}


LOOSE = {"random_state": 0, "tol": 0.1, "max_iter": 2000}
PIPELINES = {
    "scaled ridge": (make_pipeline(StandardScaler(), Ridge()), "regression"),
    "unscaled scaler": (make_pipeline(StandardScaler(with_std=False), Ridge()), "regression"),
    "uncentred scaler": (make_pipeline(StandardScaler(with_mean=False), Ridge()), "regression"),
    "scaled logistic": (make_pipeline(StandardScaler(), LogisticRegression()), "classification"),
    "scaled random features": (
        make_pipeline(StandardScaler(), RBFSampler(random_state=0), LogisticRegression()),
        "classification",
    ),
    "scaled features": (
        make_pipeline(RBFSampler(random_state=0), StandardScaler(), RidgeClassifier()),
        "classification",
    ),
    "deep tanh": (
        MLPClassifier((12, 7), activation="tanh", solver="lbfgs", **LOOSE),
        "classification",
    ),
    "sigmoid": (
        make_pipeline(
            StandardScaler(),
            MLPRegressor(
                hidden_layer_sizes=(20,),
                activation="logistic",
                solver="lbfgs",
                **LOOSE,
            ),
        ),
        "regression",
    ),
    "no function": (
        MLPClassifier((6,), activation="identity", solver="lbfgs", **LOOSE),
        "classification",
    ),
    "scaled trees": (
        make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=5)),
        "regression",
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_with_scalers_and_other_networks_are_written_as_well(name):
    estimator, task = PIPELINES[name]
    rows, n_classes = rows_of()[:200], 3 if task == "classification" else 0
    labels = labels_of(rows, task, n_classes)
    model = train(rows, labels, model=estimator, task=task, seed=0)
    read = as_graph_model(model, task=task, classes=tuple(range(n_classes)))
    assert (read.checked.family == "rff") == ("features" in name)
    agree_with(model, read, tolerance=1e-12, n_classes=n_classes)


@pytest.mark.parametrize("name", ["ridge", "logistic", "mlp", "rff", "boosted_trees"])
@pytest.mark.parametrize("present", [(1, 3), (0, 2, 4)])
def test_a_class_without_training_rows_has_a_column_and_is_never_predicted(name, present):
    model = trained(name, "classification", len(present), present)
    read = as_graph_model(model, task="classification", classes=tuple("abcde"))
    rows = rows_of(seed=1)
    found = read.predict(rows)
    assert set(found) == set(present)
    np.testing.assert_array_equal(found, model.predict(rows))
    likely = read.checked.likely
    scores = read.scores(rows, method="predict_proba" if likely else "decision_function")
    absent = np.setdiff1d(np.arange(5), present)
    np.testing.assert_array_equal(scores[:, absent], 0.0 if likely else -1.0)


def test_a_file_of_float32_is_about_half_as_large():
    large, small = (len(graph_of("rff", precision=each)) for each in ("float64", "float32"))
    assert 0.45 < small / large < 0.55


def test_the_same_model_is_written_to_the_same_bytes():
    model = trained("mlp", "classification", 4)
    again = to_graph(model, **agreed("classification", 4))
    assert again == graph_of("mlp", "classification", 4)


def test_no_row_and_no_label_name_is_in_a_file():
    """Rows as they are, in either precision; the families' own search is in test_leak."""
    data = graph_of("mlp", "classification", 4)
    for row in rows_of()[:200]:
        assert row.tobytes() not in data
        assert row.astype(np.float32).tobytes() not in data
    model = trained("ridge", "classification", 2)
    named = to_graph(
        model, n_components=WIDTH, task="classification", classes=("sick-marker", "well")
    )
    assert b"sick-marker" not in named


def test_support_vectors_are_not_written():
    rows = rows_of()[:100]
    labels = labels_of(rows, "classification", 2)
    model = train(rows, labels, model="svm", task="classification", seed=0, allow_row_carrying=True)
    with pytest.raises(RowCarryingError, match="SVC stores training rows"):
        to_graph(model, **agreed())
    inside = make_pipeline(StandardScaler(), SVC()).fit(rows, labels)
    with pytest.raises(RowCarryingError, match="SVC"):
        to_graph(TrainedModel(axes=np.eye(WIDTH), estimator=inside), **agreed())


UNKNOWN = {
    "a forest": (RandomForestClassifier(3, random_state=0), "RandomForestClassifier"),
    "poisson trees": (HistGradientBoostingRegressor(loss="poisson", max_iter=2), "poisson"),
    "poisson network": (
        MLPRegressor("poisson", (3,), solver="lbfgs", max_iter=2000),
        "last function is exp",
    ),
    "two numbers": (Ridge(), "2 numbers at once"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_the_format_has_no_form_for_is_refused_by_name(name):
    estimator, told = UNKNOWN[name]
    rows = rows_of()[:100]
    task = "classification" if name == "a forest" else "regression"
    labels = np.abs(labels_of(rows, task, 2))
    if name == "two numbers":
        labels = np.stack([labels, labels], axis=1)
    fitted = TrainedModel(axes=np.eye(WIDTH), estimator=estimator.fit(rows, labels))
    with pytest.raises(OptionError, match=told):
        to_graph(fitted, **agreed(task, 2 if task == "classification" else 0))


def test_other_tasks_widths_and_labels_are_refused():
    model = trained("ridge", "classification", 4)
    with pytest.raises(OptionError, match="trains no model"):
        to_graph(model, n_components=WIDTH, task="representation", classes=())
    with pytest.raises(OptionError, match="not for regression"):
        to_graph(model, **agreed("regression", 0))
    with pytest.raises(ShapeError, match="5 aligned columns, not for 4"):
        to_graph(model, n_components=4, task="classification", classes=(0, 1, 2, 3))
    with pytest.raises(LabelError, match="no positions in the 3 agreed"):
        to_graph(model, **agreed("classification", 3))


def test_a_model_that_no_party_would_take_is_not_written(monkeypatch):
    monkeypatch.setattr(graph_wire, "MOST_PARTS", 10)
    with pytest.raises(OptionError, match="more than 10 parts"):
        to_graph(trained("ridge", "classification", 2), **agreed())


def test_a_tree_that_is_one_leaf_is_written_too():
    rows = rows_of()[:60]
    numbers = labels_of(rows, "regression", 0)
    stump = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=50).fit(rows, numbers)
    model = TrainedModel(axes=np.eye(WIDTH), estimator=stump)
    read = as_graph_model(model, task="regression", classes=())
    np.testing.assert_allclose(read.predict(rows), numbers.mean(), rtol=1e-12)
