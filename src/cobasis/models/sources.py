"""Fitted estimators of scikit-learn, read into chains; their trees, and xgboost's, as well.

xgboost compares in float32, and strictly: a row whose value is below the split goes left. A chain
goes left where it is not above. So a split moves down by a little less than half of float32's step:
to the same side of every row, whether rows come as float32 or as float64.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

import numpy as np

from cobasis.errors import LabelError, OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.models import ChainFamily, Estimator, Task
from cobasis.models.chain import (
    LEAF,
    Affine,
    Array,
    Chain,
    Function,
    Head,
    Integers,
    Layer,
    Trees,
    chain_of,
    folded,
)
from cobasis.models.tuning import refuse_row_carrying

if TYPE_CHECKING:
    from cobasis.models.trainer import TrainedModel

_FUNCTIONS: dict[str, tuple[Function, ...]] = {
    "identity": (),
    "relu": ("Relu",),
    "tanh": ("Tanh",),
    "logistic": ("Sigmoid",),
}
_MODELS: dict[str, tuple[ChainFamily, Head]] = {
    "Ridge": ("linear", "prediction"),
    "RidgeCV": ("linear", "prediction"),
    "RidgeClassifier": ("linear", "decision"),
    "RidgeClassifierCV": ("linear", "decision"),
    "LogisticRegression": ("logistic", "probabilities"),
    "MLPClassifier": ("mlp", "probabilities"),
    "MLPRegressor": ("mlp", "prediction"),
    "HistGradientBoostingClassifier": ("boosted_trees", "probabilities"),
    "HistGradientBoostingRegressor": ("boosted_trees", "prediction"),
}
_BELOW_HALF = 0.49


def read_chain(trained: "TrainedModel | Chain", *, task: Task, n_classes: int) -> Chain:
    """Read a trained model into layers, its axes first; a chain is one already."""
    if isinstance(trained, Chain):
        return trained
    model, axes = trained.estimator, trained.axes
    refuse_row_carrying(model)
    kinds = (each.__name__ for each in type(model).__mro__ if each.__module__.startswith("sklearn"))
    family, head = _MODELS.get(next(kinds, "")) or _refuse(model, "its kind is not known")
    if (head == "prediction") != (task == "regression"):
        _refuse(model, f"it is not for {task}")
    made: list[Layer] = [Affine(weights=axes, offset=np.zeros(len(axes))), *_layers(model, family)]
    layers = folded(made)
    if task == "regression":
        if (width := cast("Affine", layers[-1]).weights.shape[1]) != 1:
            _refuse(model, f"it predicts {width} numbers at once")
        return Chain(family=family, layers=layers, head=head)
    present = np.asarray(model.classes_)
    if present.dtype.kind not in "iu" or present.min() < 0 or present.max() >= n_classes:
        raise LabelError(
            f"the model knows labels that are no positions in the {n_classes} agreed classes. "
            "Train it on labels as an upload carries them."
        )
    return chain_of(family, layers, present=present, n_classes=n_classes, head=head)


def _refuse(model: Estimator, reason: str) -> NoReturn:
    raise OptionError(
        f"a {type(model).__name__} cannot be written as a model file: {reason}. The format has "
        "ridge, logistic regression, multilayer perceptrons and histogram-boosted trees."
    )


def _layers(model: Estimator, family: ChainFamily) -> Sequence[Layer]:
    if family == "boosted_trees":
        return _boosted_layers(model)
    if family == "mlp":
        if model.out_activation_ not in {"identity", "softmax", "logistic"}:
            _refuse(model, f"its last function is {model.out_activation_}")
        layers: list[Layer] = []
        for weights, offset in zip(model.coefs_, model.intercepts_, strict=True):
            function = _FUNCTIONS[model.activation] if layers else ()
            layers += [*function, Affine(weights=weights, offset=offset)]
        return layers
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)).T
    offset = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), weights.shape[1])
    return [Affine(weights=weights, offset=offset)]


class Tree(NamedTuple):
    """One tree as its library has it: by entry, where the root is the first one."""

    sides: Integers  # the two entries below, of shape (entries, 2)
    is_leaf: Array
    columns: Integers
    numbers: Matrix  # splits, and what leaves add


def _boosted_layers(estimator: Estimator) -> tuple[Layer, ...]:
    rounds = estimator._predictors  # noqa: SLF001 -- scikit-learn shows its trees nowhere else
    tables = [predictor.nodes for each in rounds for predictor in each]
    if estimator.loss not in {"log_loss", "squared_error"}:
        _refuse(estimator, f"its loss is {estimator.loss}")
    if any(table["is_categorical"].any() for table in tables):
        _refuse(estimator, "it has columns of categories")
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


def xgboost_layers(trees_as_json: bytes) -> tuple[Layer, ...]:
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


def _forest(trees: Sequence[Tree], *, n_in: int, start: Matrix) -> tuple[Layer, ...]:
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
    return joined, Affine(weights=np.eye(len(start)), offset=start)


def _with_a_node(tree: Tree) -> Tree:
    """Put a node in front that leads to the one leaf either way: ONNX knows no leaf for a root."""
    return Tree(
        sides=np.array([[1, 2], [0, 0], [0, 0]]),
        is_leaf=np.array([False, True, True]),
        columns=np.zeros(3, dtype=np.int64),
        numbers=np.array([0.0, *tree.numbers[:1], *tree.numbers[:1]]),
    )
