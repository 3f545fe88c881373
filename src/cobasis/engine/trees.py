"""Boosted trees out of core, by xgboost's external memory (extra ``trees``).

xgboost reads the partitions a few times, keeps each number as one of 256 steps in a cache file
of its own, and builds trees from that: a quarter of the room that float32 takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.disk.whole import require_room, scratch_folder
from cobasis.engine.partitions import Labels, Rows
from cobasis.engine.training_passes import Pass, TurnedRows
from cobasis.errors import MissingExtraError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import available_threads
from cobasis.models.families import Estimator, Task
from cobasis.progress import Report

PATIENCE = 10

ENOUGH_FOR_STEPS = 50_000
"""With as many held-out rows, a random sample, the steps are found from them: most of the time
that reading all rows takes would go into finding them from all."""

ROW_BYTES = 24
"""Of the cache, beside two bytes for each number of a row."""

_SETTINGS = {"eta": 0.1, "max_depth": 6, "tree_method": "hist", "max_bin": 256, "verbosity": 0}


def require_extra(package: str, *, extra: str) -> Any:  # noqa: ANN401 -- a module
    """Import an optional package, or say how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"this needs the package {package}, which is not installed. Install it with: "
            f"pip install 'cobasis[{extra}]'"
        ) from error


@dataclass(frozen=True)
class BoostedTrees:
    """Fitted trees with scikit-learn's ``predict`` and ``predict_proba``.

    Attributes
    ----------
    raw : ndarray of uint8
        xgboost's own binary JSON; no code is in it, and no row, but thresholds are aligned
        values.
    classes_ : ndarray of int64, or None for regression
        What the columns of ``predict_proba`` stand for.
    """

    raw: npt.NDArray[np.uint8] = field(repr=False)
    classes_: Labels | None

    @cached_property
    def booster(self) -> Any:  # noqa: ANN401 -- xgboost.Booster, whose package is optional
        """The trees, as xgboost has them."""
        booster = require_extra("xgboost", extra="trees").Booster()
        booster.load_model(bytearray(self.raw))
        return booster

    def predict(self, rows: Rows) -> Labels:
        """Return the likeliest class, or the number, of each row."""
        if self.classes_ is None:
            numbers: Labels = self._raw(rows).astype(np.float64)
            return numbers
        likeliest: Labels = self.classes_[np.argmax(self.predict_proba(rows), axis=1)]
        return likeliest

    def predict_proba(self, rows: Rows) -> Matrix:
        """Return the likelihood of each class, a row of shape (n_classes,) for each."""
        found = self._raw(rows).astype(np.float64)
        return found if found.ndim > 1 else np.column_stack([1.0 - found, found])

    def _raw(self, rows: Rows) -> Matrix:
        predicted: Matrix = self.booster.inplace_predict(np.ascontiguousarray(rows, np.float32))
        return predicted


def settings_for(task: Task, classes: Sequence[int], *, seed: int, threads: int) -> dict[str, Any]:
    """Return xgboost's parameters."""
    objective: dict[str, Any] = {"objective": "reg:squarederror"}
    if task == "classification":
        objective = {"objective": "binary:logistic", "eval_metric": "logloss"}
        if len(classes) > 2:  # noqa: PLR2004 -- more than two classes
            objective = {
                "objective": "multi:softprob",
                "eval_metric": "mlogloss",
                "num_class": len(classes),
            }
    return {**_SETTINGS, **objective, "seed": seed, "nthread": threads}


def fit_trees(
    rows: TurnedRows,
    *,
    task: Task,
    over: Pass,
    seed: int,
    max_rounds: int,
    report: Report,
    cache: Path | None = None,
) -> Estimator:
    """Fit boosted trees to partitions, until rows that were held out see no gain."""
    require_extra("xgboost", extra="trees")
    classes = tuple(rows.aligned.class_counts) if task == "classification" else ()
    held = rows.first(rows.n_held, over) if rows.n_held else None
    settings = settings_for(task, classes, seed=seed, threads=available_threads())
    with scratch_folder(cache) as folder:
        raw = boost(
            rows,
            range(len(rows.aligned.partitions)),
            settings=settings,
            classes=classes,
            held=held,
            folder=folder,
            max_rounds=max_rounds,
            report=report,
        )
    return BoostedTrees(raw, np.array(classes) if classes else None)


def boost(
    rows: TurnedRows,
    partitions: Sequence[int],
    *,
    settings: dict[str, Any],
    classes: Sequence[int],
    held: tuple[Rows, Labels] | None,
    folder: Path,
    max_rounds: int,
    report: Report,
) -> npt.NDArray[np.uint8]:
    """Boost on some partitions; inside xgboost's collective, together with the other workers.

    Returns the booster's bytes, cut after its best round. A disk that fills up while xgboost
    writes would end the whole process, so room is asked for first.
    """
    import xgboost  # noqa: PLC0415 -- an extra

    n_rows = sum(rows.aligned.partitions[index].n_rows for index in partitions)
    n_bytes = n_rows * (2 * rows.aligned.n_components + ROW_BYTES)
    require_room(folder, n_bytes, what="training boosted trees")
    steps = {"max_bin": settings["max_bin"], "nthread": settings["nthread"]}
    told = None if held is None else (held[0].astype(np.float32), _told(held[1], classes))
    found = None
    if told is not None and len(told[0]) >= ENOUGH_FOR_STEPS:
        found = xgboost.QuantileDMatrix(told[0], label=told[1], **steps)
    matrix = xgboost.ExtMemQuantileDMatrix(
        _partitions_for(rows, partitions, classes=classes, folder=folder), ref=found, **steps
    )
    watched = []
    if told is not None:
        judge = xgboost.QuantileDMatrix(told[0], label=told[1], ref=matrix, **steps)
        watched = [(judge, "held_out")]
    booster = xgboost.train(
        settings,
        matrix,
        num_boost_round=max_rounds,
        evals=watched,
        early_stopping_rounds=PATIENCE if watched else None,
        verbose_eval=False,
        callbacks=[_callback(report, max_rounds)],
    )
    if watched:
        booster = booster[: booster.best_iteration + 1]
    return np.frombuffer(booster.save_raw("ubj"), dtype=np.uint8)


def _told(labels: Labels, classes: Sequence[int]) -> Labels:
    """Return positions of classes, as xgboost wants them, or numbers as they are."""
    return np.searchsorted(np.array(classes), labels) if classes else labels


def _partitions_for(
    rows: TurnedRows, partitions: Sequence[int], *, classes: Sequence[int], folder: Path
) -> Any:  # noqa: ANN401 -- xgboost.DataIter, whose package is optional
    """Return xgboost's iterator over partitions."""
    import xgboost  # noqa: PLC0415 -- an extra

    class Partitions(xgboost.DataIter):
        """Hands xgboost one partition after the other, as often as it asks."""

        def __init__(self) -> None:
            self._left = iter(partitions)
            super().__init__(cache_prefix=str(folder / "cache"))

        def next(self, input_data: Any) -> bool:  # noqa: ANN401 -- xgboost's own callback
            index = next(self._left, None)
            if index is None:
                return False
            read, labels = rows.rest(index)
            input_data(data=read.astype(np.float32, copy=False), label=_told(labels, classes))
            return True

        def reset(self) -> None:
            self._left = iter(partitions)

    return Partitions()


def _callback(report: Report, max_rounds: int) -> Any:  # noqa: ANN401 -- xgboost.callback.TrainingCallback
    """Return what xgboost calls after each round."""
    import xgboost  # noqa: PLC0415 -- an extra

    class Told(xgboost.callback.TrainingCallback):
        """Reports rounds."""

        def after_iteration(self, *told: Any) -> bool:  # noqa: ANN401 -- model, round, and log
            report("boosting, rounds at most", told[1] + 1, max_rounds)
            return False

    return Told()
