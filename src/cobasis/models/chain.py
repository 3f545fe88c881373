"""A model as a chain of layers, before it is written as ONNX: the one form of all families.

Rows run through affine maps, functions applied to each number, and at most one set of trees. A
head then says what the last numbers are. Neighbouring affine maps are multiplied out in
float64, so that axes, scalers and the weights behind them travel as one matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Matrix
from cobasis.models.graph_format import ABSENT, GraphFamily

Function = Literal["Relu", "Tanh", "Sigmoid", "Cos"]
Head = Literal["probabilities", "decision", "prediction"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Affine:
    """``rows @ weights + offset``.

    Attributes
    ----------
    weights : ndarray of shape (n_in, n_out)
        Any matrix.
    offset : ndarray of shape (n_out,)
        Added to every row.
    """

    weights: Matrix = field(repr=False)
    offset: Matrix = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Trees:
    """Decision trees whose leaves add up, in the arrays of ONNX's ``TreeEnsemble``.

    A row goes to the true side where its value is not above the split.

    Attributes
    ----------
    n_in, n_out : int
        Columns in, and sums out.
    roots : ndarray of shape (n_trees,)
        The node at which each tree begins.
    columns, splits : ndarray of shape (n_nodes,)
        What each node compares, and with what.
    true_ids, false_ids : ndarray of shape (n_nodes,)
        A node, or a leaf where the flag below is 1; a node has a larger number than its parent.
    true_leaves, false_leaves : ndarray of shape (n_nodes,)
        1 where the id is a leaf's.
    targets, leaves : ndarray of shape (n_leaves,)
        Which sum a leaf adds to, and how much.
    """

    n_in: int
    n_out: int
    roots: Integers = field(repr=False)
    columns: Integers = field(repr=False)
    splits: Matrix = field(repr=False)
    true_ids: Integers = field(repr=False)
    false_ids: Integers = field(repr=False)
    true_leaves: Integers = field(repr=False)
    false_leaves: Integers = field(repr=False)
    targets: Integers = field(repr=False)
    leaves: Matrix = field(repr=False)


Layer: TypeAlias = Affine | Trees | Function


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A whole model.

    Attributes
    ----------
    family : str
        Which family of the format it is.
    layers : tuple of Affine, Trees or str
        In order; a string is a function applied to each number. The last one is affine.
    head : {"probabilities", "decision", "prediction"}
        Logits that become likelihoods, scores as they are, or one number.
    """

    family: GraphFamily
    layers: tuple[Layer, ...]
    head: Head


def folded(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Multiply out neighbouring affine maps."""
    done: list[Layer] = []
    for layer in layers:
        last = done[-1] if done else None
        if isinstance(layer, Affine) and isinstance(last, Affine):
            done[-1] = Affine(
                weights=last.weights @ layer.weights,
                offset=last.offset @ layer.weights + layer.offset,
            )
        else:
            done.append(layer)
    return tuple(done)


def spread_over_classes(scores: Affine, *, present: Integers, n_classes: int, head: Head) -> Affine:
    """Widen a classifier's last map to one column for each agreed class."""
    weights, offset = scores.weights, scores.offset
    if weights.shape[1] == 1:
        first = 0.0 if head == "probabilities" else -1.0
        sides = np.array([first, 1.0])
        weights, offset = weights * sides, offset * sides
    wide = np.zeros((len(weights), n_classes))
    level = np.full(n_classes, ABSENT if head == "probabilities" else -1.0)
    wide[:, present], level[present] = weights, offset
    return Affine(weights=wide, offset=level)
