"""How far a perceptron's training has come, in a file: weights and running averages, no code.

The file is replaced after each round, whole or not at all, so that what an interruption leaves
is the state after some round.
"""

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cobasis.disk.tensors import read_tables, write_tables
from cobasis.engine.partitions import Labels
from cobasis.errors import CobasisError
from cobasis.models.families import Estimator


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Where a training by rounds stands.

    Attributes
    ----------
    number : int
        Rounds done.
    score : float
        The best so far.
    stale : int
        Rounds since then.
    best : estimator or None
        As it was after its best round; None before the first.
    """

    number: int = 0
    score: float = float("-inf")
    stale: int = 0
    best: Estimator = field(default=None, repr=False)


def write_mark(file: Path, mark: Mark, *, estimator: Estimator) -> None:
    """Keep a perceptron's state."""
    adam = estimator._optimizer  # noqa: SLF001 -- the only place that has the running averages
    tables = {
        f"{what}.{place:03d}": each
        for what, arrays in (
            ("now", _weights(estimator)),
            ("best", _weights(mark.best)),
            ("first", adam.ms),
            ("second", adam.vs),
        )
        for place, each in enumerate(arrays)
    }
    state = {"number": mark.number, "score": mark.score, "stale": mark.stale, "steps": adam.t}
    write_tables(file, tables, metadata={"state": json.dumps(state)})


def read_mark(
    file: Path,
    estimator: Estimator,
    *,
    classes: Labels | None,
    like: Any,  # noqa: ANN401 -- an array
) -> tuple[Estimator, Mark] | None:
    """Return a perceptron in the state that was kept."""
    try:
        return _read(file, copy.deepcopy(estimator), classes=classes, like=like)
    except (CobasisError, KeyError, TypeError, ValueError):
        return None


def _read(
    file: Path,
    estimator: Estimator,
    *,
    classes: Labels | None,
    like: Any,  # noqa: ANN401 -- an array
) -> tuple[Estimator, Mark]:
    """Bring a perceptron to the state that was kept; it is changed."""
    tables, header = read_tables(file)
    arrays: dict[str, list[Any]] = {}
    for name in sorted(tables):
        arrays.setdefault(name.partition(".")[0], []).append(tables[name])
    state = json.loads(header.metadata["state"])
    if classes is None:
        estimator.partial_fit(like, np.zeros(1))
    else:
        estimator.partial_fit(like, classes[:1], classes=classes)
    best = copy.deepcopy(estimator)
    for made, kept in ((estimator, "now"), (best, "best")):
        for weights, found in zip(_weights(made), arrays[kept], strict=True):
            weights[...] = found
    adam = estimator._optimizer  # noqa: SLF001 -- same
    adam.ms, adam.vs, adam.t = arrays["first"], arrays["second"], state.pop("steps")
    return estimator, Mark(**state, best=best)


def _weights(estimator: Estimator) -> list[Any]:
    """Return a perceptron's own arrays, layer by layer."""
    return [*estimator.coefs_, *estimator.intercepts_]
