"""xgboost's trees, also from blocks that do not fit in memory (extra ``trees``).

A tenth of the rows, 100,000 at most, is kept apart and judges: training ends when ten rounds in a
row bring these no gain, and the best model so far is kept. Up to 200 rows none is kept apart, since
each is needed to learn. Each number is kept as one of 256 steps, in a file where there are many.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cobasis.linalg.threads import available_threads
from cobasis.models.passes import Block, LabelledRows, Labels, Pass, Split
from cobasis.progress import Report

PATIENCE = 10
MAX_ROUNDS = 300

ENOUGH_FOR_STEPS = 50_000
"""With as many rows kept apart, a random sample, the steps are found from them: most of the time
that reading all rows takes would go into finding them from all."""

ROW_BYTES = 24
"""Of xgboost's file, beside two bytes for each number of a row."""

_SETTINGS = {"eta": 0.1, "max_depth": 6, "tree_method": "hist", "verbosity": 0}


def fit_xgboost(rows: LabelledRows, *, split: Split, classes: Labels | None, over: Pass) -> bytes:
    """Boost trees along the axes, until rows that were kept apart see no gain; as JSON."""
    import xgboost

    steps = {"max_bin": 256, "nthread": available_threads()}
    settings = {**_SETTINGS, **steps, "objective": "reg:squarederror", "seed": split.seed}
    if classes is not None:
        several = {"objective": "multi:softprob", "num_class": len(classes)}
        settings |= several if len(classes) > 2 else {"objective": "binary:logistic"}  # noqa: PLR2004
    found, judged_by = None, split.judges(rows, over)
    if judged_by is not None:
        judged_by = _told(judged_by, classes)
        if len(judged_by.labels) >= ENOUGH_FOR_STEPS:
            found = xgboost.QuantileDMatrix(judged_by.rows, label=judged_by.labels, **steps)
    with over.room(rows) as folder:
        blocks = _blocks_for(lambda at: _told(split.part(rows, at), classes), rows.n_blocks, folder)
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
            callbacks=[_callback(over.report)],
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
