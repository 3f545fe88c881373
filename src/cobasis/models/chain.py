"""A model as a chain of layers: the one form in which a model exists, travels and is run.

Rows run through affine maps, functions of each number, and sums of trees, in float64. A
head then says what the last numbers are. Neighbouring affine maps are multiplied out, so that axes
and the weights behind them are one matrix.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal, NoReturn, TypeAlias, cast

import numpy as np
import scipy

from cobasis.errors import EstimateError, ModelFileError, NotFiniteError, OptionError
from cobasis.features.maps import Turn
from cobasis.linalg.arrays import Array, Integers, Matrix, as_matrix
from cobasis.models import FAMILIES, ChainFamily
from cobasis.models.regressions import RegressionFit

Function = Literal["Relu", "Tanh", "Sigmoid", "Cos", "Square", "LogSumExp"]
Head = Literal["probabilities", "decision", "prediction"]

ABSENT = -1e30
"""Logit of a class that no training row had: its likelihood is exactly zero."""

_NUMBERS_AT_ONCE = 2**20
_PAIRS_AT_ONCE = 2**15
"""Rows times trees that are walked down together, one level at a time."""

LEAF = -1
"""What stands for a column at a leaf."""

_NOT_FINITE = "it gives numbers that are not finite"


@dataclass(frozen=True, kw_only=True, eq=False)
class Affine:
    weights: Matrix = field(repr=False)
    offset: Matrix = field(repr=False)

    def apply(self, rows: Matrix) -> Matrix:
        mapped: Matrix = rows @ self.weights
        mapped += self.offset
        return mapped


@dataclass(frozen=True, kw_only=True, eq=False)
class Trees:
    """Decision trees whose leaves add up, the k-th of a round to the k-th sum."""

    # Places of all trees stand level by level: first every root, then the two children of the first
    # node, of the second, and so on. So nothing says where a child is, and nothing can be wrong
    # about it: no way down ends elsewhere or never.

    n_in: int
    n_out: int
    n_trees: int
    columns: Integers = field(repr=False)  # what a node compares; `LEAF` at a leaf
    # with what: a row goes to the first child where its value is not above; at a leaf, what it adds
    numbers: Matrix = field(repr=False)

    @property
    def is_node(self) -> Array:
        return np.not_equal(self.columns, LEAF)

    @property
    def first_children(self) -> Integers:
        """The place of each node's first child; the second is behind it."""
        return self.n_trees + 2 * np.arange(np.count_nonzero(self.is_node))

    def apply(self, rows: Matrix) -> Matrix:
        """Add up the leaves that each row comes to, tree by tree in their order."""
        if not np.isfinite(rows).all():  # NaN would go to the first child without a word
            refuse(_NOT_FINITE, run=True)
        compared, splits, following = self._walk
        sums, step = np.empty((len(rows), self.n_out)), max(1, _PAIRS_AT_ONCE // self.n_trees)
        for at in range(0, len(rows), step):
            to, values = sums[at : at + step], rows[at : at + step].ravel()
            starts = np.arange(len(to)) * rows.shape[1]
            # Values and splits are compared in float64, as scikit-learn compares them: in float32 a
            # row that lies on a split, as rows of the training do, could go to the other side.
            place = np.arange(self.n_trees)[:, np.newaxis]
            while np.isfinite(split := splits.take(place)).any():
                right = values.take(compared.take(place) + starts) > split
                place = following.take(place) + right
            for output in range(self.n_out):
                to[:, output] = self.numbers.take(place[output :: self.n_out]).sum(axis=0)
        return sums

    @cached_property
    def _walk(self) -> tuple[Array, Matrix, Array]:
        """Columns, splits and following places, by place; a leaf leads to itself."""
        is_node = self.is_node
        following = np.arange(len(self.columns), dtype=np.intp)
        following[is_node] = self.first_children
        columns = np.where(is_node, self.columns, 0).astype(np.intp)
        return columns, np.where(is_node, self.numbers, np.inf), following


Layer: TypeAlias = Affine | Trees | Function

Held: TypeAlias = list[tuple[Matrix, Integers]]
"""Logits of rows that a fit has not seen, and the place of each one's class, fit by fit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    family: ChainFamily
    # in order; a string is a function of each number, or of each row; the last one is affine
    layers: tuple[Layer, ...] = field(repr=False)
    head: Head  # logits that become likelihoods, scores as they are, or one number
    fit: RegressionFit | None = field(default=None, repr=False)  # of "regression" alone

    def predict(self, rows: Matrix) -> Array:
        """Predict positions in the agreement's classes, the first of equals, or numbers."""
        found = self.outputs(rows)
        if self.head != "prediction":
            return cast("Array", np.argmax(found, axis=1))
        with np.errstate(over="ignore"):
            told = _LINKS[self.link](found[:, 0])
        if not np.isfinite(told).all():
            raise NotFiniteError(
                "some of these rows get a rate or hazard above 1.8e308, the largest number there "
                "is, so cells of theirs are far from all that the model was trained on. Look at "
                "the smallest and largest cell of each column, for a slip or another unit, and "
                "correct these rows or leave them out."
            )
        return told

    @property
    def link(self) -> Literal["", "Exp", "Sigmoid"]:
        """What makes a number of the last layer's: of a log rate or hazard, or of log-odds."""
        if self.fit is not None and self.fit.model == "effect":
            return "Sigmoid"
        return "Exp" if self.fit and FAMILIES[self.fit.model].logarithmic else ""

    def survival(self, rows: Matrix) -> Matrix:
        """Return the share without event at each agreed horizon: of shape (n_rows, n_horizons)."""
        hazards = np.zeros(0) if self.fit is None else self.fit.hazards
        return np.exp(-self.predict(rows)[:, np.newaxis] * hazards)

    def scores(self, rows: Matrix, *, method: str) -> Matrix:
        """Score rows for each class, in the shape that scikit-learn has."""
        if method != self.method or self.head == "prediction":
            raise OptionError(
                f"this model has no {method}: it is of family {self.family}. Use {self.method}."
            )
        found = self.outputs(rows)
        if self.head == "decision":
            return found[:, 1] if found.shape[1] == 2 else found  # noqa: PLR2004
        return np.asarray(scipy.special.softmax(found, axis=1))

    @property
    def method(self) -> str:
        """What scikit-learn calls this model's scores."""
        if self.head == "prediction":
            return "predict"
        return "predict_proba" if self.likely else "decision_function"

    @property
    def likely(self) -> bool:
        return self.head == "probabilities"

    @property
    def task(self) -> Literal["classification", "regression"]:
        return "regression" if self.head == "prediction" else "classification"

    def tempered(self, held: Held) -> "Chain":
        """Return a model of the same predictions, whose likelihoods are right on held-out rows."""
        if not held:
            return self
        logits, places = map(np.concatenate, zip(*held, strict=True))
        # A true label counts as one of n + k, with one of each class added (Platt's rule for two):
        # rows that are told apart without an error would ask for infinity.
        other = logits.shape[1] / (len(logits) + logits.shape[1])
        told = (1 - other) * logits[np.arange(len(logits)), places].sum()
        told += other * logits.mean(axis=1).sum()
        found = scipy.optimize.minimize_scalar(
            lambda log: np.logaddexp.reduce(np.exp(log) * logits, 1).sum() - np.exp(log) * told,
            bounds=(-9.0, 9.0),
            method="bounded",
        )
        return self.rescaled(float(np.exp(found.x)))

    def rescaled(self, slope: float, intercept: Matrix | None = None) -> "Chain":
        *inner, last = self.layers
        last = cast("Affine", last)
        offset = slope * last.offset
        offset = offset if intercept is None else offset + intercept
        return replace(self, layers=(*inner, Affine(weights=slope * last.weights, offset=offset)))

    @property
    def n_bytes(self) -> int:
        told = (vars(layer).values() for layer in self.layers if not isinstance(layer, str))
        return sum(each.nbytes for values in told for each in values if hasattr(each, "dtype"))

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of the rows, and of what each layer gives; the last are the classes, or one."""
        found: list[int] = []
        for layer in self.layers:
            n_in, n_out = ends_of(layer, found[-1] if found else 0)
            found += [n_out] if found else [n_in, n_out]
        return tuple(found)

    def outputs(self, rows: Matrix) -> Matrix:
        widths = self.widths
        table = as_matrix(rows, name="the aligned rows", columns=widths[0])
        given = np.empty((len(table), widths[-1]))
        step = max(1, _NUMBERS_AT_ONCE // max(widths))
        with np.errstate(all="ignore"):  # what leads out of range is found below
            for at in range(0, len(table), step):
                block = table[at : at + step]
                for layer in self.layers:
                    apply = _FUNCTIONS[layer] if isinstance(layer, str) else layer.apply
                    block = apply(block)
                given[at : at + step] = block
        if not np.isfinite(given).all():
            refuse(_NOT_FINITE, run=True)
        return given


_FUNCTIONS: Mapping[Function, Callable[[Matrix], Matrix]] = {
    "Relu": lambda rows: np.maximum(rows, 0.0),
    "Tanh": np.tanh,
    # 1 / (1 + exp(-x)), which would overflow, to 1e-16
    "Sigmoid": lambda rows: 0.5 + 0.5 * np.tanh(0.5 * rows),
    "Cos": np.cos,
    "Square": np.square,
    "LogSumExp": partial(np.logaddexp.reduce, axis=1, keepdims=True),
}
_LINKS: Mapping[str, Callable[[Matrix], Matrix]] = {
    "": np.positive,
    "Exp": np.exp,
    "Sigmoid": _FUNCTIONS["Sigmoid"],
}


def ends_of(layer: Layer, width: int) -> tuple[int, int]:
    """Return columns in and out; a function takes as many as the layer before it gives."""
    if isinstance(layer, Trees):
        return layer.n_in, layer.n_out
    if isinstance(layer, Affine):
        return len(layer.weights), layer.weights.shape[1]
    return width, 1 if layer == "LogSumExp" else width


def refuse(reason: str, *, run: bool = False) -> NoReturn:
    raise ModelFileError(
        f"the model file cannot be used: {reason}. {'' if run else 'Nothing in it was run. '}"
        "Ask the analyst for the file that cobasis wrote; if it is that one, for the version of "
        "cobasis that wrote it."
    )


def layers_of(turn: Turn) -> list[Layer]:
    """Write a map as layers, but for the factor that its features are multiplied by at last."""
    layers: list[Layer] = [Affine(weights=turn.weights, offset=turn.offset)]
    if turn.bends is not None:
        layers[:0] = [Affine(weights=turn.bends[0], offset=turn.bends[1]), "Relu"]
    return [*layers, "Cos"] if turn.n_waves else layers


def folded(layers: Sequence[Layer]) -> tuple[Layer, ...]:
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


def regression_chain(fit: RegressionFit, *, n_classes: int) -> Chain:
    """Return the model of a fitted regression: log-odds, a number, or the log of a rate."""
    if not np.isfinite(fit.hazards).all():
        raise EstimateError(
            "a row at every agreed centre is so far from all rows that its hazard leaves the "
            "numbers' range, so no share without event can be told. Agree on centres that lie "
            "among the rows, or on no horizons."
        )
    weights, offset = fit.weights, np.zeros(1)
    if fit.model != "cox":
        weights, offset = weights[1:], weights[:1]
    last, present = Affine(weights=weights[:, np.newaxis], offset=offset), np.arange(n_classes)
    made = chain_of("regression", [last], present=present, n_classes=n_classes)
    return replace(made, fit=fit.kept())


def chain_of(
    family: ChainFamily,
    layers: Sequence[Layer],
    *,
    present: Integers,
    n_classes: int,
    head: Head = "probabilities",
) -> Chain:
    """Return a model with a column for each agreed class; without classes it gives a number."""
    *inner, scores = layers
    if not n_classes:
        return Chain(family=family, layers=tuple(layers), head="prediction")
    weights, offset = cast("Affine", scores).weights, cast("Affine", scores).offset
    if weights.shape[1] == 1:
        first = 0.0 if head == "probabilities" else -1.0
        sides = np.array([first, 1.0])
        weights, offset = weights * sides, offset * sides
    wide = np.zeros((len(weights), n_classes))
    level = np.full(n_classes, ABSENT if head == "probabilities" else -1.0)
    wide[:, present], level[present] = weights, offset
    return Chain(family=family, layers=(*inner, Affine(weights=wide, offset=level)), head=head)
