"""Trees of a model file: each ends, and each of its parts is used once."""

import numpy as np
import onnx
import pytest

from cobasis.models.graph_model import GraphModel
from models.changed import Changes, node_of, refused
from models.graphs import WIDTH, agreed, graph_of

changes = Changes()


def tree_list(model, name):
    return next(each for each in node_of(model, "TreeEnsemble").attribute if each.name == name)


@changes("children before parents", "comes before its parent", of="boosted_trees")
def _(model):
    tree_list(model, "nodes_truenodeids").ints[0] = 0
    tree_list(model, "nodes_trueleafs").ints[0] = 0


@changes("a child with two parents", "two parents, or with none", of="boosted_trees")
def _(model):
    ids, flags = (tree_list(model, f"nodes_true{each}") for each in ("nodeids", "leafs"))
    place = next(at for at, flag in enumerate(flags.ints) if not flag)
    tree_list(model, "nodes_falsenodeids").ints[place] = ids.ints[place]
    tree_list(model, "nodes_falseleafs").ints[place] = 0


@changes("a leaf with two parents", "two parents, or with none", of="boosted_trees")
def _(model):
    ids, flags = (tree_list(model, f"nodes_true{each}") for each in ("nodeids", "leafs"))
    leaves = [at for at, flag in enumerate(flags.ints) if flag]
    ids.ints[leaves[0]] = ids.ints[leaves[1]]


@changes("a root twice", "two parents, or with none", of="boosted_trees")
def _(model):
    roots = tree_list(model, "tree_roots").ints
    roots[1] = roots[0]


@changes("a column that does not exist", "compare a column that", of="boosted_trees")
def _(model):
    tree_list(model, "nodes_featureids").ints[0] = WIDTH


@changes("a column below zero", "compare a column that", of="boosted_trees")
def _(model):
    tree_list(model, "nodes_featureids").ints[0] = -1


@changes("a sum that does not exist", "add to a sum that", of="boosted_trees")
def _(model):
    tree_list(model, "leaf_targetids").ints[0] = 1


@changes("a node that does not exist", "have a node that", of="boosted_trees")
def _(model):
    tree_list(model, "nodes_truenodeids").ints[0] = 10**6
    tree_list(model, "nodes_trueleafs").ints[0] = 0


@changes("a leaf that does not exist", "have a leaf that", of="boosted_trees")
def _(model):
    tree_list(model, "nodes_truenodeids").ints[0] = 10**6
    tree_list(model, "nodes_trueleafs").ints[0] = 1


@changes("a root that does not exist", "have a root that", of="boosted_trees")
def _(model):
    tree_list(model, "tree_roots").ints[0] = 10**6


@changes("a flag of two", "have a flag that", of="boosted_trees")
def _(model):
    tree_list(model, "nodes_trueleafs").ints[0] = 2


@changes("a list that is too short", "without all that a node has", of="boosted_trees")
def _(model):
    tree_list(model, "nodes_featureids").ints.pop()


@changes("a leaf without a sum", "leaves without a sum", of="boosted_trees")
def _(model):
    tree_list(model, "leaf_targetids").ints.pop()


@changes("another comparison", "compare otherwise", of="boosted_trees")
def _(model):
    modes = tree_list(model, "nodes_modes").t
    modes.raw_data = b"\5" + modes.raw_data[1:]


@changes("splits that are not finite", "not all finite", of="boosted_trees")
def _(model):
    splits = tree_list(model, "nodes_splits").t
    splits.raw_data = np.array([np.nan]).tobytes() + splits.raw_data[8:]


@changes("leaves that are not finite", "not all finite", of="boosted_trees")
def _(model):
    leaves = tree_list(model, "leaf_weights").t
    leaves.raw_data = np.array([np.inf]).tobytes() + leaves.raw_data[8:]


@changes("trees that take the largest leaf", "do not add up", of="boosted_trees")
def _(model):
    tree_list(model, "aggregate_function").i = 3


@changes("trees with another attribute", "other attributes than", of="boosted_trees")
def _(model):
    tree_list(model, "nodes_modes").name = "nodes_hitrates"


@changes("trees with an attribute of another kind", "of another kind", of="boosted_trees")
def _(model):
    tree_list(model, "tree_roots").type = 2


@changes("an attribute of trees twice", "other attributes than", of="boosted_trees")
def _(model):
    node_of(model, "TreeEnsemble").attribute.append(tree_list(model, "tree_roots"))


@changes("trees that take the mean of their leaves", "do not add up", of="boosted_trees")
def _(model):
    tree_list(model, "aggregate_function").i = 0


@changes("trees that change their sums", "do not add up", of="boosted_trees")
def _(model):
    tree_list(model, "post_transform").i = 1


@changes("trees of another domain", "operator :TreeEnsemble is none of", of="boosted_trees")
def _(model):
    node_of(model, "TreeEnsemble").domain = ""


@changes("a root below zero", "have a root that", of="boosted_trees")
def _(model):
    tree_list(model, "tree_roots").ints[0] = -1


@changes("a flag below zero", "have a flag that", of="boosted_trees")
def _(model):
    tree_list(model, "nodes_falseleafs").ints[0] = -1


@changes("a root that is left out", "two parents, or with none", of="boosted_trees")
def _(model):
    tree_list(model, "tree_roots").ints.pop()


@changes("a root once more", "two parents, or with none", of="boosted_trees")
def _(model):
    tree_list(model, "tree_roots").ints.append(tree_list(model, "tree_roots").ints[0])


@changes("a leaf once more", "two parents, or with none", of="boosted_trees")
def _(model):
    model.CopyFrom(onnx.ModelProto.FromString(chain_of(2)))
    tree_list(model, "nodes_falsenodeids").ints[1] = 0
    tree_list(model, "leaf_targetids").ints.pop()
    leaves = onnx.numpy_helper.from_array(np.ones(2))
    tree_list(model, "leaf_weights").t.CopyFrom(leaves)


@changes("a list where trees have a number", "n_targets is of another kind", of="boosted_trees")
def _(model):
    tree_list(model, "n_targets").type = 7


@changes("an endless number of sums", "a step has 100000 columns", of="boosted_trees")
def _(model):
    tree_list(model, "n_targets").i = 100_000


def chain_of(depth):
    """A tree that goes on to the false side, one node after the other."""
    model = onnx.ModelProto.FromString(graph_of("boosted_trees"))
    lists = {
        "tree_roots": [0],
        "nodes_featureids": [0] * depth,
        "nodes_truenodeids": list(range(depth)),
        "nodes_trueleafs": [1] * depth,
        "nodes_falsenodeids": list(range(1, depth + 1)),
        "nodes_falseleafs": [0] * (depth - 1) + [1],
        "leaf_targetids": [0] * (depth + 1),
    }
    lists["nodes_falsenodeids"][-1] = depth
    for name, values in lists.items():
        del tree_list(model, name).ints[:]
        tree_list(model, name).ints.extend(values)
    for name, values in (
        ("nodes_splits", np.zeros(depth)),
        ("nodes_modes", np.zeros(depth, dtype=np.uint8)),
        ("leaf_weights", np.ones(depth + 1)),
    ):
        tree_list(model, name).t.CopyFrom(onnx.numpy_helper.from_array(values))
    return model.SerializeToString()


def test_a_tree_may_be_64_deep_and_no_deeper():
    """The library walks down by calling itself."""
    read = GraphModel(data=chain_of(64), **agreed())
    assert read.predict(np.ones((2, WIDTH))).shape == (2,)
    refused(chain_of(65), "deeper than 64")
    refused(chain_of(100_000), "deeper than 64")


def one_leaf(true, false):
    """A tree of one node; its two sides are leaves."""
    model = onnx.ModelProto.FromString(chain_of(1))
    tree_list(model, "nodes_falseleafs").ints[:] = [1]
    tree_list(model, "nodes_truenodeids").ints[:] = [true]
    tree_list(model, "nodes_falsenodeids").ints[:] = [false]
    tree_list(model, "leaf_targetids").ints[:] = [0] * (max(true, false) + 1)
    tree_list(model, "leaf_weights").t.CopyFrom(
        onnx.numpy_helper.from_array(np.ones(max(true, false) + 1))
    )
    return model.SerializeToString()


def test_a_tree_of_one_leaf_passes_and_a_leaf_that_is_left_out_does_not():
    """Where nothing is worth a split, both sides of the one node are the same leaf."""
    for sides in ((0, 0), (0, 1), (1, 0)):
        read = GraphModel(data=one_leaf(*sides), **agreed())
        assert read.predict(np.ones((2, WIDTH))).shape == (2,)
    for sides in ((1, 1), (0, 2), (2, 1)):
        refused(one_leaf(*sides), "two parents, or with none")


@pytest.mark.parametrize("name", changes)
def test_anything_but_trees_is_refused(name):
    changes.check(name)
