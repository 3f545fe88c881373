"""A whole round of 100 parties in one process, beside the arithmetic that its model asks for."""

from typing import Any

import numpy as np

from benchmarks import goals
from benchmarks.timing import interleaved, ratio
from cobasis import simulate
from cobasis.linalg.arrays import Matrix
from cobasis.models.linear import N_FEATURES, PENALTIES

PARTIES, ROWS, FEATURES, COMPONENTS, CLASSES = 100, 100, 784, 50, 10
ROUNDS, ROUNDS_QUICK = 5, 3


def measure(*, quick: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    rows, labels = rows_and_labels(rng)
    parties = {f"p{i:03d}": (rows[i::PARTIES], labels[i::PARTIES]) for i in range(PARTIES)}
    waves = np.cos(rng.normal(size=(len(rows), N_FEATURES))) * np.sqrt(2.0 / N_FEATURES)
    targets = 2.0 * (labels[:, None] == np.arange(CLASSES)) - 1.0

    def whole_round() -> None:
        drawn = np.random.default_rng(1)
        simulate(parties, rng=drawn, n_components=COMPONENTS, basis="consensus", model="rff")

    times = interleaved(
        {"round": whole_round, "plain": lambda: ridge(waves, targets)},
        rounds=ROUNDS_QUICK if quick else ROUNDS,
    )
    found = ratio(times, "round", "plain")
    what = (
        f"{PARTIES} parties x {ROWS} rows x {FEATURES}, l = {COMPONENTS}, consensus, random "
        "features: a whole round beside Phi'Phi, eigh and leave-one-out in NumPy"
    )
    return {
        "seconds": times,
        "round / plain": found,
        "goals": [goals.goal(what, found["median"], most=4.5, unit="x")],
    }


def rows_and_labels(rng: np.random.Generator) -> tuple[Matrix, Any]:
    """Draw classes around centres in a few directions of many columns."""
    labels = rng.integers(CLASSES, size=PARTIES * ROWS)
    hidden = rng.normal(size=(len(labels), COMPONENTS)) * np.geomspace(3.0, 0.3, COMPONENTS)
    hidden += 2.0 * rng.normal(size=(CLASSES, COMPONENTS))[labels]
    rows = hidden @ rng.normal(size=(COMPONENTS, FEATURES)) / np.sqrt(COMPONENTS)
    return rows + 0.1 * rng.normal(size=rows.shape), labels


def ridge(waves: Matrix, targets: Matrix) -> Matrix:
    """Fit a ridge for the best penalty, each row left out in turn: plain NumPy."""
    means, target_means = waves.mean(axis=0), targets.mean(axis=0)
    centred, wanted = waves - means, targets - target_means
    sizes, axes = np.linalg.eigh(centred.T @ centred)
    along = axes.T @ (centred.T @ wanted)
    turned = centred @ axes
    squared = turned * turned
    errors = []
    for penalty in PENALTIES:
        shrink = 1.0 / (np.maximum(sizes, 0.0) + penalty)
        left_out = wanted - turned @ (shrink[:, None] * along)
        left_out /= (1.0 - 1.0 / len(waves) - squared @ shrink)[:, None]
        errors.append(float(np.square(left_out).sum()))
    shrink = 1.0 / (np.maximum(sizes, 0.0) + PENALTIES[int(np.argmin(errors))])
    weights: Matrix = axes @ (shrink[:, None] * along)
    return weights
