"""Fitted perceptrons and trees of scikit-learn, and xgboost's trees, as layers of a chain.

xgboost compares in float32, and strictly: a row whose value is below the split goes left. A chain
goes left where it is not above. So a split moves down by a little less than half of float32's step:
to the same side of every row, whether rows come as float32 or as float64.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cobasis.linalg.arrays import Array, Integers, Matrix
from cobasis.models import Estimator
from cobasis.models.chain import LEAF, Affine, Layer, Trees

_BELOW_HALF = 0.49


def network_layers(estimator: Estimator) -> list[Layer]:
    layers: list[Layer] = []
    for weights, offset in zip(estimator.coefs_, estimator.intercepts_, strict=True):
        layers += [Affine(weights=weights, offset=offset), "Relu"]
    return layers[:-1]


class Tree(NamedTuple):
    """One tree as its library has it: by entry, where the root is the first one."""

    sides: Integers  # the two entries below, of shape (entries, 2)
    is_leaf: Array
    columns: Integers
    numbers: Matrix  # splits, and what leaves add


def boosted_layers(estimator: Estimator) -> list[Layer]:
    rounds = estimator._predictors  # noqa: SLF001 -- scikit-learn shows its trees nowhere else
    tables = [predictor.nodes for each in rounds for predictor in each]
    trees = [
        Tree(
            sides=np.stack([table["left"], table["right"]], axis=1).astype(np.int64),
            is_leaf=table["is_leaf"].astype(bool),
            columns=table["feature_idx"].astype(np.int64),
            numbers=np.where(table["is_leaf"], table["value"], table["num_threshold"]),
        )
        for table in tables
    ]
    start = estimator._baseline_prediction.reshape(-1)  # noqa: SLF001 -- same
    return _forest(trees, n_in=int(estimator.n_features_in_), start=start.astype(np.float64))


def xgboost_layers(trees_as_json: bytes) -> list[Layer]:
    told = json.loads(trees_as_json)["learner"]
    start = np.array(json.loads(told["learner_model_param"]["base_score"]), dtype=np.float64)
    if told["objective"]["name"] == "binary:logistic":
        start = np.log(start) - np.log1p(-start)
    trees = []
    for each in told["gradient_booster"]["model"]["trees"]:
        sides = np.array([each["left_children"], each["right_children"]], dtype=np.int64).T
        is_leaf = sides[:, 0] < 0
        conditions = np.array(each["split_conditions"], dtype=np.float32)
        # numbers that float32 rounds to the one below each split, and float64 holds
        below = np.nextafter(conditions, np.float32(-np.inf)).astype(np.float64)
        not_above = below + _BELOW_HALF * (conditions.astype(np.float64) - below)
        numbers = np.where(is_leaf, conditions.astype(np.float64), not_above)
        columns = np.array(each["split_indices"], dtype=np.int64)
        trees.append(Tree(sides=sides, is_leaf=is_leaf, columns=columns, numbers=numbers))
    return _forest(trees, n_in=int(told["learner_model_param"]["num_feature"]), start=start)


def _forest(trees: Sequence[Tree], *, n_in: int, start: Matrix) -> list[Layer]:
    """Put the places of all trees in order, level by level, and `start` behind their sums."""
    trees = [_with_a_node(tree) if tree.is_leaf[0] else tree for tree in trees]
    sizes = [len(tree.sides) for tree in trees]
    roots = np.cumsum([0, *sizes[:-1]])
    sides, is_leaf, columns, numbers = map(np.concatenate, zip(*trees, strict=True))
    sides += np.repeat(roots, sizes)[:, np.newaxis]
    levels = [roots]
    while len(levels[-1]):
        levels.append(sides[levels[-1]][~is_leaf[levels[-1]]].ravel())
    order = np.concatenate(levels)
    joined = Trees(
        n_in=n_in,
        n_out=len(start),
        n_trees=len(trees),
        columns=np.where(is_leaf, LEAF, columns)[order],
        numbers=numbers[order],
    )
    return [joined, Affine(weights=np.eye(len(start)), offset=start)]


def _with_a_node(tree: Tree) -> Tree:
    """Put a node in front that leads to the one leaf either way: ONNX knows no leaf for a root."""
    return Tree(
        sides=np.array([[1, 2], [0, 0], [0, 0]]),
        is_leaf=np.array([False, True, True]),
        columns=np.zeros(3, dtype=np.int64),
        numbers=np.array([0.0, *tree.numbers[:1], *tree.numbers[:1]]),
    )
