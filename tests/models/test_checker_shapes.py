"""Weights, inputs and outputs of a model file: finite, and of the shapes agreed on."""

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from models.changed import Changes
from models.graphs import WIDTH

changes = Changes()


def weight_of(model, place=0):
    return model.graph.initializer[place]


def put_weight(model, values, place=0):
    weight_of(model, place).CopyFrom(numpy_helper.from_array(values, weight_of(model, place).name))


@changes("weights that are not finite", "'weight_0' are not all finite")
def _(model):
    values = numpy_helper.to_array(weight_of(model)).copy()
    values[0, 0] = np.nan
    put_weight(model, values)


@changes("infinite offsets", "'weight_1' are not all finite")
def _(model):
    put_weight(model, np.full(256, np.inf), 1)


@changes("weights of another precision", "'weight_0' are not of type float64")
def _(model):
    put_weight(model, np.ones((WIDTH, 256), dtype=np.float32))


@changes("fewer weights than the shape says", "not as many as their shape")
def _(model):
    weight_of(model).raw_data = weight_of(model).raw_data[:-8]


@changes("weights without a size", "has shape|have shape")
def _(model):
    put_weight(model, np.ones((0, 4)))


@changes("weights of negative size", "have shape")
def _(model):
    weight_of(model).dims[0] = -5


@changes("weights of three dimensions", "have shape")
def _(model):
    put_weight(model, np.ones((1, WIDTH, 256)))


@changes("weights that do not fit", "MatMul takes 5 columns and weights of shape")
def _(model):
    put_weight(model, np.ones((WIDTH + 1, 256)))


@changes("an offset that spreads", "Add takes 256 columns and weights of shape")
def _(model):
    put_weight(model, np.ones((1000, 256)), 1)


@changes("an offset of one number", "Add takes 256 columns and weights of shape")
def _(model):
    put_weight(model, np.ones(1), 1)


@changes("a table out of single numbers", "single numbers for a table")
def _(model):
    put_weight(model, np.ones(WIDTH))
    put_weight(model, np.array(1.0), 1)


@changes("very wide weights", "a step has 70000 columns")
def _(model):
    put_weight(model, np.ones((WIDTH, 70_000)))


@changes("another input", "inputs are 'X'")
def _(model):
    model.graph.input[0].name = "X"


@changes("one more input", "inputs are")
def _(model):
    model.graph.input.append(model.graph.input[0])


@changes("no input", "input is not of type")
def _(model):
    del model.graph.input[:]


@changes("an input of text", "input is not of type")
def _(model):
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING


@changes("an input of another width", "inputs are")
def _(model):
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 9


@changes("a fixed number of rows", "inputs are")
def _(model):
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1


@changes("another output", "outputs are")
def _(model):
    model.graph.output[0].name = "likely"


@changes("one more output", "outputs are")
def _(model):
    model.graph.output.append(model.graph.output[0])


@changes("a text beyond measure", "a name in it is longer")
def _(model):
    model.graph.name = "x" * 2000


@pytest.mark.parametrize("name", changes)
def test_a_shape_or_number_that_does_not_fit_is_refused(name):
    changes.check(name)
