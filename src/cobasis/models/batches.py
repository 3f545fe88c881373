"""Mini-batches of many blocks: a multilayer perceptron, or whatever learns by ``partial_fit``.

A round is a pass over all blocks, or over a million rows of them if there are more. After each the
rows that were kept apart judge; when they see no gain for ten rounds, the best model so far is
kept. Up to 200 rows none is kept apart: the training's own loss judges, and for an estimator that
tells none nobody does, so that its last round counts. Blocks come in a new order in each pass.
"""

import copy
import hashlib
import json
import warnings
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from cobasis.errors import CobasisError, NotFiniteError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import in_order
from cobasis.models import Estimator
from cobasis.models.families import EARLY_STOPPING_ROWS, log_likelihood
from cobasis.models.passes import Block, LabelledRows, Labels, Pass, Split
from cobasis.progress import Report

ROWS_APART = 100_000
"""At most; a tenth of all rows if that is less."""

ROUND_ROWS = 1_000_000
MAX_PASSES = 300
PATIENCE = 10
STATE = "training"
_TOLERANCE = 1e-4
_ROWS_AT_ONCE = 20_000

State: TypeAlias = MutableMapping[str, tuple[Mapping[str, Matrix], Mapping[str, Any]]]
"""What training goes on from after an interruption: tables and facts by name. A value that is
assigned is kept whole or not at all; one that cannot be read raises CobasisError."""


def rows_apart(n_rows: int) -> int:
    """Return how many rows early stopping is judged by; none where each is needed to learn."""
    return min(n_rows // 10, ROWS_APART) if n_rows > EARLY_STOPPING_ROWS else 0


@dataclass(kw_only=True)
class Batches:
    """A training by rounds."""

    rows: LabelledRows
    split: Split
    classes: Labels | None
    number: int = 0
    score: float = float("-inf")
    stale: int = 0
    best: Estimator = field(default=None, repr=False)
    settings: str = ""

    def fit(self, estimator: Estimator, *, over: Pass, report: Report, state: State) -> Estimator:
        """Train until the rows that were kept apart see no gain."""
        from sklearn.exceptions import ConvergenceWarning

        judged_by = self.split.judges(self.rows, over)
        resumes = _is_exact(estimator)
        if resumes:
            self.settings = self._settings(estimator)
            estimator = self._resumed(estimator, state)
        n_blocks = self.rows.n_blocks
        per_round = max(1, min(n_blocks, ROUND_ROWS * n_blocks // self.rows.n_rows))
        last = MAX_PASSES * -(-n_blocks // per_round)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            while self.number < last and self.stale < PATIENCE:
                self._learn_round(estimator, per_round)
                self._judge(estimator, _score(estimator, judged_by))
                if resumes:
                    state[STATE] = self._tables(estimator), self._facts(estimator)
                report("training, rounds at most", self.number, last)
        if resumes:
            state.pop(STATE, None)
        return self.best

    def _learn_round(self, estimator: Estimator, per_round: int) -> None:
        """Show an estimator the blocks of one round, each in an order of its own."""
        passes, place = divmod(self.number, -(-self.rows.n_blocks // per_round))
        order = np.random.default_rng([self.split.seed, passes]).permutation(self.rows.n_blocks)
        chosen = order[place * per_round : (place + 1) * per_round].tolist()
        rng = np.random.default_rng([self.split.seed, self.number])
        extra = {} if self.classes is None else {"classes": self.classes}
        for block in in_order(partial(self.split.rest, self.rows), chosen):
            shuffled = rng.permutation(len(block.labels))
            for part in np.array_split(shuffled, max(1, -(-len(shuffled) // _ROWS_AT_ONCE))):
                _learn(estimator, Block(block.rows[part], block.labels[part]), extra)

    def _judge(self, estimator: Estimator, score: float | None) -> None:
        """Say where training stands after one more round; without a score the last is the best."""
        if self.best is None and score is not None and not np.isfinite(score):
            raise NotFiniteError(
                f"after its first round {type(estimator).__name__} scores {score}, so its training "
                "diverges and there is no model to return. Give it a smaller learning rate or a "
                "stronger penalty, or check the scale of the rows."
            )
        self.number += 1
        self.stale += 1
        if score is None or score > self.score + _TOLERANCE:
            self.score = self.score if score is None else score
            self.stale, self.best = 0, copy.deepcopy(estimator)

    def _tables(self, estimator: Estimator) -> dict[str, Matrix]:
        """Return a perceptron's weights, now and at its best, and Adam's averages."""
        adam = estimator._optimizer  # noqa: SLF001 -- the only place that has the averages
        kept = {
            "now": _weights(estimator),
            "best": _weights(self.best),
            "first": adam.ms,
            "second": adam.vs,
        }
        return {
            f"{what}.{place:03d}": each
            for what, arrays in kept.items()
            for place, each in enumerate(arrays)
        }

    def _facts(self, estimator: Estimator) -> dict[str, Any]:
        """Return where training stands, and with which settings it came there."""
        return {
            "settings": self.settings,
            "number": self.number,
            "score": self.score,
            "stale": self.stale,
            "steps": estimator._optimizer.t,  # noqa: SLF001 -- same
        }

    def _settings(self, estimator: Estimator) -> str:
        """Return what makes two trainings the same; the first block has rows of every party."""
        told = [
            *(hashlib.sha256(each.tobytes()).hexdigest() for each in self.rows.block(0)),
            self.rows.n_rows,
            self.rows.n_blocks,
            self.split.seed,
            type(estimator).__name__,
            repr(sorted(estimator.get_params().items())),
        ]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def _resumed(self, estimator: Estimator, state: State) -> Estimator:
        """Return a perceptron in the state that was kept, or as it is if there is none."""
        try:
            tables, facts = state[STATE]
            if facts["settings"] != self.settings:
                return estimator
            return self._restored(copy.deepcopy(estimator), tables, dict(facts))
        except (CobasisError, KeyError, TypeError, ValueError):
            return estimator

    def _restored(
        self, estimator: Estimator, tables: Mapping[str, Matrix], facts: dict[str, Any]
    ) -> Estimator:
        """Bring a perceptron to the state that was kept."""
        arrays: dict[str, list[Matrix]] = {}
        for name in sorted(tables):
            arrays.setdefault(name.partition(".")[0], []).append(tables[name])
        like = np.zeros((1, self.rows.n_columns))
        if self.classes is None:
            estimator.partial_fit(like, np.zeros(1))
        else:
            estimator.partial_fit(like, self.classes[:1], classes=self.classes)
        best = copy.deepcopy(estimator)
        for made, kept in ((estimator, "now"), (best, "best")):
            for weights, found in zip(_weights(made), arrays[kept], strict=True):
                weights[...] = found
        adam = estimator._optimizer  # noqa: SLF001 -- same
        adam.ms, adam.vs, adam.t = arrays["first"], arrays["second"], facts["steps"]
        self.number, self.score = int(facts["number"]), float(facts["score"])
        self.stale, self.best = int(facts["stale"]), best
        return estimator


def _is_exact(estimator: Estimator) -> bool:
    """Whether weights and averages are all that a training has to be gone on from."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    perceptron = isinstance(estimator, MLPClassifier | MLPRegressor)
    return perceptron and estimator.solver == "adam" and not estimator.shuffle


def _weights(estimator: Estimator) -> list[Any]:
    """Return a perceptron's own arrays, layer by layer."""
    return [*estimator.coefs_, *estimator.intercepts_]


def _score(estimator: Estimator, judged_by: Block | None) -> float | None:
    """Judge by rows that were kept apart; by the training's own loss, if told, without any."""
    if judged_by is None:
        return -float(estimator.loss_) if hasattr(estimator, "loss_") else None
    if hasattr(estimator, "predict_proba"):
        return log_likelihood(estimator, judged_by.rows, labels=judged_by.labels)
    return float(estimator.score(*judged_by))


def _learn(estimator: Estimator, block: Block, extra: dict[str, Labels]) -> None:
    """Call ``partial_fit``, which in scikit-learn's perceptron takes Ctrl-C for an end."""
    if not len(block.labels):
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Training interrupted by user")
        try:
            estimator.partial_fit(block.rows, block.labels, **extra)
        except UserWarning as swallowed:
            raise KeyboardInterrupt from swallowed
