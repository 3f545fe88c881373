"""Learning from blocks that do not fit in memory: mini-batches, and xgboost's trees.

A tenth of the rows, 100,000 at most, is kept apart and judges: training ends when ten rounds in a
row bring these no gain, and the best model so far is kept. Up to 200 rows none is kept apart, since
each is needed to learn: then the training's own loss judges, or of trees nobody.

*Mini-batches* teach a perceptron. A round is a pass over all blocks, or over a million rows of them
if there are more. *xgboost* (extra ``trees``) keeps each number as one of 256 steps, in a file of
its own where there are many.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cobasis.linalg.threads import available_threads, in_order
from cobasis.models import Estimator
from cobasis.models.passes import Block, Job, Labels
from cobasis.models.tuning import log_likelihood
from cobasis.progress import Report

PATIENCE = 10
ROUND_ROWS = 1_000_000
MAX_PASSES = 300
_TOLERANCE = 1e-4
_ROWS_AT_ONCE = 20_000


def fit_by_batches(network: Estimator, job: Job) -> Estimator:
    """Teach a perceptron round by round, and return it as it was at its best."""
    rows, judged_by = job.rows, job.judges()
    extra = {} if job.classes is None else {"classes": job.classes}
    per_round = max(1, min(rows.n_blocks, ROUND_ROWS * rows.n_blocks // rows.n_rows))
    last = MAX_PASSES * -(-rows.n_blocks // per_round)
    best, score, stale = network, float("-inf"), 0
    for number in range(last):
        for block in _round(job, number, per_round):
            with warnings.catch_warnings():
                # scikit-learn's perceptron takes Ctrl-C for an end, and says no more than this
                warnings.filterwarnings("error", message="Training interrupted by user")
                try:
                    network.partial_fit(block.rows, block.labels, **extra)
                except UserWarning as swallowed:
                    raise KeyboardInterrupt from swallowed
        now = _score(network, judged_by)
        stale += 1
        if now > score + _TOLERANCE:
            best, score, stale = copy.deepcopy(network), now, 0
        job.over.report("training, rounds at most", number + 1, last)
        if stale == PATIENCE:
            break
    return best


def _round(job: Job, number: int, per_round: int) -> Iterator[Block]:
    """Yield a round's rows in mini-batches; blocks come in a new order in each pass."""
    passes, place = divmod(number, -(-job.rows.n_blocks // per_round))
    order = np.random.default_rng([job.seed, passes]).permutation(job.rows.n_blocks)
    chosen = order[place * per_round : (place + 1) * per_round].tolist()
    rng = np.random.default_rng([job.seed, number])
    for block in in_order(job.part, chosen):
        shuffled = rng.permutation(len(block.labels))
        for part in np.array_split(shuffled, max(1, -(-len(shuffled) // _ROWS_AT_ONCE))):
            if len(part):
                yield Block(block.rows[part], block.labels[part])


def _score(network: Estimator, judged_by: Block | None) -> float:
    """Judge by rows that were kept apart; by the training's own loss without any."""
    if judged_by is None:
        return -float(network.loss_)
    if hasattr(network, "predict_proba"):
        return log_likelihood(network, judged_by)
    return float(network.score(*judged_by))


# ---------------------------------------------------------------- xgboost

MAX_ROUNDS = 300

ENOUGH_FOR_STEPS = 50_000
"""With as many rows kept apart, a random sample, the steps are found from them: most of the time
that reading all rows takes would go into finding them from all."""

ROW_BYTES = 24
"""Of xgboost's file, beside two bytes for each number of a row."""


def fit_xgboost(job: Job) -> bytes:
    """Boost trees along the axes, until rows that were kept apart see no gain; as JSON."""
    import xgboost

    steps = {"max_bin": 256, "nthread": available_threads()}
    grown = {"eta": 0.1, "max_depth": 6, "tree_method": "hist", "seed": job.seed, **steps}
    settings = {**grown, "verbosity": 0, "objective": "reg:squarederror"}
    if (classes := job.classes) is not None:
        several = {"objective": "multi:softprob", "num_class": len(classes)}
        settings |= several if len(classes) > 2 else {"objective": "binary:logistic"}  # noqa: PLR2004
    found, judged_by = None, job.judges()
    if judged_by is not None:
        judged_by = _told(judged_by, classes)
        if len(judged_by.labels) >= ENOUGH_FOR_STEPS:
            found = xgboost.QuantileDMatrix(judged_by.rows, label=judged_by.labels, **steps)
    with job.over.room(job.rows) as folder:
        blocks = _blocks_for(lambda at: _told(job.part(at), classes), job.rows.n_blocks, folder)
        kind = xgboost.QuantileDMatrix if folder is None else xgboost.ExtMemQuantileDMatrix
        matrix, watched = kind(blocks, ref=found, **steps), []
        if judged_by is not None:
            told, truth = judged_by
            judge = xgboost.QuantileDMatrix(told, label=truth, ref=matrix, **steps)
            watched = [(judge, "kept_apart")]
        booster = xgboost.train(
            settings,
            matrix,
            num_boost_round=MAX_ROUNDS,
            evals=watched,
            early_stopping_rounds=PATIENCE if watched else None,
            verbose_eval=False,
            callbacks=[_callback(job.over.report)],
        )
        del matrix, blocks  # which delete files of theirs, and say so where these are gone
    if watched:
        booster = booster[: booster.best_iteration + 1]
    return bytes(booster.save_raw("json"))


def _told(block: Block, classes: Labels | None) -> Block:
    """Return float32 rows, and places among the classes that there are, or numbers as they are."""
    labels = block.labels if classes is None else np.searchsorted(classes, block.labels)
    return Block(block.rows.astype(np.float32), labels)


def _blocks_for(read: Callable[[int], Block], n_blocks: int, folder: str | None) -> Any:  # noqa: ANN401 -- xgboost.DataIter
    import xgboost

    class Blocks(xgboost.DataIter):
        def __init__(self) -> None:
            self.reset()
            super().__init__(cache_prefix=None if folder is None else f"{folder}/cache")

        def next(self, input_data: Any) -> bool:  # noqa: ANN401 -- xgboost's own callback
            for block in map(read, self._left):
                if len(block.labels):  # xgboost takes no empty ones
                    input_data(data=block.rows, label=block.labels)
                    return True
            return False

        def reset(self) -> None:
            self._left = iter(range(n_blocks))

    return Blocks()


def _callback(report: Report) -> Any:  # noqa: ANN401 -- xgboost.callback.TrainingCallback
    import xgboost

    class Told(xgboost.callback.TrainingCallback):
        def after_iteration(self, *told: Any) -> bool:  # noqa: ANN401 -- model, round, and log
            report("boosting, rounds at most", told[1] + 1, MAX_ROUNDS)
            return False

    return Told()
