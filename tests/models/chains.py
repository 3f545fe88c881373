"""Small models of every family that travels, and what scikit-learn says they give."""

from dataclasses import replace
from functools import cache
from unittest import mock

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from cobasis.models.chain_file import encode_chain
from cobasis.models.families import FAMILIES
from cobasis.models.sources import read_chain
from cobasis.models.training import train

WIDTH = 5
TRAVELLING = sorted(name for name, row in FAMILIES.items() if not row.carries_rows)
KINDS = [
    (name, task, n_classes)
    for name in TRAVELLING
    for task, n_classes in (("classification", 2), ("classification", 4), ("regression", 0))
    if task in FAMILIES[name].tasks
]


def rows_of(n_rows=400, seed=0):
    """Rows as alignment leaves them: no axis means anything, and scales differ."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(np.random.default_rng(99).normal(size=(WIDTH, WIDTH)))[0]
    return (rng.normal(size=(n_rows, WIDTH)) * [3.0, 2.0, 1.0, 0.5, 0.1]) @ turn


def labels_of(rows, task, n_classes):
    """Numbers, or positions of as many classes as asked for."""
    number = np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2]
    if task == "regression":
        return 40.0 + 10.0 * number
    return np.searchsorted(np.quantile(number, np.arange(1, n_classes) / n_classes), number)


def _quick_trees(task, _, seed):
    kind = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    return kind(max_iter=6, random_state=seed)


def _quick_network(task, n_rows, seed):
    return _NETWORK(task, n_rows, seed).set_params(max_iter=40)


_NETWORK = FAMILIES["mlp"].build

QUICK = {
    "boosted_trees": {"build": _quick_trees, "grid": {}},
    "logistic": {"grid": {"C": [1.0]}},
    "mlp": {"build": _quick_network, "grid": {}},
}
"""The search has its own tests; here it would cost a minute."""


@cache
def trained(name, task, n_classes, positions=None):
    """A fitted model of a family, on the first 200 rows; classes at other positions, if told."""
    rows = rows_of()[:200]
    labels = labels_of(rows, task, n_classes)
    labels = labels if positions is None else np.array(positions)[labels]
    row = replace(FAMILIES[name], **QUICK.get(name, {}))
    with mock.patch.dict(FAMILIES, {name: row}):
        return train(rows, labels, model=name, task=task, seed=0)


@cache
def chain_of(name, task="classification", n_classes=2):
    """It as a chain."""
    return read_chain(trained(name, task, n_classes), task=task, n_classes=n_classes)


@cache
def file_of(name, task="classification", n_classes=2):
    """Its file."""
    return encode_chain(chain_of(name, task, n_classes))


def agreed(task="classification", n_classes=2):
    """What a reader is told of the round."""
    return {"n_components": WIDTH, "task": task, "n_classes": n_classes}
