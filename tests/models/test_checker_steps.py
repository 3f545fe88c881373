"""The steps of a model file: operators, attributes, wiring."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from cobasis.models import checker_steps
from models.changed import Changes, node_of, refused
from models.graphs import graph_of

changes = Changes()


def weight_of(model, place=0):
    return model.graph.initializer[place]


@changes("a loop without a body", "operator :Loop is none of")
def _(model):
    node_of(model, "Relu").op_type = "Loop"


@changes("an operator of another domain", "operator com.microsoft:Relu is none of")
def _(model):
    node_of(model, "Relu").domain = "com.microsoft"


@pytest.mark.parametrize("name", sorted(checker_steps.ROW_CARRYING_OPERATORS))
def test_operators_on_stored_rows_are_refused_as_such(name):
    model = onnx.ModelProto.FromString(graph_of("mlp"))
    node_of(model, "Relu").op_type = name
    refused(model.SerializeToString(), f"operator {name} works on stored rows")


@changes("an attribute of its own", "Relu has attributes")
def _(model):
    node_of(model, "Relu").attribute.append(helper.make_attribute("axis", 1))


@changes("another axis", "Softmax has attributes")
def _(model):
    node_of(model, "Softmax").attribute[0].i = 0


@changes("a list in an attribute", "ArgMax has attributes")
def _(model):
    node_of(model, "ArgMax").attribute[0].ints.append(3)


@changes("a tensor in an attribute", "Softmax has attributes")
def _(model):
    node_of(model, "Softmax").attribute[0].t.SetInParent()


@changes("an attribute of another kind", "Softmax has attributes")
def _(model):
    node_of(model, "Softmax").attribute[0].type = 7


@changes("an attribute twice", "ArgMax has attributes")
def _(model):
    node_of(model, "ArgMax").attribute.append(node_of(model, "ArgMax").attribute[0])


@changes("a cycle", "which no step before it gives")
def _(model):
    node_of(model, "MatMul").input[0] = "scores"


@changes("steps out of order", "which no step before it gives")
def _(model):
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(nodes[::-1])


@changes("two outputs of one name", "two things are called 'step_0'")
def _(model):
    node_of(model, "Relu").output[0] = "step_0"


@changes("an output called like a weight", "two things are called 'weight_0'")
def _(model):
    node_of(model, "Relu").output[0] = "weight_0"


@changes("an output without a name", "two things are called ''")
def _(model):
    node_of(model, "Relu").output[0] = ""


@changes("two weights of one name", "two of its weights are called 'weight_0'")
def _(model):
    weight_of(model, 1).name = "weight_0"


@changes("a step with two outputs", "1 inputs and 2 outputs")
def _(model):
    node_of(model, "Relu").output.append("more")


@changes("a step with too many inputs", "2 inputs and 1 outputs")
def _(model):
    node_of(model, "Relu").input.append("rows")


@changes("rows times rows", "takes 'rows', which is no weight")
def _(model):
    node_of(model, "MatMul").input[1] = "rows"


@changes("labels as numbers", "takes labels for numbers")
def _(model):
    model.graph.node.append(helper.make_node("Relu", ["label"], ["more"]))


@changes("a step that nobody uses", "nothing uses")
def _(model):
    model.graph.node.append(helper.make_node("Relu", ["rows"], ["idle"]))


@changes("weights that nobody uses", "nothing uses")
def _(model):
    model.graph.initializer.append(numpy_helper.from_array(np.ones((3, 5)), "rows of others"))


@changes("no label", "no step gives")
def _(model):
    model.graph.node.remove(node_of(model, "ArgMax"))


@changes("a label of other numbers", "label is not the largest")
def _(model):
    node_of(model, "ArgMax").input[0] = "step_2"


@changes("a label that is no label", "label is not the largest")
def _(model):
    node_of(model, "ArgMax").op_type = "Relu"
    del node_of(model, "MatMul").attribute[:]
    del next(node for node in model.graph.node if node.output[0] == "label").attribute[:]


@changes("too many steps", "70 steps, and 64")
def _(model):
    relu = node_of(model, "Relu")
    model.graph.node.extend([relu] * (70 - len(model.graph.node)))


@pytest.mark.parametrize("name", changes)
def test_a_step_that_its_family_does_not_have_is_refused(name):
    changes.check(name)
