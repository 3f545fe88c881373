"""Learning from blocks that do not fit in memory: mini-batches, and xgboost's trees.

A tenth of the rows, 100,000 at most, is kept apart and judges: training ends when ten rounds in a
row bring these no gain, and the best model so far is kept. Up to 200 rows none is kept apart, since
each is needed to learn: then the training's own loss judges, or nobody and the last round counts.

*Mini-batches* teach whatever learns by ``partial_fit``. A round is a pass over all blocks, or over
a million rows of them if there are more; blocks come in a new order in each pass. *xgboost* (extra
``trees``) keeps each number as one of 256 steps, in a file of its own where there are many.
"""

import copy
import hashlib
import warnings
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from cobasis.errors import CobasisError, NotFiniteError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import in_order
from cobasis.models import Estimator
from cobasis.models.passes import Block, LabelledRows, Labels, Pass, Share, Split
from cobasis.models.tuning import log_likelihood
from cobasis.progress import Report

PATIENCE = 10
ROUND_ROWS = 1_000_000
MAX_PASSES = 300
STATE = "training"
_TOLERANCE = 1e-4
_ROWS_AT_ONCE = 20_000

State: TypeAlias = MutableMapping[str, tuple[Mapping[str, Matrix], Mapping[str, Any]]]
"""What training goes on from after an interruption: tables and facts by name. A value that is
assigned is kept whole or not at all; one that cannot be read raises CobasisError."""


@dataclass(kw_only=True)
class Batches:
    rows: LabelledRows
    split: Split
    classes: Labels | None
    number: int = 0
    score: float = float("-inf")
    stale: int = 0
    best: Estimator = field(default=None, repr=False)

    def fit(self, estimator: Estimator, *, over: Pass, report: Report, state: State) -> Estimator:
        from sklearn.exceptions import ConvergenceWarning

        judged_by = self.split.judges(self.rows, over)
        settings = self._settings(estimator) if _is_exact(estimator) else ""
        if settings:
            estimator = self._resumed(estimator, state, settings)
        n_blocks = self.rows.n_blocks
        per_round = max(1, min(n_blocks, ROUND_ROWS * n_blocks // self.rows.n_rows))
        last = MAX_PASSES * -(-n_blocks // per_round)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            while self.number < last and self.stale < PATIENCE:
                self._learn_round(estimator, per_round)
                self._judge(estimator, _score(estimator, judged_by))
                if settings:
                    state[STATE] = self._kept(estimator, settings)
                report("training, rounds at most", self.number, last)
        if settings:
            state.pop(STATE, None)
        return self.best

    def _learn_round(self, estimator: Estimator, per_round: int) -> None:
        # Orders follow from the seed and the round's number alone, so that a training that goes on
        # after an interruption sees what it would have seen.
        passes, place = divmod(self.number, -(-self.rows.n_blocks // per_round))
        order = np.random.default_rng([self.split.seed, passes]).permutation(self.rows.n_blocks)
        chosen = order[place * per_round : (place + 1) * per_round].tolist()
        rng = np.random.default_rng([self.split.seed, self.number])
        for block in in_order(partial(self.split.part, self.rows), chosen):
            shuffled = rng.permutation(len(block.labels))
            for part in np.array_split(shuffled, max(1, -(-len(shuffled) // _ROWS_AT_ONCE))):
                self._learn(estimator, Block(block.rows[part], block.labels[part]))

    def _learn(self, estimator: Estimator, block: Block) -> None:
        """Call ``partial_fit``, which in scikit-learn's perceptron takes Ctrl-C for an end."""
        if not len(block.labels):
            return
        extra = {} if self.classes is None else {"classes": self.classes}
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="Training interrupted by user")
            try:
                estimator.partial_fit(block.rows, block.labels, **extra)
            except UserWarning as swallowed:
                raise KeyboardInterrupt from swallowed

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

    def _kept(
        self, estimator: Estimator, settings: str
    ) -> tuple[dict[str, Matrix], dict[str, Any]]:
        """Return a perceptron's numbers, now and at their best, and where training stands."""
        tables = {
            f"{name}.{place:03d}": each
            for name, trained in (("now", estimator), ("best", self.best))
            for place, each in enumerate(_numbers(trained))
        }
        facts = {name: getattr(self, name) for name in ("number", "score", "stale")}
        steps = estimator._optimizer.t  # noqa: SLF001 -- as _numbers
        return tables, {**facts, "settings": settings, "steps": steps}

    def _settings(self, estimator: Estimator) -> str:
        """Return what makes two trainings the same; the first block has rows of every party."""
        how = type(estimator).__name__, sorted(estimator.get_params().items())
        told = repr((self.rows.n_rows, self.rows.n_blocks, self.split.seed, how)).encode()
        first = (each.tobytes() for each in self.rows.block(0))
        return hashlib.sha256(b"".join([*first, told])).hexdigest()

    def _resumed(self, estimator: Estimator, state: State, settings: str) -> Estimator:
        """Return a perceptron in the state that was kept, or as it is if there is none."""
        try:
            tables, facts = state[STATE]
            if facts["settings"] != settings:
                return estimator
            # One step on nothing builds layers and optimiser, whose numbers are then replaced.
            now = copy.deepcopy(estimator)
            labels = np.zeros(1) if self.classes is None else self.classes[:1]
            self._learn(now, Block(np.zeros((1, self.rows.n_columns)), labels))
            best = copy.deepcopy(now)
            for name, made in (("now", now), ("best", best)):
                for place, each in enumerate(_numbers(made)):
                    each[...] = tables[f"{name}.{place:03d}"]
                made._optimizer.t = facts["steps"]  # noqa: SLF001 -- as _numbers
            self.number, self.score = int(facts["number"]), float(facts["score"])
            self.stale, self.best = int(facts["stale"]), best
        except (CobasisError, KeyError, TypeError, ValueError):
            return estimator
        return now


def _is_exact(estimator: Estimator) -> bool:
    """Whether weights and averages are all that a training has to be gone on from."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    perceptron = isinstance(estimator, MLPClassifier | MLPRegressor)
    return perceptron and estimator.solver == "adam" and not estimator.shuffle


def _numbers(estimator: Estimator) -> list[Any]:
    """Return a perceptron's own arrays: weights, and what Adam averages of their slopes."""
    adam = estimator._optimizer  # noqa: SLF001 -- the only place that has the averages
    return [*estimator.coefs_, *estimator.intercepts_, *adam.ms, *adam.vs]


def _score(estimator: Estimator, judged_by: Block | None) -> float | None:
    """Judge by rows that were kept apart; by the training's own loss, if told, without any."""
    if judged_by is None:
        return -float(estimator.loss_) if hasattr(estimator, "loss_") else None
    if hasattr(estimator, "predict_proba"):
        return log_likelihood(estimator, judged_by)
    return float(estimator.score(*judged_by))


# ---------------------------------------------------------------- xgboost

MAX_ROUNDS = 300

ENOUGH_FOR_STEPS = 50_000
"""With as many rows kept apart, a random sample, the steps are found from them: most of the time
that reading all rows takes would go into finding them from all."""

ROW_BYTES = 24
"""Of xgboost's file, beside two bytes for each number of a row."""

_SETTINGS = {"eta": 0.1, "max_depth": 6, "tree_method": "hist", "verbosity": 0}


def fit_xgboost(rows: LabelledRows, *, split: Split, classes: Labels | None, over: Pass) -> bytes:
    """Boost trees along the axes, until rows that were kept apart see no gain; as JSON."""
    judged_by = split.judges(rows, over)
    work = partial(
        _boost,
        split=split,
        classes=classes,
        judged_by=None if judged_by is None else _told(judged_by, classes),
        max_rounds=MAX_ROUNDS,  # as here, whatever a worker's own module says
    )
    return over.together(work, rows)


def _boost(
    rows: LabelledRows,
    share: Share,
    *,
    split: Split,
    classes: Labels | None,
    judged_by: Block | None,
    max_rounds: int,
) -> bytes:
    import xgboost

    steps = {"max_bin": 256, "nthread": share.threads}
    settings = {**_SETTINGS, **steps, "objective": "reg:squarederror", "seed": split.seed}
    if classes is not None:
        several = {"objective": "multi:softprob", "num_class": len(classes)}
        settings |= several if len(classes) > 2 else {"objective": "binary:logistic"}  # noqa: PLR2004
    found = None
    if judged_by is not None and len(judged_by.labels) >= ENOUGH_FOR_STEPS:
        found = xgboost.QuantileDMatrix(judged_by.rows, label=judged_by.labels, **steps)
    kind = xgboost.QuantileDMatrix if share.folder is None else xgboost.ExtMemQuantileDMatrix
    matrix = kind(
        _blocks_for(lambda at: _told(split.part(rows, at), classes), share), ref=found, **steps
    )
    watched = []
    if judged_by is not None:
        told, truth = judged_by
        judge = xgboost.QuantileDMatrix(told, label=truth, ref=matrix, **steps)
        watched = [(judge, "kept_apart")]
    booster = xgboost.train(
        settings,
        matrix,
        num_boost_round=max_rounds,
        evals=watched,
        early_stopping_rounds=PATIENCE if watched else None,
        verbose_eval=False,
        callbacks=[_callback(share.report, max_rounds)],
    )
    if watched:
        booster = booster[: booster.best_iteration + 1]
    return bytes(booster.save_raw("json"))


def _told(block: Block, classes: Labels | None) -> Block:
    """Return float32 rows, and places among the classes that there are, or numbers as they are."""
    labels = block.labels if classes is None else np.searchsorted(classes, block.labels)
    return Block(block.rows.astype(np.float32), labels)


def _blocks_for(read: Callable[[int], Block], share: Share) -> Any:  # noqa: ANN401 -- xgboost.DataIter
    import xgboost

    class Blocks(xgboost.DataIter):
        def __init__(self) -> None:
            self.reset()
            super().__init__(cache_prefix=share.folder and f"{share.folder}/cache")

        def next(self, input_data: Any) -> bool:  # noqa: ANN401 -- xgboost's own callback
            for block in map(read, self._left):
                if len(block.labels):  # xgboost takes no empty ones
                    input_data(data=block.rows, label=block.labels)
                    return True
            return False

        def reset(self) -> None:
            self._left = iter(share.blocks)

    return Blocks()


def _callback(report: Report, max_rounds: int) -> Any:  # noqa: ANN401 -- xgboost.callback.TrainingCallback
    import xgboost

    class Told(xgboost.callback.TrainingCallback):
        def after_iteration(self, *told: Any) -> bool:  # noqa: ANN401 -- model, round, and log
            report("boosting, rounds at most", told[1] + 1, max_rounds)
            return False

    return Told()
