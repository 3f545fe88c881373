"""Mini-batches from disk: a multilayer perceptron, or whatever learns by ``partial_fit``.

A round is a pass over all partitions, or over a million rows of them if there are more.
After each the rows that were held out judge; when they see no gain for ten rounds, the best
model so far is kept. Up to 200 rows none is held out: the training's own loss judges, and for
an estimator that tells none nobody does, so that its last round counts. The order of partitions
is drawn anew for each pass.
"""

import copy
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from sklearn.base import is_classifier

from cobasis.disk.whole import remove_tree
from cobasis.engine.partitions import Labels, Rows
from cobasis.engine.training_marks import Mark, read_mark, write_mark
from cobasis.engine.training_passes import Pass, TurnedRows
from cobasis.errors import NotFiniteError
from cobasis.linalg.pool import in_order
from cobasis.models.families import EARLY_STOPPING_ROWS, Estimator
from cobasis.models.training import log_likelihood
from cobasis.progress import Report

HELD_ROWS = 100_000
"""At most; a tenth of all rows if that is less."""

ROUND_ROWS = 1_000_000
PATIENCE = 10
_TOLERANCE = 1e-4
_ROWS_AT_ONCE = 20_000


def rows_to_hold(n_rows: int) -> int:
    """Return how many rows early stopping is judged by; none where each is needed to learn."""
    return min(n_rows // 10, HELD_ROWS) if n_rows > EARLY_STOPPING_ROWS else 0


@dataclass(frozen=True, kw_only=True)
class _Schedule:
    """Which partitions belong to which round; it depends on the seed alone."""

    n_partitions: int
    per_round: int
    seed: int

    @property
    def rounds_per_pass(self) -> int:
        """How many rounds see every partition once."""
        return -(-self.n_partitions // self.per_round)

    def partitions(self, number: int) -> list[int]:
        """Return the partitions of a round, in their order."""
        passes, place = divmod(number, self.rounds_per_pass)
        order = np.random.default_rng([self.seed, passes]).permutation(self.n_partitions)
        start = place * self.per_round
        return cast("list[int]", order[start : start + self.per_round].tolist())


def fit_batches(
    estimator: Estimator,
    rows: TurnedRows,
    *,
    over: Pass,
    seed: int,
    max_passes: int,
    report: Report,
    mark: Path | None = None,
) -> Estimator:
    """Train by mini-batches until rows that were held out see no gain."""
    aligned = rows.aligned
    classes = np.array(list(aligned.class_counts)) if is_classifier(estimator) else None
    n_partitions = len(aligned.partitions)
    per_round = max(1, min(n_partitions, ROUND_ROWS * n_partitions // aligned.n_rows))
    schedule = _Schedule(n_partitions=n_partitions, per_round=per_round, seed=seed)
    held = rows.first(rows.n_held, over) if rows.n_held else None
    state = Mark()
    if mark is not None:
        like = np.zeros((1, aligned.n_components), dtype=aligned.dtype)
        found = read_mark(mark, estimator, classes=classes, like=like)
        estimator, state = found or (estimator, state)
    last = max_passes * schedule.rounds_per_pass
    while state.number < last and state.stale < PATIENCE:
        _one_round(estimator, rows, schedule, number=state.number, classes=classes)
        state = _judged(estimator, state, score=_score(estimator, held))
        if mark is not None:
            write_mark(mark, state, estimator=estimator)
        report("training, rounds at most", state.number, last)
    if mark is not None:
        remove_tree(mark)
    return state.best


def _judged(estimator: Estimator, state: Mark, *, score: float | None) -> Mark:
    """Return where training stands after one more round; without a score the last is the best."""
    if state.best is None and score is not None and not np.isfinite(score):
        raise NotFiniteError(
            f"after its first round {type(estimator).__name__} scores {score}, so its training "
            "diverges and there is no model to return. Give it a smaller learning rate or a "
            "stronger penalty, or check the scale of the rows."
        )
    better = score is None or score > state.score + _TOLERANCE
    return Mark(
        number=state.number + 1,
        score=state.score if score is None or not better else score,
        stale=0 if better else state.stale + 1,
        best=copy.deepcopy(estimator) if better else state.best,
    )


def _score(estimator: Estimator, held: tuple[Rows, Labels] | None) -> float | None:
    """Judge by rows that were held out; by the training's own loss, if told, without any."""
    if held is None:
        return -float(estimator.loss_) if hasattr(estimator, "loss_") else None
    if hasattr(estimator, "predict_proba"):
        return log_likelihood(estimator, held[0], labels=held[1])
    return float(estimator.score(*held))


def _one_round(
    estimator: Estimator,
    rows: TurnedRows,
    schedule: _Schedule,
    *,
    number: int,
    classes: Labels | None,
) -> None:
    """Show an estimator the partitions of one round, each in an order of its own."""
    rng = np.random.default_rng([schedule.seed, number])
    extra = {} if classes is None else {"classes": classes}
    for read, labels in in_order(rows.rest, schedule.partitions(number)):
        order = rng.permutation(len(labels))
        for part in np.array_split(order, max(1, -(-len(order) // _ROWS_AT_ONCE))):
            _learn(estimator, read[part], labels[part], extra)


def _learn(estimator: Estimator, rows: Rows, labels: Labels, extra: dict[str, Labels]) -> None:
    """Call ``partial_fit``, which in scikit-learn's perceptron takes Ctrl-C for an end."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Training interrupted by user")
        try:
            estimator.partial_fit(rows, labels, **extra)
        except UserWarning as swallowed:
            raise KeyboardInterrupt from swallowed
