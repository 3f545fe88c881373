"""Changes to good model files, each with the words of its refusal."""

import time

import onnx
import pytest

from cobasis.errors import ModelFileError, RemoteError
from cobasis.models.checker import check_graph
from models.graphs import agreed, graph_of


class Changes(dict):
    """Changes by name, registered by a decorator."""

    def __call__(self, name, told, *, of="mlp"):
        """Register one change to the file of a family."""
        assert name not in self

        def register(change):
            self[name] = (change, told, of)
            return change

        return register

    def check(self, name):
        """Make the change, and see that it is one and that it is refused as it should be."""
        change, told, family = self[name]
        good = graph_of(family)
        model = onnx.ModelProto.FromString(good)
        change(model)
        assert model.SerializeToString() != good
        refused(model.SerializeToString(), told)


def refused(data, told, **round_):
    """Assert the refusal, its code, its words and its time."""
    begin = time.perf_counter()
    with pytest.raises(ModelFileError, match=told) as caught:
        check_graph(data, **{**agreed(), **round_})
    assert time.perf_counter() - begin < 2
    assert str(caught.value).endswith("[CB402]")
    assert isinstance(caught.value, RemoteError)
    assert caught.value.exit_code == 3


def node_of(model, operator):
    return next(node for node in model.graph.node if node.op_type == operator)
