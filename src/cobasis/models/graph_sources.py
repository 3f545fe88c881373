"""Fitted scikit-learn estimators, read into the chain of layers that the model format has."""

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np

from cobasis.errors import LabelError, OptionError
from cobasis.models.carrying import refuse_row_carrying
from cobasis.models.chain import (
    Affine,
    Chain,
    Function,
    Head,
    Integers,
    Layer,
    folded,
    spread_over_classes,
)
from cobasis.models.families import Estimator
from cobasis.models.graph_format import GraphFamily, GraphTask
from cobasis.models.graph_trees import boosted_layers
from cobasis.models.graph_xgboost import xgboost_layers
from cobasis.models.training import TrainedModel

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
_Read: TypeAlias = tuple[GraphFamily, tuple[Layer, ...], Head]
_Reader = TypeVar("_Reader")

_WRITTEN_BY = ("sklearn.", "cobasis.engine.")
_KNOWN = (
    "ridge, logistic regression, multilayer perceptrons, random Fourier features before one of "
    "them, histogram-boosted trees, and scalers before any of them"
)


def read_chain(trained: TrainedModel, *, task: GraphTask, n_classes: int) -> Chain:
    """Read a trained model into layers, its axes first."""
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
