"""Trees of a model file: each one ends, each part is used once, and no comparison is out of range.

The library that runs them follows ids as it finds them: a cycle never ends, a shared child is
copied for each parent, and a chain of a million nodes is a million calls deep.
"""

from typing import TYPE_CHECKING

import numpy as np

from cobasis.models.checker_weights import read_modes, read_numbers
from cobasis.models.graph_format import LARGEST_DEPTH, Array, Precision
from cobasis.models.graph_wire import refuse

if TYPE_CHECKING:
    import onnx

_FIXED = {"aggregate_function": 1, "post_transform": 0}
_LISTS = (
    "tree_roots",
    "nodes_featureids",
    "nodes_truenodeids",
    "nodes_trueleafs",
    "nodes_falsenodeids",
    "nodes_falseleafs",
    "leaf_targetids",
)
_TENSORS = ("nodes_modes", "nodes_splits", "leaf_weights")
ATTRIBUTES = (*_FIXED, "n_targets", *_LISTS, *_TENSORS)


def check_trees(node: "onnx.NodeProto", *, n_columns: int, precision: Precision) -> int:
    """Check a ``TreeEnsemble``; return how many columns it gives."""
    given = _attributes(node)
    lists = {name: np.array(given[name].ints, dtype=np.int64) for name in _LISTS}
    splits = read_numbers(given["nodes_splits"].t, precision)
    leaves = read_numbers(given["leaf_weights"].t, precision)
    modes = read_modes(given["nodes_modes"].t)
    n_nodes, n_targets = len(lists["nodes_featureids"]), int(given["n_targets"].i)
    per_node = [lists[name] for name in _LISTS if name.startswith("nodes_")]
    if {each.shape for each in (*per_node, splits, modes)} != {(n_nodes,)} or not n_nodes:
        refuse("its trees name some nodes without all that a node has")
    if leaves.shape != lists["leaf_targetids"].shape or modes.any():
        refuse("its trees have leaves without a sum, or compare otherwise than the format does")
    _check_range(lists["nodes_featureids"], n_columns, what="compare a column")
    _check_range(lists["leaf_targetids"], n_targets, what="add to a sum")
    _check_shape(lists, n_nodes=n_nodes, n_leaves=len(leaves))
    return n_targets


def _attributes(node: "onnx.NodeProto") -> "dict[str, onnx.AttributeProto]":
    """Return the attributes by name, each of its kind, all of them once."""
    given = {each.name: each for each in node.attribute}
    if set(given) != set(ATTRIBUTES) or len(given) != len(node.attribute):
        refuse("its trees have other attributes than the format's")
    for name, each in given.items():
        expected = each.INTS if name in _LISTS else each.TENSOR if name in _TENSORS else each.INT
        if each.type != expected:
            refuse(f"its trees' attribute {name} is of another kind")
    if any(given[name].i != value for name, value in _FIXED.items()):
        refuse("its trees do not add up their leaves as they are")
    return given


def _check_range(ids: Array, size: int, *, what: str) -> None:
    """Refuse ids below zero or from `size` on."""
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        refuse(f"its trees {what} that does not exist")


def _check_shape(lists: dict[str, Array], *, n_nodes: int, n_leaves: int) -> None:
    """Refuse anything but trees: every node and leaf has one parent, which comes before it."""
    ids = np.stack([lists["nodes_truenodeids"], lists["nodes_falsenodeids"]], axis=1)
    is_leaf = np.stack([lists["nodes_trueleafs"], lists["nodes_falseleafs"]], axis=1)
    _check_range(is_leaf, 2, what="have a flag")
    _check_range(ids[is_leaf == 0], n_nodes, what="have a node")
    _check_range(ids[is_leaf == 1], n_leaves, what="have a leaf")
    _check_range(lists["tree_roots"], n_nodes, what="have a root")
    parents = np.arange(n_nodes)[:, None]
    if (ids <= parents)[is_leaf == 0].any():
        refuse("its trees have a node that comes before its parent: following it might never end")
    nodes = np.concatenate([lists["tree_roots"], ids[is_leaf == 0]])
    lone = (is_leaf == 1).all(axis=1) & (ids[:, 0] == ids[:, 1])  # a tree that is one leaf
    counted = np.bincount(ids[is_leaf == 1], minlength=n_leaves)
    np.subtract.at(counted, ids[lone, 0], 1)
    if not (np.bincount(nodes, minlength=n_nodes) == 1).all() or not (counted == 1).all():
        refuse("its trees have a node or leaf with two parents, or with none")
    level = lists["tree_roots"]
    for _ in range(LARGEST_DEPTH):
        level = ids[level][is_leaf[level] == 0]
    if len(level):
        refuse(f"its trees are deeper than {LARGEST_DEPTH}")
