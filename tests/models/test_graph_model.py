"""A file as a model: what `TrainedModel` does, in blocks, and never a number that is none."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from cobasis.errors import ModelFileError, NotFiniteError, OptionError, ShapeError
from cobasis.models import graph_model
from cobasis.models.graph_model import GraphModel, as_graph_model
from models.graphs import WIDTH, agreed, graph_of, rows_of, trained


def test_it_shows_neither_its_bytes_nor_its_weights():
    read = GraphModel(data=graph_of("ridge"), **agreed())
    assert repr(read) == "GraphModel(n_components=5, task='classification', classes=(0, 1))"


def test_it_weighs_its_file():
    assert GraphModel(data=graph_of("mlp"), **agreed()).n_bytes == len(graph_of("mlp"))


def test_two_readings_of_one_file_are_equal():
    one, two = (GraphModel(data=graph_of("ridge"), **agreed()) for _ in range(2))
    assert one == two
    assert one != GraphModel(data=graph_of("logistic"), **agreed())


def test_a_file_that_is_refused_makes_no_model():
    with pytest.raises(ModelFileError, match="truncated"):
        GraphModel(data=graph_of("ridge")[:-9], **agreed())
    read = GraphModel(data=graph_of("ridge"), **agreed())
    with pytest.raises(ModelFileError, match="outputs are"):
        replace(read, classes=(0, 1, 2))


@pytest.mark.parametrize("n_rows", [1, 6, 7, 8, 50])
def test_blocks_make_no_difference(n_rows, monkeypatch):
    read = GraphModel(data=graph_of("mlp", "classification", 4), **agreed("classification", 4))
    rows = rows_of(n_rows)
    whole = read.scores(rows, method="predict_proba")
    monkeypatch.setattr(graph_model, "_MOST_NUMBERS_AT_ONCE", 7 * read.checked.widest)
    np.testing.assert_allclose(read.scores(rows, method="predict_proba"), whole, atol=1e-14)
    assert read.predict(rows).shape == (n_rows,)
    assert read.predict(rows).dtype == np.int64


def test_scores_have_the_shape_that_scikit_learn_has():
    rows = rows_of(9)
    two = GraphModel(data=graph_of("ridge"), **agreed())
    assert two.scores(rows, method="decision_function").shape == (9,)
    four = GraphModel(data=graph_of("ridge", n_classes=4), **agreed(n_classes=4))
    assert four.scores(rows, method="decision_function").shape == (9, 4)
    assert GraphModel(data=graph_of("mlp"), **agreed()).scores(
        rows, method="predict_proba"
    ).shape == (9, 2)


@pytest.mark.parametrize(
    ("name", "task", "asked", "has"),
    [
        ("ridge", "classification", "predict_proba", "decision_function"),
        ("logistic", "classification", "decision_function", "predict_proba"),
        ("ridge", "regression", "predict_proba", "predict"),
        ("ridge", "regression", "predict", "predict"),
    ],
)
def test_scores_that_a_model_does_not_have_are_an_option_error(name, task, asked, has):
    n_classes = 2 if task == "classification" else 0
    read = GraphModel(data=graph_of(name, task, n_classes), **agreed(task, n_classes))
    with pytest.raises(OptionError, match=f"has no {asked}.*Use {has}"):
        read.scores(rows_of(3), method=asked)


def test_rows_that_are_no_aligned_rows_are_refused():
    read = GraphModel(data=graph_of("ridge", precision="float32"), **agreed())
    with pytest.raises(ShapeError, match="4 columns"):
        read.predict(np.ones((3, WIDTH - 1)))
    with pytest.raises(NotFiniteError, match="NaN or infinity"):
        read.predict(np.full((3, WIDTH), np.nan))
    with pytest.raises(NotFiniteError, match="too large for a model of float32"):
        read.predict(np.full((3, WIDTH), 1e39))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_weights_that_lead_out_of_range_are_the_files_fault(task):
    n_classes = 2 if task == "classification" else 0
    model = onnx.ModelProto.FromString(graph_of("ridge", task, n_classes))
    weights = model.graph.initializer[0]
    huge = np.full(numpy_helper.to_array(weights).shape, 1e308)
    weights.CopyFrom(numpy_helper.from_array(huge, weights.name))
    read = GraphModel(data=model.SerializeToString(), **agreed(task, n_classes))
    with pytest.raises(ModelFileError, match="numbers that are not finite"):
        read.predict(np.full((3, WIDTH), 10.0))


def test_what_the_runtime_cannot_run_is_the_files_fault(monkeypatch):
    import onnxruntime  # noqa: PLC0415

    def broken(*_, **__):
        raise RuntimeError("a path, and what else a runtime says")

    monkeypatch.setattr(onnxruntime, "InferenceSession", broken)
    read = GraphModel(data=graph_of("ridge"), **agreed())
    with pytest.raises(ModelFileError, match=r"cannot run it \(RuntimeError\)") as caught:
        read.predict(rows_of(3))
    assert "a path" not in str(caught.value)


def test_one_model_is_read_by_the_other_name():
    model = trained("ridge", "classification", 2)
    read = as_graph_model(model, task="classification", classes=(0, 1))
    assert read.n_components == model.n_components == WIDTH
    assert read.data == graph_of("ridge")
