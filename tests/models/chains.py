"""Rows in blocks of any size, and small models of every family that travels."""

import warnings
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cobasis.models import FAMILIES, chain, out_of_core, tuning
from cobasis.models.chain_file import encode_chain
from cobasis.models.passes import Block, Pass, WholeRows, axes_of, look
from cobasis.models.sources import boosted_layers, network_layers
from cobasis.models.trainer import TrainedModel, train

WIDTH = 5
TRAVELLING = ["boosted_trees", "logistic", "mlp", "rff", "ridge"]
KINDS = [
    (name, task, n_classes)
    for name in TRAVELLING
    for task, n_classes in (("classification", 2), ("classification", 4), ("regression", 0))
    if task in FAMILIES[name].tasks
]


class Cut(WholeRows):
    def __init__(self, rows, labels, cuts):
        super().__init__(rows, labels)
        self.labels, self.ends, self.n_blocks = labels, [0, *cuts, len(rows)], len(cuts) + 1

    def block(self, index):
        here = slice(*self.ends[index : index + 2])
        return Block(*(each[here] for each in self._whole))


@dataclass(frozen=True)
class Counted(Pass):
    steps: list = field(default_factory=list)

    def __call__(self, work, rows, *, step):
        self.steps.append(step)
        return super().__call__(work, rows, step=step)


def principal_axes(rows):
    source = WholeRows(rows, np.zeros(len(rows)))
    seen = look(source, Pass(), task="regression", n_classes=None)
    return axes_of(source, seen, over=Pass())


def quicken(name, monkeypatch):
    monkeypatch.setattr(out_of_core, "MAX_ROUNDS", 30)
    row, few = FAMILIES[name], {"mlp": {"tol": [1e-3]}, "boosted_trees": {"max_iter": [10]}}
    if name in few:
        grid = {key: values[-1:] for key, values in row.grid.items()} | few[name]
        monkeypatch.setitem(FAMILIES, name, replace(row, grid=grid))


def rows_of(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(np.random.default_rng(99).normal(size=(WIDTH, WIDTH)))[0]
    return (rng.normal(size=(n_rows, WIDTH)) * [3.0, 2.0, 1.0, 0.5, 0.1]) @ turn


def labels_of(rows, task, n_classes):
    number = np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2]
    if task == "regression":
        return 40.0 + 10.0 * number
    return np.searchsorted(np.quantile(number, np.arange(1, n_classes) / n_classes), number)


@cache
def trained(name, task, n_classes):
    """scikit-learn's perceptron or trees, with settings that take no time."""
    few = {"mlp": {"max_iter": 40}, "boosted_trees": {"max_iter": 6}}
    rows = rows_of()[:200]
    axes = principal_axes(rows)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        fitted = tuning.unfitted(name, task, n_rows=200, seed=0).set_params(**few[name])
        fitted.fit(rows @ axes, labels_of(rows, task, n_classes))
    return TrainedModel(axes=axes, estimator=fitted)


@cache
def chain_of(name, task="classification", n_classes=2):
    if name in {"mlp", "boosted_trees"}:
        fitted = trained(name, task, n_classes)
        layers = network_layers if name == "mlp" else boosted_layers
        turn = chain.Affine(weights=fitted.axes, offset=np.zeros(WIDTH))
        return chain.chain_of(
            name,
            chain.folded([turn, *layers(fitted.estimator)]),
            present=np.arange(n_classes),
            n_classes=0 if task == "regression" else n_classes,
        )
    rows, how = rows_of()[:200], {"task": task, "seed": 0, "tempered": False}
    return train(rows, labels_of(rows, task, n_classes), model=name, **how)


@cache
def file_of(name, task="classification", n_classes=2):
    return encode_chain(chain_of(name, task, n_classes))


def agreed(task="classification", n_classes=2):
    return {"n_components": WIDTH, "task": task, "n_classes": n_classes}
