"""Federated averaging, small and in NumPy: the baseline that sends a model back and forth.

A network with one hidden layer of ReLU, for classes (softmax and cross-entropy) or numbers (half
the squared error); every party takes part in every round, and counts with its number of rows.
Adam starts afresh in each round, since its moments are not sent.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from experiments.harness.models import Labels, Table

Weights = tuple[Table, ...]  # matrices and offsets in turns, from the first layer to the last
BATCH, RATE, PENALTY = 32, 1e-3, 1e-4
BETAS, TINY = (0.9, 0.999), 1e-8  # Adam's usual constants, which are scikit-learn's too


@dataclass(frozen=True, kw_only=True)
class FedAvg:
    hidden: int = 256  # units of the hidden layer
    rounds: int = 40  # of the average
    local_epochs: int = 1  # of a party between two averages


@dataclass(frozen=True, kw_only=True)
class Network:
    weights: Weights
    classes: Labels | None  # of the outputs; None for a number

    @property
    def n_bytes(self) -> int:
        return sum(each.nbytes for each in self.weights)

    def predict(self, rows: Table) -> Labels:
        outputs = _layers(self.weights, rows)[-1]
        if self.classes is None:
            return outputs[:, 0]
        found: Labels = self.classes[np.argmax(outputs, axis=1)]
        return found


@dataclass(frozen=True)
class After:
    rounds: int  # how many there were
    network: Network
    n_bytes: int  # that all parties sent so far, and as many they were sent
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
    data: list[tuple[Table, Table]] = []
    for rows, labels in parties.values():  # targets are numbers, or a column of 0 and 1 a class
        told = labels[:, None] if classes is None else labels[:, None] == classes
        data.append((rows, told.astype(np.float64)))
    sizes = [data[0][0].shape[1], options.hidden, data[0][1].shape[1]]
    weights = first_weights(sizes, rng=rng)
    n_bytes, seconds = 0, 0.0
    for number in range(1, options.rounds + 1):
        updates: list[Weights] = []
        spent: list[float] = []
        for mine in data:
            started = time.process_time()
            updates.append(local_update(weights, mine, epochs=options.local_epochs, rng=rng))
            spent.append(time.process_time() - started)
            n_bytes += sum(each.nbytes for each in weights)
        started = time.process_time()
        weights = average(updates, counts=[len(rows) for rows, _ in data])
        seconds += max(spent) + time.process_time() - started
        yield After(number, Network(weights=weights, classes=classes), n_bytes, seconds)


def first_weights(sizes: Sequence[int], *, rng: np.random.Generator) -> Weights:
    """Draw the weights that all parties start from: Glorot's."""
    found: list[Table] = []
    for before, after in pairwise(sizes):
        bound = np.sqrt(6 / (before + after))
        found += [rng.uniform(-bound, bound, (before, after)), rng.uniform(-bound, bound, after)]
    return tuple(found)


def average(updates: Sequence[Weights], *, counts: Sequence[int]) -> Weights:
    shares = np.asarray(counts, dtype=np.float64) / sum(counts)
    return tuple(
        np.asarray(sum(share * each for share, each in zip(shares, same, strict=True)))
        for same in zip(*updates, strict=True)
    )


def local_update(
    weights: Weights, data: tuple[Table, Table], *, epochs: int, rng: np.random.Generator
) -> Weights:
    """Return one party's weights after its epochs, by Adam; several columns are classes."""
    rows, targets = data
    means, squares = ([np.zeros_like(each) for each in weights] for _ in range(2))
    (slow, slower), taken = BETAS, 0
    for _ in range(epochs):
        order = rng.permutation(len(rows))
        for start in range(0, len(rows), BATCH):
            now = order[start : start + BATCH]
            slopes = gradients(weights, (rows[now], targets[now]))
            taken += 1
            rate = RATE * np.sqrt(1 - slower**taken) / (1 - slow**taken)
            found: list[Table] = []
            for each, down, mean, square in zip(weights, slopes, means, squares, strict=True):
                mean += (1 - slow) * (down - mean)  # noqa: PLW2901 -- in place
                square += (1 - slower) * (down * down - square)  # noqa: PLW2901
                found.append(each - rate * mean / (np.sqrt(square) + TINY))
            weights = tuple(found)
    return weights


def _layers(weights: Weights, rows: Table) -> list[Table]:
    found = [rows]
    for index in range(0, len(weights), 2):
        value = found[-1] @ weights[index] + weights[index + 1]
        last = index == len(weights) - 2
        found.append(value if last else np.maximum(value, 0, out=value))
    return found


def gradients(weights: Weights, batch: tuple[Table, Table]) -> Weights:
    """Return the slopes of the mean loss over a batch of rows and targets."""
    rows, targets = batch
    values = _layers(weights, rows)
    outputs = values[-1]
    if targets.shape[1] > 1:
        outputs = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        outputs /= outputs.sum(axis=1, keepdims=True)
    error = (outputs - targets) / len(rows)
    found: list[Table] = []
    for index in range(len(weights) - 2, -1, -2):
        before = values[index // 2]
        found = [before.T @ error + PENALTY / len(rows) * weights[index], error.sum(axis=0), *found]
        if index:
            error = (error @ weights[index].T) * (before > 0)
    return tuple(found)
