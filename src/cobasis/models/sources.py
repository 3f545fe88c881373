"""Fitted estimators of scikit-learn, read into chains; their trees, and xgboost's, as well.

xgboost compares in float32, and strictly: a row whose value is below the split goes left. A chain
goes left where it is not above. So a split moves down by a little less than half of float32's step:
to the same side of every row, whether rows come as float32 or as float64.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np

from cobasis.errors import LabelError, OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.models import Estimator, Task
from cobasis.models.chain import (
    LEAF,
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


class Tree(NamedTuple):
    """One tree as its library has it: by entry, where the root is the first one."""

    sides: Integers  # the two entries below, of shape (entries, 2)
    is_leaf: Array
    columns: Integers
    numbers: Matrix  # splits, and what leaves add


def boosted_layers(estimator: Estimator) -> tuple[Layer, ...]:
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


def xgboost_layers(estimator: Estimator) -> tuple[Layer, ...]:
    """Return the layers of xgboost's trees."""
    told = json.loads(bytes(estimator.booster.save_raw("json")))["learner"]
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
