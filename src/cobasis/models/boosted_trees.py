"""Boosted trees by xgboost (extra ``trees``): in memory, out of it, or on several machines.

xgboost reads the blocks a few times, keeps each number as one of 256 steps, in a file of its own
where there are many, and builds trees from that: a quarter of the room that float32 takes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.errors import MissingExtraError
from cobasis.linalg.arrays import Matrix
from cobasis.models import Estimator
from cobasis.models.batches import rows_apart
from cobasis.models.passes import Block, LabelledRows, Labels, Pass, Share, Split
from cobasis.progress import Report

MAX_ROUNDS = 300
PATIENCE = 10

ENOUGH_FOR_STEPS = 50_000
"""With as many rows kept apart, a random sample, the steps are found from them: most of the time
that reading all rows takes would go into finding them from all."""

ROW_BYTES = 24
"""Of xgboost's file, beside two bytes for each number of a row."""

_SETTINGS = {"eta": 0.1, "max_depth": 6, "tree_method": "hist", "max_bin": 256, "verbosity": 0}


def require_xgboost() -> Any:  # noqa: ANN401 -- a module
    """Import xgboost, or say how to install it."""
    try:
        import xgboost
    except ImportError as error:
        raise MissingExtraError(
            "model='xgboost' needs the package xgboost, which is not installed. Install it with: "
            "pip install 'cobasis[trees]'"
        ) from error
    return xgboost


@dataclass(frozen=True)
class BoostedTrees:
    """Fitted trees with scikit-learn's ``predict`` and ``predict_proba``."""

    raw: npt.NDArray[np.uint8] = field(repr=False)
    classes_: Labels | None

    @cached_property
    def booster(self) -> Any:  # noqa: ANN401 -- xgboost.Booster, whose package is optional
        """The trees, as xgboost has them."""
        booster = require_xgboost().Booster()
        booster.load_model(bytearray(self.raw))
        return booster

    def predict(self, rows: Matrix) -> Labels:
        """Return the likeliest class, or the number, of each row."""
        if self.classes_ is None:
            return self._raw(rows)
        likeliest: Labels = self.classes_[np.argmax(self.predict_proba(rows), axis=1)]
        return likeliest

    def predict_proba(self, rows: Matrix) -> Matrix:
        """Return the likelihood of each class, a row of shape (n_classes,) for each."""
        found = self._raw(rows)
        return found if found.ndim > 1 else np.column_stack([1.0 - found, found])

    def _raw(self, rows: Matrix) -> Matrix:
        told = self.booster.inplace_predict(np.ascontiguousarray(rows, np.float32))
        predicted: Matrix = told.astype(np.float64)
        return predicted


def fit_xgboost(
    rows: LabelledRows,
    *,
    axes: Matrix,
    classes: Labels | None,
    seed: int,
    over: Pass,
) -> Estimator:
    """Boost trees along the axes, until rows that were kept apart see no gain."""
    require_xgboost()
    split = Split(axes=axes, n_apart=rows_apart(rows.n_rows), seed=seed)
    judged_by = split.judges(rows, over)
    work = partial(
        _boost,
        split=split,
        classes=classes,
        judged_by=None if judged_by is None else _told(judged_by, classes),
        max_rounds=MAX_ROUNDS,  # as here, whatever a worker's own module says
    )
    return BoostedTrees(over.together(work, rows), classes)


def _settings(classes: Labels | None, *, seed: int, threads: int) -> dict[str, Any]:
    """Return xgboost's parameters."""
    objective: dict[str, Any] = {"objective": "reg:squarederror"}
    if classes is not None:
        objective = {"objective": "binary:logistic", "eval_metric": "logloss"}
        if len(classes) > 2:  # noqa: PLR2004 -- more than two classes
            objective = {
                "objective": "multi:softprob",
                "eval_metric": "mlogloss",
                "num_class": len(classes),
            }
    return {**_SETTINGS, **objective, "seed": seed, "nthread": threads}


def _boost(
    rows: LabelledRows,
    share: Share,
    *,
    split: Split,
    classes: Labels | None,
    judged_by: Block | None,
    max_rounds: int,
) -> npt.NDArray[np.uint8]:
    """Boost on one worker's blocks, and return the trees up to the best round as bytes."""
    import xgboost

    settings = _settings(classes, seed=split.seed, threads=share.threads)
    steps = {"max_bin": settings["max_bin"], "nthread": settings["nthread"]}
    found = None
    if judged_by is not None and len(judged_by.labels) >= ENOUGH_FOR_STEPS:
        found = xgboost.QuantileDMatrix(judged_by.rows, label=judged_by.labels, **steps)
    kind = xgboost.QuantileDMatrix if share.folder is None else xgboost.ExtMemQuantileDMatrix
    matrix = kind(
        _blocks_for(lambda at: _told(split.rest(rows, at), classes), share), ref=found, **steps
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
    return np.frombuffer(booster.save_raw("ubj"), dtype=np.uint8)


def _told(block: Block, classes: Labels | None) -> Block:
    """Return float32 rows, and places among the classes that there are, or numbers as they are."""
    labels = block.labels if classes is None else np.searchsorted(classes, block.labels)
    return Block(block.rows.astype(np.float32), labels)


def _blocks_for(read: Callable[[int], Block], share: Share) -> Any:  # noqa: ANN401 -- xgboost.DataIter
    """Return xgboost's iterator over blocks."""
    import xgboost

    class Blocks(xgboost.DataIter):
        """Hands xgboost one block after the other, as often as it asks."""

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
    """Return what xgboost calls after each round."""
    import xgboost

    class Told(xgboost.callback.TrainingCallback):
        """Reports rounds."""

        def after_iteration(self, *told: Any) -> bool:  # noqa: ANN401 -- model, round, and log
            report("boosting, rounds at most", told[1] + 1, max_rounds)
            return False

    return Told()
