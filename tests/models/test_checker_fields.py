"""What a model file may hold: metadata, versions and fields of a closed list."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from models.changed import Changes, node_of

FORMAT, FAMILY, TASK = range(3)
changes = Changes()


def weight_of(model, place=0):
    return model.graph.initializer[place]


@changes("metadata of another format", "of format 'cobasis/model/2'")
def _(model):
    model.metadata_props[FORMAT].value = "cobasis/model/2"


@changes("no metadata", "metadata are not")
def _(model):
    del model.metadata_props[:]


@changes("metadata of its own", "metadata are not")
def _(model):
    helper.set_model_props(model, {"author": "somebody"})


@changes("metadata twice", "metadata are not")
def _(model):
    model.metadata_props.append(model.metadata_props[0])


@changes("another family's operators", "operator :Relu is none of")
def _(model):
    model.metadata_props[FAMILY].value = "logistic"


@changes("a family that stores rows", "family 'svm' stores training rows")
def _(model):
    model.metadata_props[FAMILY].value = "svm"


@changes("an unknown family", "family 'forest' is none of")
def _(model):
    model.metadata_props[FAMILY].value = "forest"


@changes("another task in the metadata", "for 'regression', the agreement is for 'class")
def _(model):
    model.metadata_props[TASK].value = "regression"


@changes("a newer operator set", "versions that the format does not have")
def _(model):
    model.opset_import[0].version = 20


@changes("a newer IR", "IR 10")
def _(model):
    model.ir_version = 10


@changes("an operator set of somebody's", "versions that the format does not have")
def _(model):
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


@changes("an operator set twice", "one set of operators twice")
def _(model):
    model.opset_import.append(model.opset_import[0])


@changes("no operator set", "versions that the format does not have")
def _(model):
    del model.opset_import[:]


@changes("functions", "functions of its own")
def _(model):
    opset = [helper.make_opsetid("", 19)]
    body = [helper.make_node("Relu", ["x"], ["y"])]
    model.functions.append(helper.make_function("own", "F", ["x"], ["y"], body, opset))


@changes("training", "a field training_info")
def _(model):
    model.training_info.add()


@changes("words of documentation", "a field doc_string")
def _(model):
    model.doc_string = "read me"


@changes("sparse weights", "sparse numbers")
def _(model):
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1), "s"))


@changes("external data", "numbers in another file")
def _(model):
    entry = weight_of(model).external_data.add()
    entry.key, entry.value = "location", "../../secret"


@changes("a location elsewhere", "numbers in another file")
def _(model):
    weight_of(model).data_location = TensorProto.EXTERNAL


@changes("weights as a list of floats", "a field double_data")
def _(model):
    weight_of(model).double_data.extend([1.0, 2.0])


@changes("a graph inside the graph", "a graph inside the graph")
def _(model):
    inner = helper.make_graph([], "inner", [], [])
    model.graph.node.append(
        helper.make_node("If", ["rows"], ["y"], then_branch=inner, else_branch=inner)
    )


@changes("graphs inside the graph", "graphs inside the graph")
def _(model):
    node_of(model, "Relu").attribute.add(name="graphs", type=10).graphs.add()


@changes("a sparse attribute", "sparse numbers")
def _(model):
    node_of(model, "Relu").attribute.add(name="s", type=11).sparse_tensor.SetInParent()


@pytest.mark.parametrize("name", changes)
def test_a_field_or_word_that_the_format_does_not_have_is_refused(name):
    changes.check(name)
