"""A return whose model is a chain: what a party does with it, and what it refuses."""

from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest

from cobasis.errors import MessageError, StepError
from cobasis.models.chain import Chain
from cobasis.models.sources import read_chain
from protocol.consortium import COMPONENTS, WIDTH, consortium, tables

TASKS = {"classification": ((0, 1), "ridge"), "regression": ((), "rff")}


def finished(task="classification"):
    """A round, its returns, and the same returns with the model as a chain."""
    classes, model = TASKS[task]
    rows = tables()
    if task == "regression":
        rows = {name: (table, table[:, 0] - table[:, 1] ** 2) for name, (table, _) in rows.items()}
    made = consortium(rows=rows, task=task, classes=classes, model=model)
    returns = made.received().run()
    chains = {
        name: replace(each, model=read_chain(each.model, task=task, n_classes=len(classes)))
        for name, each in returns.items()
    }
    return made, returns, chains


@pytest.mark.parametrize("task", TASKS)
def test_a_party_predicts_with_the_chain_what_it_predicts_with_the_model(task):
    made, returns, chains = finished(task)
    for name, party in made.parties.items():
        rows = made.rows[name][0]
        party.accept(returns[name])
        wanted = party.predict(rows)
        party.accept(chains[name])
        found = party.predict(rows)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())
        assert len(np.unique(wanted)) > 1


@pytest.mark.parametrize("kind", ["model", "chain"])
@pytest.mark.parametrize("task", TASKS)
def test_the_exported_graph_predicts_from_raw_columns_alone(task, kind):
    made, returns, chains = finished(task)
    party, rows = made.parties["south"], made.rows["south"][0]
    party.accept({"model": returns, "chain": chains}[kind]["south"])
    session = onnxruntime.InferenceSession(party.export_graph(), providers=["CPUExecutionProvider"])
    given = {f"x{column}": rows[:, [column]] for column in range(WIDTH)}
    wanted = party.predict(rows)
    output = "label" if task == "classification" else "prediction"
    (found,) = session.run([output], given)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


def test_a_graph_of_float32_is_exported_on_request():
    made, _, chains = finished()
    party = made.parties["south"]
    party.accept(chains["south"])
    graph = onnx.ModelProto.FromString(party.export_graph(precision="float32")).graph
    assert {each.type.tensor_type.elem_type for each in graph.input} == {onnx.TensorProto.FLOAT}


def test_before_a_return_and_without_a_model_nothing_is_exported():
    made = consortium(task="representation", classes=(), model=None)
    party = made.parties["north"]
    returns = made.received().run()
    with pytest.raises(StepError, match="has no return yet"):
        party.export_graph()
    party.accept(returns["north"])
    with pytest.raises(StepError, match="trained no model"):
        party.export_graph()


def test_a_return_weighs_its_model():
    for returns in finished()[1:]:
        change = COMPONENTS * COMPONENTS * 8
        assert returns["north"].n_bytes == change + returns["north"].model.n_bytes


def test_a_chain_for_another_task_or_other_classes_is_not_accepted():
    made, _, chains = finished()
    party = made.parties["north"]
    party.accept(chains["north"])
    kept, model = party.returned, chains["north"].model
    last = model.layers[-1]
    wide = replace(last, weights=np.hstack([last.weights] * 2), offset=np.tile(last.offset, 2))
    more = Chain(family=model.family, layers=(*model.layers[:-1], wide), head=model.head)
    for other in (more, finished("regression")[2]["north"].model):
        with pytest.raises(MessageError, match="does not go with task='classification'"):
            party.accept(replace(chains["north"], model=other))
    assert party.returned is kept


def test_a_return_shows_nothing_of_its_weights():
    _, _, chains = finished()
    assert "array" not in repr(chains["north"])
    assert len(repr(chains["north"])) < 1000
