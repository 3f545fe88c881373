"""What a common model becomes at one party: chosen on the rows that the party uploaded.

The model of the others, which never saw these rows, is tried as it is, with an intercept of the
party's own, with a slope too, mixed with a model of the party alone, and that model instead. What
predicts the rows best, each left out in its fold, is then made of the common model.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np
import scipy

from cobasis.linalg.arrays import Matrix
from cobasis.models import Task
from cobasis.models.chain import ABSENT, Affine, Chain, folded
from cobasis.models.passes import Labels

Kind = Literal["common", "intercept", "slope", "mix", "alone"]
"""From the simplest to what needs most rows."""

Train: TypeAlias = Callable[[Matrix, Labels], Chain]

MOST_PARTIES = 20
"""With more, a model of the others for each would be trained too often."""

NEEDS: Mapping[Kind, tuple[int, int]] = {"intercept": (20, 5), "slope": (100, 20)}
"""Rows, and rows of each class that a party has, from which on something is tried."""

SHARES = (0.25, 0.5, 0.75)
"""Of the party's own model in a mix; the rest has an intercept of the party's own."""

FOLDS = 5
_WORST = 36.0
"""A row's loss at most: what a model knows nothing of is wrong, and not infinitely so."""


class LocalFit(NamedTuple):
    kind: Kind
    chain: Chain


def fit_locally(
    rows: Matrix, labels: Labels, *, common: Chain, others: Chain, train: Train
) -> LocalFit:
    """Choose what a party's rows predict best; all models are over its own columns."""
    if not _enough(labels, common, "intercept"):
        return LocalFit(kind="common", chain=common)
    task, given = common.task, others.outputs(rows)
    sloped = _enough(labels, common, "slope")
    shifted, steeper, alone = (np.empty_like(given) for _ in range(3))
    fold = np.empty(len(labels), dtype=np.int64)
    shuffled = np.random.default_rng(0).random(len(labels))
    fold[np.lexsort((shuffled, labels))] = np.arange(len(labels)) % FOLDS  # each class in each
    for number in range(FOLDS):
        held, inside = fold == number, fold != number
        for outputs, with_slope in ((shifted, False), (steeper, True)):
            if sloped or not with_slope:
                found = adjusted(given[inside], labels[inside], task=task, sloped=with_slope)
                outputs[held] = found[0] * given[held] + found[1]
        alone[held] = _own(train, rows[inside], labels[inside]).outputs(rows[held])
    tried: dict[tuple[Kind, float], Matrix] = {("common", 0.0): given, ("intercept", 0.0): shifted}
    if sloped:
        tried["slope", 0.0] = steeper
    tried |= {("mix", share): (1 - share) * shifted + share * alone for share in SHARES}
    tried["alone", 1.0] = alone
    # The best, and not the simplest within half a standard error of it, or one: with these, parties
    # with good models of their own got worse ones (evidence).
    kind, share = min(tried, key=lambda each: losses(tried[each], labels, task=task).mean())
    made = common
    if kind != "common":
        made = common.rescaled(*adjusted(given, labels, task=task, sloped=kind == "slope"))
    if share:
        own = _own(train, rows, labels)
        made = own if kind == "alone" else mixed(made, own, share=share)
    return LocalFit(kind=kind, chain=made)


def losses(outputs: Matrix, labels: Labels, *, task: Task) -> Matrix:
    """Return each row's squared error, or minus the log of its class's likelihood."""
    if task == "regression":
        return (outputs[:, 0] - labels) ** 2
    likely = scipy.special.log_softmax(outputs, axis=1)[
        np.arange(len(labels)), labels.astype(np.int64)
    ]
    return np.minimum(-likely, _WORST)


def adjusted(
    outputs: Matrix, labels: Labels, *, task: Task, sloped: bool = False
) -> tuple[float, Matrix]:
    """Fit an intercept, and a slope that is not negative or 1; return slope and intercept."""
    if task == "regression":
        off, mean = outputs[:, 0] - outputs.mean(), labels.mean()
        slope = max(0.0, float(off @ labels / (off @ off))) if sloped and off.any() else 1.0
        return slope, np.array([mean - slope * outputs.mean()])
    known = np.maximum(outputs, outputs.max(axis=1, keepdims=True) - _WORST)
    true = np.eye(outputs.shape[1])[labels.astype(np.int64)]

    # Held back by what half a squared unit costs, as one row would be: classes that the party has
    # no row of would otherwise get minus infinity.
    def objective(told: Matrix) -> tuple[float, Matrix]:
        slope, intercept = told[0], told[1:]
        likely = scipy.special.log_softmax(slope * known + intercept, axis=1)
        excess = np.exp(likely) - true
        far = told - start
        steep = np.sum(excess * known) if sloped else 0.0
        return (
            float(far @ far / 2 - np.sum(likely * true)),
            far + np.concatenate([[steep], excess.sum(axis=0)]),
        )

    start = np.concatenate([[1.0], np.zeros(outputs.shape[1])])
    bounds = [(0.0, None), *[(None, None)] * outputs.shape[1]]
    found = scipy.optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]), found[1:]


def mixed(first: Chain, second: Chain, *, share: float) -> Chain:
    """Return a model whose outputs are those of two of one family, weighted."""
    (*one, last), (*other, end) = first.layers, second.layers
    last, end = cast("Affine", last), cast("Affine", end)
    weights, more = (1 - share) * last.weights, share * end.weights
    offset = (1 - share) * last.offset + share * end.offset
    if not one:
        return replace(first, layers=(Affine(weights=weights + more, offset=offset),))
    waves, others = cast("Affine", one[0]), cast("Affine", other[0])
    beside = Affine(
        weights=np.hstack([waves.weights, others.weights]),
        offset=np.concatenate([waves.offset, others.offset]),
    )
    both = Affine(weights=np.vstack([weights, more]), offset=offset)
    return replace(first, layers=(beside, *one[1:], both))


def over_columns(chain: Chain, projection: Matrix) -> Chain:
    """Return a model of aligned rows as one of the party's own columns."""
    before = Affine(weights=projection, offset=np.zeros(projection.shape[1]))
    return replace(chain, layers=folded([before, *chain.layers]))


def _own(train: Train, rows: Matrix, labels: Labels) -> Chain:
    """Train on some rows; a class of which there is none is as unlikely as one row in all."""
    *inner, last = (chain := train(rows, labels)).layers
    last = cast("Affine", last)
    offset = np.where(last.offset < ABSENT * 1e-9, -np.log(len(rows)), last.offset)
    return replace(chain, layers=(*inner, replace(last, offset=offset)))


def _enough(labels: Labels, model: Chain, kind: Kind) -> bool:
    """Whether there are rows enough, and of two classes at least."""
    all_rows, each = NEEDS[kind]
    if model.task == "regression":
        return len(labels) >= all_rows
    sizes = np.unique(labels, return_counts=True)[1]
    return model.likely and len(labels) >= all_rows and len(sizes) > 1 and min(sizes) >= each
