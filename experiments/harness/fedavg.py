"""Federated averaging, small and in NumPy: the baseline that sends a model back and forth.

A linear model or a network with one hidden layer of ReLU, for classes (softmax and
cross-entropy) or numbers (half the squared error); every party takes part in every round,
and counts with its number of rows. Adam starts afresh in each round, since its moments are
not sent.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from experiments.harness.models import Labels, Table

Weights = tuple[Table, ...]
"""Matrices and offsets in turns, from the first layer to the last."""

BETAS, TINY = (0.9, 0.999), 1e-8
"""Adam's usual constants, which are scikit-learn's too."""


@dataclass(frozen=True, kw_only=True)
class FedAvg:
    """How a federated model is trained."""

    hidden: int = 256  # units of the hidden layer; 0 for a linear model
    rounds: int = 40  # of the average, and of a party between two averages
    local_epochs: int = 1
    batch_size: int = 32
    optimiser: Literal["adam", "sgd"] = "adam"
    learning_rate: float = 1e-3
    penalty: float = 1e-4


@dataclass(frozen=True, kw_only=True)
class Network:
    """Weights, and what their outputs mean."""

    weights: Weights  # matrices and offsets in turns
    classes: Labels | None  # of the outputs; None for a number

    @property
    def n_bytes(self) -> int:
        """What the weights weigh on the wire."""
        return sum(each.nbytes for each in self.weights)

    def predict(self, rows: Table) -> Labels:
        """Return classes, or numbers."""
        outputs = _layers(self.weights, rows)[-1]
        if self.classes is None:
            return outputs[:, 0]
        found: Labels = self.classes[np.argmax(outputs, axis=1)]
        return found


@dataclass(frozen=True, kw_only=True)
class After:
    """Where things stand after a round."""

    rounds: int  # how many there were
    network: Network
    up: int  # bytes that all parties sent, and were sent, so far
    down: int
    seconds: float


def federated(
    parties: Mapping[str, tuple[Table, Labels]],
    *,
    options: FedAvg,
    rng: np.random.Generator,
    regression: bool = False,
) -> Iterator[After]:
    """Train by federated averaging, and say after each round where things stand."""
    classes = None if regression else np.unique(np.concatenate([y for _, y in parties.values()]))
    targets = {name: as_targets(labels, classes) for name, (_, labels) in parties.items()}
    width = next(iter(parties.values()))[0].shape[1]
    sizes = [width, *([options.hidden] if options.hidden else []), _outputs(classes)]
    weights = first_weights(sizes, rng=rng)
    up, down, seconds = 0, 0, 0.0
    for number in range(1, options.rounds + 1):
        updates: list[Weights] = []
        spent: list[float] = []
        for name, (rows, _) in parties.items():
            down += sum(each.nbytes for each in weights)
            started = time.process_time()
            data = rows, targets[name]
            soft = not regression
            updates.append(local_update(weights, data, options=options, rng=rng, soft=soft))
            spent.append(time.process_time() - started)
            up += sum(each.nbytes for each in updates[-1])
        started = time.process_time()
        weights = average(updates, counts=[len(rows) for rows, _ in parties.values()])
        seconds += max(spent) + time.process_time() - started
        network = Network(weights=weights, classes=classes)
        yield After(rounds=number, network=network, up=up, down=down, seconds=seconds)


def as_targets(labels: Labels, classes: Labels | None) -> Table:
    """Return labels as outputs should be: one column of numbers, or one of 0 and 1 a class."""
    if classes is None:
        return np.asarray(labels, dtype=np.float64)[:, None]
    found: Table = (labels[:, None] == classes).astype(np.float64)
    return found


def _outputs(classes: Labels | None) -> int:
    return 1 if classes is None else len(classes)


def first_weights(sizes: Sequence[int], *, rng: np.random.Generator) -> Weights:
    """Draw the weights that all parties start from: zeros, or Glorot's where units are hidden."""
    found: list[Table] = []
    for before, after in pairwise(sizes):
        bound = np.sqrt(6 / (before + after)) if len(sizes) > 2 else 0.0
        found += [rng.uniform(-bound, bound, (before, after)), rng.uniform(-bound, bound, after)]
    return tuple(found)


def average(updates: Sequence[Weights], *, counts: Sequence[int]) -> Weights:
    """Return the mean of all parties' weights, each counted with its rows."""
    shares = np.asarray(counts, dtype=np.float64) / sum(counts)
    return tuple(
        np.asarray(sum(share * each for share, each in zip(shares, same, strict=True)))
        for same in zip(*updates, strict=True)
    )


def local_update(
    weights: Weights,
    data: tuple[Table, Table],
    *,
    options: FedAvg,
    rng: np.random.Generator,
    soft: bool,
) -> Weights:
    """Return one party's weights after its epochs; `soft` is for classes."""
    rows, targets = data
    step = _Adam(weights, options) if options.optimiser == "adam" else _Descent(options)
    for _ in range(options.local_epochs):
        order = rng.permutation(len(rows))
        for start in range(0, len(rows), options.batch_size):
            now = order[start : start + options.batch_size]
            batch = rows[now], targets[now]
            slopes = gradients(weights, batch, penalty=options.penalty, soft=soft)
            weights = step(weights, slopes)
    return weights


def _layers(weights: Weights, rows: Table) -> list[Table]:
    """Return the inputs of each layer, and the outputs."""
    found = [rows]
    for index in range(0, len(weights), 2):
        value = found[-1] @ weights[index] + weights[index + 1]
        last = index == len(weights) - 2
        found.append(value if last else np.maximum(value, 0, out=value))
    return found


def gradients(
    weights: Weights, batch: tuple[Table, Table], *, penalty: float, soft: bool
) -> Weights:
    """Return the slopes of the mean loss over a batch of rows and targets."""
    rows, targets = batch
    values = _layers(weights, rows)
    outputs = values[-1]
    if soft:
        outputs = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        outputs /= outputs.sum(axis=1, keepdims=True)
    error = (outputs - targets) / len(rows)
    found: list[Table] = []
    for index in range(len(weights) - 2, -1, -2):
        before = values[index // 2]
        found = [before.T @ error + penalty / len(rows) * weights[index], error.sum(axis=0), *found]
        if index:
            error = (error @ weights[index].T) * (before > 0)
    return tuple(found)


class _Descent:
    """Plain steps down the slope."""

    def __init__(self, options: FedAvg) -> None:
        self._rate = options.learning_rate

    def __call__(self, weights: Weights, slopes: Weights) -> Weights:
        """Take one."""
        return tuple(each - self._rate * down for each, down in zip(weights, slopes, strict=True))


class _Adam:
    """Adam's steps."""

    def __init__(self, weights: Weights, options: FedAvg) -> None:
        self._rate = options.learning_rate
        self._means = [np.zeros_like(each) for each in weights]
        self._squares = [np.zeros_like(each) for each in weights]
        self._taken = 0

    def __call__(self, weights: Weights, slopes: Weights) -> Weights:
        """Take one."""
        self._taken += 1
        slow, slower = BETAS
        rate = self._rate * np.sqrt(1 - slower**self._taken) / (1 - slow**self._taken)
        found: list[Table] = []
        for index, (each, down) in enumerate(zip(weights, slopes, strict=True)):
            mean, square = self._means[index], self._squares[index]
            mean += (1 - slow) * (down - mean)
            square += (1 - slower) * (down * down - square)
            found.append(each - rate * mean / (np.sqrt(square) + TINY))
        return tuple(found)
