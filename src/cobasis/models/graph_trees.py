"""Scikit-learn's histogram-boosted trees as arrays of the model format.

A leaf and a node are numbered apart there, and a node after its parent.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cobasis.errors import OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.models.chain import Affine, Integers, Layer, Trees
from cobasis.models.families import Estimator
from cobasis.models.graph_format import Array

_LOSSES = ("log_loss", "squared_error")


@dataclass(frozen=True, kw_only=True)
class Tree:
    """One tree with leaves and nodes numbered apart, each from zero."""

    columns: Integers = field(repr=False)
    splits: Matrix = field(repr=False)
    ids: Integers = field(repr=False)
    leaf_sides: Integers = field(repr=False)
    leaves: Matrix = field(repr=False)


def boosted_layers(estimator: Estimator) -> tuple[Layer, ...]:
    """Return the layers of a fitted histogram gradient boosting model."""
    rounds = estimator._predictors  # noqa: SLF001 -- scikit-learn shows its trees nowhere else
    tables = [predictor.nodes for each in rounds for predictor in each]
    if estimator.loss not in _LOSSES or any(table["is_categorical"].any() for table in tables):
        raise OptionError(
            f"boosted trees with loss='{estimator.loss}' or with columns of categories cannot be "
            f"written as a model file. Use one of {', '.join(_LOSSES)} and numbers."
        )
    n_out = int(estimator.n_trees_per_iteration_)
    joined = joined_trees(
        [_of_scikit_learn(table) for table in tables],
        n_in=int(estimator.n_features_in_),
        n_out=n_out,
    )
    start = estimator._baseline_prediction.reshape(-1)  # noqa: SLF001 -- same
    return joined, Affine(weights=np.eye(n_out), offset=start.astype(np.float64))


def _of_scikit_learn(table: Array) -> Tree:
    """Read one table of scikit-learn's."""
    return renumbered(
        np.stack([table["left"], table["right"]], axis=1).astype(np.int64),
        is_leaf=table["is_leaf"].astype(bool),
        columns=table["feature_idx"].astype(np.int64),
        splits=table["num_threshold"],
        values=table["value"],
    )


def renumbered(
    sides: Integers, *, is_leaf: Array, columns: Integers, splits: Matrix, values: Matrix
) -> Tree:
    """Give leaves and nodes of one tree numbers of their own."""
    if is_leaf[0]:
        same = np.zeros((1, 2), dtype=np.int64)
        return Tree(
            columns=same[:, 0],
            splits=np.zeros(1),
            ids=same,
            leaf_sides=same + 1,
            leaves=values[:1],
        )
    number = np.where(is_leaf, np.cumsum(is_leaf), np.cumsum(~is_leaf)) - 1
    below = sides[~is_leaf]
    return Tree(
        columns=columns[~is_leaf],
        splits=splits[~is_leaf],
        ids=number[below],
        leaf_sides=is_leaf[below].astype(np.int64),
        leaves=values[is_leaf],
    )


def joined_trees(trees: Sequence[Tree], *, n_in: int, n_out: int) -> Trees:
    """Put trees behind each other; the k-th of a round adds to the k-th sum."""
    first_node = np.cumsum([0, *(len(tree.columns) for tree in trees)])
    first_leaf = np.cumsum([0, *(len(tree.leaves) for tree in trees)])
    moved = [
        tree.ids + np.where(tree.leaf_sides, leaf, node)
        for tree, node, leaf in zip(trees, first_node, first_leaf, strict=False)
    ]
    ids = np.concatenate(moved)
    sides = np.concatenate([tree.leaf_sides for tree in trees])
    return Trees(
        n_in=n_in,
        n_out=n_out,
        roots=first_node[:-1],
        columns=np.concatenate([tree.columns for tree in trees]),
        splits=np.concatenate([tree.splits for tree in trees]),
        true_ids=ids[:, 0],
        false_ids=ids[:, 1],
        true_leaves=sides[:, 0],
        false_leaves=sides[:, 1],
        targets=np.repeat(
            np.arange(len(trees)) % n_out, [len(tree.leaves) for tree in trees]
        ).astype(np.int64),
        leaves=np.concatenate([tree.leaves for tree in trees]),
    )
