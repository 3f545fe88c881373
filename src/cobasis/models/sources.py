"""Fitted estimators of scikit-learn, read into chains; their trees, and xgboost's, as well.

xgboost compares in float32, and strictly: a row whose value is below the split goes left. A chain
goes left where it is not above. So a split moves down by a little less than half of float32's step:
to the same side of every row, whether rows come as float32 or as float64.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

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
_LOSSES = ("log_loss", "squared_error")
_BELOW_HALF = 0.49


def read_chain(trained: "TrainedModel | Chain", *, task: Task, n_classes: int) -> Chain:
    """Read a trained model into layers, its axes first; a chain is one already."""
    if isinstance(trained, Chain):
        return trained
    refuse_row_carrying(trained.estimator)
    steps = [step for _, step in getattr(trained.estimator, "steps", [("", trained.estimator)])]
    layers: list[Layer] = [Affine(weights=trained.axes, offset=np.zeros(len(trained.axes)))]
    for step in steps[:-1]:
        layers += _transformer(step)
    last = steps[-1]
    family, more, head = _model(last)
    *inner, scores = [*layers, *more]
    if (head == "prediction") != (task == "regression") or not isinstance(scores, Affine):
        _refuse(last, f"it is not for {task}")
    if "Cos" in inner and family != "boosted_trees":
        family = "rff"
    layers = [*inner, scores]
    if task == "regression":
        if scores.weights.shape[1] != 1:
            _refuse(last, f"it predicts {scores.weights.shape[1]} numbers at once")
        return Chain(family=family, layers=folded(layers), head=head)
    present = _positions(last.classes_, n_classes)
    found = chain_of(family, layers, present=present, n_classes=n_classes, head=head)
    return replace(found, layers=folded(found.layers))


def _positions(classes: Sequence[object], n_classes: int) -> Integers:
    """Return the classes that training rows had, which are positions in the agreed ones."""
    found = np.asarray(classes)
    if found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= n_classes:
        raise LabelError(
            f"the model knows labels that are no positions in the {n_classes} agreed classes. "
            "Train it on labels as an upload carries them."
        )
    return found.astype(np.int64)


def _refuse(step: Estimator, reason: str) -> NoReturn:
    """Raise OptionError for a step that the format has no form for."""
    raise OptionError(
        f"a {type(step).__name__} cannot be written as a model file: {reason}. The format has "
        "ridge, logistic regression, multilayer perceptrons, random Fourier features before one of "
        "them, histogram-boosted trees, and scalers before any of them."
    )


def _kind(step: Estimator) -> str:
    """Return the name of scikit-learn's class that a step is of, or is derived from."""
    kinds = type(step).__mro__
    return next((each.__name__ for each in kinds if each.__module__.startswith("sklearn.")), "")


def _transformer(step: Estimator) -> tuple[Layer, ...]:
    """Read a step before the last: a scaler, or random Fourier features."""
    match _kind(step):
        case "StandardScaler":
            width = int(step.n_features_in_)
            scale = np.ones(width) if not step.with_std else step.scale_
            mean = np.zeros(width) if not step.with_mean else step.mean_
            return (Affine(weights=np.diag(1.0 / scale), offset=-mean / scale),)
        case "RBFSampler":
            width = int(step.n_components)
            factor = Affine(weights=np.eye(width) * np.sqrt(2.0 / width), offset=np.zeros(width))
            waves = Affine(weights=step.random_weights_, offset=step.random_offset_)
            return waves, "Cos", factor
    return _refuse(step, "its kind is not known")


def _model(step: Estimator) -> tuple[ChainFamily, Sequence[Layer], Head]:
    """Read the last step: family, layers, and how it ends."""
    family, head = _MODELS.get(_kind(step)) or _refuse(step, "its kind is not known")
    if family == "boosted_trees":
        return family, _boosted_layers(step), head
    if family == "mlp":
        return family, _network(step), head
    weights = np.atleast_2d(np.asarray(step.coef_, dtype=np.float64)).T
    offset = np.broadcast_to(np.asarray(step.intercept_, dtype=np.float64), weights.shape[1])
    return family, [Affine(weights=weights, offset=offset)], head


def _network(step: Estimator) -> list[Layer]:
    """Read a network's maps, with its function between them."""
    if step.out_activation_ not in {"identity", "softmax", "logistic"}:
        _refuse(step, f"its last function is {step.out_activation_}")
    layers: list[Layer] = []
    for weights, offset in zip(step.coefs_, step.intercepts_, strict=True):
        function = _FUNCTIONS[step.activation] if layers else ()
        layers += [*function, Affine(weights=weights, offset=offset)]
    return layers


class Tree(NamedTuple):
    """One tree as its library has it: by entry, where the root is the first one."""

    sides: Integers  # the two entries below, of shape (entries, 2)
    is_leaf: Array
    columns: Integers
    numbers: Matrix  # splits, and what leaves add


def _boosted_layers(estimator: Estimator) -> tuple[Layer, ...]:
    """Return the layers of a fitted histogram gradient boosting model."""
    rounds = estimator._predictors  # noqa: SLF001 -- scikit-learn shows its trees nowhere else
    tables = [predictor.nodes for each in rounds for predictor in each]
    if estimator.loss not in _LOSSES or any(table["is_categorical"].any() for table in tables):
        raise OptionError(
            f"boosted trees with loss='{estimator.loss}' or with columns of categories cannot be "
            f"written as a model file. Use one of {', '.join(_LOSSES)} and numbers."
        )
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
    """Return the layers of xgboost's trees."""
    told = json.loads(trees_as_json)["learner"]
    start = np.array(json.loads(told["learner_model_param"]["base_score"]), dtype=np.float64)
    if told["objective"]["name"] == "binary:logistic":
        start = np.log(start) - np.log1p(-start)
    trees = []
    for each in told["gradient_booster"]["model"]["trees"]:
        sides = np.array([each["left_children"], each["right_children"]], dtype=np.int64).T
        is_leaf = sides[:, 0] < 0
        conditions = np.array(each["split_conditions"], dtype=np.float32)
        numbers = np.where(is_leaf, conditions.astype(np.float64), _not_above(conditions))
        columns = np.array(each["split_indices"], dtype=np.int64)
        trees.append(Tree(sides=sides, is_leaf=is_leaf, columns=columns, numbers=numbers))
    return _forest(trees, n_in=int(told["learner_model_param"]["num_feature"]), start=start)


def _not_above(splits: "np.ndarray[Any, np.dtype[np.float32]]") -> Matrix:
    """Return numbers that float32 rounds to the one below each split, and float64 holds."""
    below = np.nextafter(splits, np.float32(-np.inf)).astype(np.float64)
    found: Matrix = below + _BELOW_HALF * (splits.astype(np.float64) - below)
    return found


def _forest(trees: Sequence[Tree], *, n_in: int, start: Matrix) -> tuple[Layer, ...]:
    """Put the places of all trees in order, level by level, and `start` behind their sums."""
    trees = [_with_a_node(tree) if tree.is_leaf[0] else tree for tree in trees]
    roots = np.cumsum([0, *(len(tree.sides) for tree in trees)])[:-1]
    sides = np.concatenate([tree.sides + root for tree, root in zip(trees, roots, strict=True)])
    is_leaf = np.concatenate([tree.is_leaf for tree in trees])
    levels = [roots]
    while len(levels[-1]):
        levels.append(sides[levels[-1]][~is_leaf[levels[-1]]].ravel())
    order = np.concatenate(levels)
    columns = np.concatenate([tree.columns for tree in trees])
    joined = Trees(
        n_in=n_in,
        n_out=len(start),
        n_trees=len(trees),
        columns=np.where(is_leaf, LEAF, columns)[order],
        numbers=np.concatenate([tree.numbers for tree in trees])[order],
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
