"""Fitted estimators of scikit-learn, read into chains; their trees, and xgboost's, as well.

In a chain a leaf and a node are numbered apart, and a node after its parent. xgboost compares in
float32, and strictly: a row whose value is below the split goes left. A chain goes left where it
is not above. So a split moves down by a little less than half of float32's step: to the same side
of every row, whether rows come as float32 or as float64.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from cobasis.errors import LabelError, OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.models import Estimator, Task
from cobasis.models.chain import (
    Affine,
    Array,
    Chain,
    ChainFamily,
    Function,
    Head,
    Integers,
    Layer,
    Trees,
    folded,
    spread_over_classes,
)
from cobasis.models.row_carrying import refuse_row_carrying

if TYPE_CHECKING:
    from cobasis.models.trainer import TrainedModel

_FUNCTIONS: dict[str, tuple[Function, ...]] = {
    "identity": (),
    "relu": ("Relu",),
    "tanh": ("Tanh",),
    "logistic": ("Sigmoid",),
}
_HEADS: dict[str, Head] = {
    "identity": "prediction",
    "softmax": "probabilities",
    "logistic": "probabilities",
}
_Read: TypeAlias = tuple[ChainFamily, tuple[Layer, ...], Head]
_Reader = TypeVar("_Reader")

_LOSSES = ("log_loss", "squared_error")
_BELOW_HALF = 0.49

_WRITTEN_BY = ("sklearn.", "cobasis.")
_KNOWN = (
    "ridge, logistic regression, multilayer perceptrons, random Fourier features before one of "
    "them, histogram-boosted trees, and scalers before any of them"
)


def read_chain(trained: "TrainedModel | Chain", *, task: Task, n_classes: int) -> Chain:
    """Read a trained model into layers, its axes first; a chain is one already."""
    if isinstance(trained, Chain):
        return trained
    refuse_row_carrying(trained.estimator)
    steps = [step for _, step in getattr(trained.estimator, "steps", [("", trained.estimator)])]
    before: list[Layer] = [Affine(weights=trained.axes, offset=np.zeros(len(trained.axes)))]
    for step in steps[:-1]:
        before += _reader(_TRANSFORMERS, step)(step)
    last = steps[-1]
    family, layers, head = _reader(_MODELS, last)(last)
    random = any(type(step).__name__ == "RBFSampler" for step in steps[:-1])
    *inner, scores = layers
    if (head == "prediction") != (task == "regression") or not isinstance(scores, Affine):
        _refuse(last, f"it is not for {task}")
    if task == "regression":
        if scores.weights.shape[1] != 1:
            _refuse(last, f"it predicts {scores.weights.shape[1]} numbers at once")
    else:
        positions = _positions(last.classes_, n_classes)
        scores = spread_over_classes(scores, present=positions, n_classes=n_classes, head=head)
    return Chain(
        family="rff" if random and family != "boosted_trees" else family,
        layers=folded([*before, *inner, scores]),
        head=head,
    )


def _positions(classes: Sequence[object], n_classes: int) -> Integers:
    """Return the classes that training rows had, which are positions in the agreed ones."""
    found = np.asarray(classes)
    if found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= n_classes:
        raise LabelError(
            f"the model knows labels that are no positions in the {n_classes} agreed classes. "
            "Train it on labels as an upload carries them."
        )
    return found.astype(np.int64)


def _reader(table: Mapping[str, _Reader], step: Estimator) -> _Reader:
    """Return how to read a step, by its class or one of those above it."""
    for kind in type(step).__mro__:
        if kind.__name__ in table and kind.__module__.startswith(_WRITTEN_BY):
            return table[kind.__name__]
    return _refuse(step, "its kind is not known")


def _refuse(step: Estimator, reason: str) -> NoReturn:
    """Raise OptionError for a step that the format has no form for."""
    raise OptionError(
        f"a {type(step).__name__} cannot be written as a model file: {reason}. The format has "
        f"{_KNOWN}."
    )


def _linear(step: Estimator) -> Affine:
    """Read ``coef_`` and ``intercept_``, one row for each output."""
    weights = np.atleast_2d(np.asarray(step.coef_, dtype=np.float64)).T
    offset = np.broadcast_to(np.asarray(step.intercept_, dtype=np.float64), weights.shape[1])
    return Affine(weights=weights, offset=offset)


def _ridge(step: Estimator) -> _Read:
    return "linear", (_linear(step),), "prediction"


def _ridge_classifier(step: Estimator) -> _Read:
    return "linear", (_linear(step),), "decision"


def _logistic(step: Estimator) -> _Read:
    return "logistic", (_linear(step),), "probabilities"


def _perceptron(step: Estimator) -> _Read:
    """Read a network's maps, with its function between them."""
    if step.out_activation_ not in _HEADS:
        _refuse(step, f"its last function is {step.out_activation_}")
    layers: list[Layer] = []
    for weights, offset in zip(step.coefs_, step.intercepts_, strict=True):
        layers += [*_FUNCTIONS[step.activation], Affine(weights=weights, offset=offset)]
    if step.activation != "identity":
        layers = layers[1:]
    return "mlp", folded(layers), _HEADS[step.out_activation_]


def _boosted(step: Estimator) -> _Read:
    regresses = getattr(step, "classes_", None) is None
    layers = xgboost_layers(step) if hasattr(step, "booster") else boosted_layers(step)
    return "boosted_trees", layers, "prediction" if regresses else "probabilities"


def _standard_scaler(step: Estimator) -> tuple[Layer, ...]:
    """Read a scaler that takes a mean away and divides by a scale, if it does."""
    width = int(step.n_features_in_)
    scale = np.ones(width) if not step.with_std else step.scale_
    mean = np.zeros(width) if not step.with_mean else step.mean_
    return (Affine(weights=np.diag(1.0 / scale), offset=-mean / scale),)


def _random_features(step: Estimator) -> tuple[Layer, ...]:
    """Read random Fourier features; their common factor goes into what follows."""
    width = int(step.n_components)
    factor = np.sqrt(2.0 / width)
    return (
        Affine(weights=step.random_weights_, offset=step.random_offset_),
        "Cos",
        Affine(weights=np.eye(width) * factor, offset=np.zeros(width)),
    )


_TRANSFORMERS: dict[str, Callable[[Estimator], tuple[Layer, ...]]] = {
    "StandardScaler": _standard_scaler,
    "RBFSampler": _random_features,
}
_MODELS: dict[str, Callable[[Estimator], _Read]] = {
    "Ridge": _ridge,
    "RidgeCV": _ridge,
    "RidgeClassifier": _ridge_classifier,
    "RidgeClassifierCV": _ridge_classifier,
    "LogisticRegression": _logistic,
    "MLPClassifier": _perceptron,
    "MLPRegressor": _perceptron,
    "BoostedTrees": _boosted,
    "HistGradientBoostingClassifier": _boosted,
    "HistGradientBoostingRegressor": _boosted,
}


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


def xgboost_layers(estimator: Estimator) -> tuple[Layer, ...]:
    """Return the layers of xgboost's trees."""
    told = json.loads(bytes(estimator.booster.save_raw("json")))["learner"]
    trees = told["gradient_booster"]["model"]["trees"]
    start = np.array(json.loads(told["learner_model_param"]["base_score"]), dtype=np.float64)
    if told["objective"]["name"] == "binary:logistic":
        start = np.log(start) - np.log1p(-start)
    n_in = int(told["learner_model_param"]["num_feature"])
    joined = joined_trees([_tree(each) for each in trees], n_in=n_in, n_out=len(start))
    return joined, Affine(weights=np.eye(len(start)), offset=start)


def _tree(told: dict[str, Any]) -> Tree:
    """Read one tree, its entries in an order in which parents come first."""
    sides = np.array([told["left_children"], told["right_children"]], dtype=np.int64).T
    order = [0]
    for entry in order:
        order += [side for side in sides[entry].tolist() if side >= 0]
    place = np.zeros(len(sides), dtype=np.int64)
    place[order] = np.arange(len(order))
    conditions = np.array(told["split_conditions"], dtype=np.float32)[order]
    return renumbered(
        place[sides[order]],
        is_leaf=sides[order, 0] < 0,
        columns=np.array(told["split_indices"], dtype=np.int64)[order],
        splits=_not_above(conditions),
        values=conditions.astype(np.float64),
    )


def _not_above(splits: "np.ndarray[Any, np.dtype[np.float32]]") -> Matrix:
    """Return numbers that float32 rounds to the one below each split, and float64 holds."""
    below = np.nextafter(splits, np.float32(-np.inf)).astype(np.float64)
    found: Matrix = below + _BELOW_HALF * (splits.astype(np.float64) - below)
    return found
