"""At each limit the checker says no one step later; what it quotes from a file stays short."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cobasis.models.checker import check_graph
from cobasis.models.graph_format import LARGEST_WIDTH, MOST_NODES
from models.changed import Changes, node_of, refused
from models.graphs import WIDTH, agreed, graph_of

LONG = "".join(chr(ord("a") + at % 26) for at in range(60))
SHORT = LONG[:40]
changes = Changes()


def put_weight(model, values, place=0):
    old = model.graph.initializer[place]
    old.CopyFrom(numpy_helper.from_array(values, old.name))


def wide(n_components):
    """The rows are said to be wider; the weights are as they were."""
    model = onnx.ModelProto.FromString(graph_of("mlp"))
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = n_components
    return model.SerializeToString()


def test_rows_may_be_as_wide_as_the_limit_and_no_wider():
    told = rf"MatMul takes {LARGEST_WIDTH} columns and weights of shape \(5, 256\)"
    refused(wide(LARGEST_WIDTH), told, n_components=LARGEST_WIDTH)
    told = f"{LARGEST_WIDTH + 1} columns are above {LARGEST_WIDTH}"
    refused(wide(LARGEST_WIDTH + 1), told, n_components=LARGEST_WIDTH + 1)


@changes("a step as wide as the limit", f"Add takes {LARGEST_WIDTH} columns and weights")
def _(model):
    put_weight(model, np.ones((WIDTH, LARGEST_WIDTH)))


@changes("a step wider than the limit", f"has {LARGEST_WIDTH + 1} columns, and {LARGEST_WIDTH} are")
def _(model):
    put_weight(model, np.ones((WIDTH, LARGEST_WIDTH + 1)))


@changes("as many steps as the limit", "two things are called")
def _(model):
    relu = node_of(model, "Relu")
    model.graph.node.extend([relu] * (MOST_NODES - len(model.graph.node)))


@changes("one step above the limit", f"{MOST_NODES + 1} steps, and {MOST_NODES} are accepted")
def _(model):
    relu = node_of(model, "Relu")
    model.graph.node.extend([relu] * (MOST_NODES + 1 - len(model.graph.node)))


@changes("more weights than the shape says", "not as many as their shape")
def _(model):
    model.graph.initializer[0].raw_data += bytes(8)


@changes("weights without a name", "two of its weights are called '', or one has no name")
def _(model):
    model.graph.initializer[1].name = ""


@changes("a step without an output", "Relu has 1 inputs and 0 outputs")
def _(model):
    del node_of(model, "Relu").output[:]


@changes("a step with weights and nothing else", "MatMul has 1 inputs and 1 outputs")
def _(model):
    del node_of(model, "MatMul").input[1:]


@changes("too few scores", "label is not the largest of 2 scores", of="logistic")
def _(model):
    put_weight(model, np.ones((WIDTH, 1)))
    put_weight(model, np.ones(1), 1)


@changes("too many scores", "label is not the largest of 2 scores", of="logistic")
def _(model):
    put_weight(model, np.ones((WIDTH, 3)))
    put_weight(model, np.ones(3), 1)


@changes("an offset that is a table", r"Add takes 256 columns and weights of shape \(256, 4\)")
def _(model):
    put_weight(model, np.ones((256, 4)), 1)


@changes("weights of whole numbers as long", "'weight_1' are not of type float64")
def _(model):
    put_weight(model, np.ones(256, dtype=np.uint64), 1)


@changes("an older IR", r"\(ai.onnx 19, IR 8\)")
def _(model):
    model.ir_version = 8


@changes("an older operator set", r"\(ai.onnx 18, IR 9\)")
def _(model):
    model.opset_import[0].version = 18


@changes("a label of the rows", "label is not the largest of 2 scores", of="logistic")
def _(model):
    node_of(model, "ArgMax").input[0] = "rows"


@changes(
    "one number for each row to choose from", "a step Softmax takes single numbers for a table"
)
def _(model):
    put_weight(model, np.ones(256), 2)
    put_weight(model, np.array(1.0), 3)


@changes("an offset for single numbers", r"Add takes one column and weights of shape \(2,\)")
def _(model):
    put_weight(model, np.ones(256), 2)


def test_scores_are_likely_only_if_they_come_from_softmax():
    model = onnx.ModelProto.FromString(graph_of("mlp"))
    last = node_of(model, "Softmax")
    last.op_type = "Tanh"
    del last.attribute[:]
    refused(model.SerializeToString(), "label is not the largest of 2 scores")
    node_of(model, "ArgMax").input[0] = "scores"
    assert check_graph(model.SerializeToString(), **agreed()).likely is False


def test_a_prediction_is_one_number():
    model = onnx.ModelProto.FromString(graph_of("mlp", "regression", 0))
    put_weight(model, np.ones((256, 2)), 2)
    put_weight(model, np.ones(2), 3)
    told = "its prediction has 2 columns, not one number"
    refused(model.SerializeToString(), told, task="regression", classes=())


def test_a_file_for_a_representation_is_refused_though_the_round_is_of_one():
    model = onnx.ModelProto.FromString(graph_of("mlp"))
    model.metadata_props[2].value = "representation"
    told = "it is for 'representation', the agreement is for 'representation'"
    refused(model.SerializeToString(), told, task="representation")


# ------------------------------------------------------------ what is quoted


@changes("a format of many letters", f"of format '{SHORT}', not 'cobasis/model/1'")
def _(model):
    model.metadata_props[0].value = LONG


@changes("a family of many letters", f"family '{SHORT}' is none of linear, logistic, mlp")
def _(model):
    model.metadata_props[1].value = LONG


@changes("a task of many letters", f"it is for '{SHORT}', the agreement is for 'classification'")
def _(model):
    model.metadata_props[2].value = LONG


@changes("an operator of many letters", f"its operator {SHORT}:{SHORT} is none of")
def _(model):
    relu = node_of(model, "Relu")
    relu.op_type, relu.domain = LONG, LONG


@changes("a domain of many letters", rf"not have \(ai.onnx 19, {SHORT} 3, IR 9\)")
def _(model):
    model.opset_import.append(helper.make_opsetid(LONG, 3))


@changes("an input of many letters", f"Relu takes '{SHORT}', which no step before it gives")
def _(model):
    node_of(model, "Relu").input[0] = LONG


@changes("weights of many letters that are not there", f"takes '{SHORT}', which is no weight")
def _(model):
    node_of(model, "MatMul").input[1] = LONG


@changes("a name of many letters twice", f"two things are called '{SHORT}', or")
def _(model):
    node_of(model, "MatMul").output[0] = LONG
    node_of(model, "Add").input[0] = LONG
    node_of(model, "Relu").output[0] = LONG


@changes("weights of many letters twice", f"two of its weights are called '{SHORT}', or")
def _(model):
    for each in model.graph.initializer[:2]:
        each.name = LONG


@changes("weights of many letters that are not finite", f"weights '{SHORT}' are not all finite")
def _(model):
    put_weight(model, np.full(256, np.inf), 1)
    model.graph.initializer[1].name = LONG


@changes("weights of many letters and another type", f"weights '{SHORT}' are not of type float64")
def _(model):
    put_weight(model, np.ones(256, dtype=np.int64), 1)
    model.graph.initializer[1].name = LONG


@changes("weights of many dimensions", r"'weight_0' have shape \(1, 2, 3, 4\), which no step takes")
def _(model):
    put_weight(model, np.ones((1, 2, 3, 4, 5, 6)))


@changes(
    "many weights that nobody uses", rf"gives \[\], or nothing uses \['a{SHORT[:39]}', 'b', 'c'\]"
)
def _(model):
    for name in (f"a{LONG}", "b", "c", "d"):
        model.graph.initializer.append(numpy_helper.from_array(np.ones(1), name))


@changes(
    "outputs of many letters",
    rf"outputs are '{SHORT}' \[1, 2, 3, 4\], 'o' \[\], 'o' \[\], 'o' \[\] where this round has "
    r"'scores' \['n', 2\], 'label' \['n'\]",
)
def _(model):
    del model.graph.output[:]
    outputs = [(LONG, [1, 2, 3, 4, 5, 6]), *[("o", [])] * 5]
    model.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape) for name, shape in outputs
    )


@pytest.mark.parametrize("name", changes)
def test_a_file_at_a_limit_or_of_long_words_is_refused_in_short_ones(name):
    changes.check(name)


def test_what_was_found_shows_no_bytes_and_cannot_be_changed():
    found = check_graph(graph_of("ridge"), **agreed())
    assert "data=" not in repr(found)
    for each in fields(found):
        with pytest.raises(FrozenInstanceError):
            setattr(found, each.name, getattr(found, each.name))


def test_a_prediction_is_a_number_and_not_the_place_of_one():
    model = onnx.ModelProto.FromString(graph_of("ridge", "regression"))
    wide, last = np.ones((WIDTH, 3)), model.graph.node[-1]
    put_weight(model, wide)
    put_weight(model, np.ones(3), place=1)
    last.output[0] = "scores"
    model.graph.node.append(
        helper.make_node("ArgMax", ["scores"], ["prediction"], axis=1, keepdims=0)
    )
    refused(model.SerializeToString(), "is the place of a number", **agreed("regression", 0))
