"""Training on more aligned rows than memory holds."""

import hashlib
import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline

from cobasis.disk.whole import make_folder
from cobasis.engine.partitions import AlignedRows, Labels, Rows
from cobasis.engine.training_batches import fit_batches, rows_to_hold
from cobasis.engine.training_linear import fit_ridge
from cobasis.engine.training_logistic import fit_logistic
from cobasis.engine.training_passes import Frame, Pass, TurnedRows, find_frame, here
from cobasis.engine.trees import fit_trees, require_extra
from cobasis.errors import LabelError, OptionError
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.carrying import refuse_row_carrying
from cobasis.models.families import Estimator, ModelName, Task, family
from cobasis.models.training import TrainedModel, tuned
from cobasis.progress import Report, silent

SAMPLE_ROWS = 10_000
"""Rows on which the family's grid is searched in memory, by five folds."""

MAX_PASSES = 300

ON_A_CLUSTER = ("logistic", "ridge", "rff", "boosted_trees")


def train_partitions(
    aligned: AlignedRows,
    *,
    model: ModelName | Estimator,
    task: Task,
    seed: int,
    max_passes: int = MAX_PASSES,
    work: str | Path | None = None,
    cluster: Any = None,  # noqa: ANN401 -- distributed.Client, whose package is optional
    report: Report = silent,
) -> TrainedModel:
    """Train a family, or an estimator with ``partial_fit``, on aligned rows on disk.

    Ridge's penalty is chosen by cross-validation on all rows; those of logistic regression and
    of the perceptron from the family's grid on a random sample of 10,000. Then the model is
    fitted to all rows.
    """
    _refuse_labels(aligned, task)
    if max_passes < 1:
        raise OptionError(f"max_passes={max_passes} trains nothing. Give 1 or more.")
    _refuse_model(model, task, aligned.n_rows, seed)
    if cluster is not None and model not in ON_A_CLUSTER:
        raise OptionError(
            f"model={model!r} learns from one mini-batch after the other, which a cluster cannot "
            f"do faster. Train it without cluster=, or choose one of {', '.join(ON_A_CLUSTER)}."
        )
    over = here(aligned, report)
    if cluster is not None:
        from cobasis.engine.cluster import there  # noqa: PLC0415 -- an extra

        over = there(aligned, cluster, report=report)
    with one_blas_thread():
        frame = find_frame(aligned, over)
        rows = TurnedRows(aligned=aligned, axes=frame.axes)
        job = _Job(
            rows=rows,
            frame=frame,
            sample=rows.first(SAMPLE_ROWS, over),
            task=task,
            seed=seed,
            max_passes=max_passes,
            work=None if work is None else Path(work),
            over=over,
            cluster=cluster,
            report=report,
        )
        fitted = _fitted(model, job)
        refuse_row_carrying(fitted, job.sample[0].astype(np.float64))
    return TrainedModel(axes=frame.axes, estimator=fitted)


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What a training is made of, besides the model."""

    rows: TurnedRows
    frame: Frame
    sample: tuple[Rows, Labels]
    task: Task
    seed: int
    max_passes: int
    work: Path | None
    over: Pass
    cluster: Any
    report: Report

    def held(self) -> TurnedRows:
        """Return the rows with some held out, for early stopping."""
        return replace(self.rows, n_held=rows_to_hold(self.rows.aligned.n_rows))

    def tuned(self, name: ModelName) -> Estimator:
        """Return a family, tuned by cross-validation on the sample and fitted to it."""
        chosen, (rows, labels) = family(name, self.task), self.sample
        if self.task == "classification" and len(np.unique(labels)) == 1:
            return chosen.build(self.task, len(rows), self.seed)
        return tuned(chosen, rows, labels=labels, task=self.task, seed=self.seed)


def _refuse_labels(aligned: AlignedRows, task: Task) -> None:
    """Refuse rows without labels, or with others than the task needs."""
    kinds = {"classification": {"int64"}, "regression": {"int64", "float64"}}
    if aligned.label_dtype not in kinds.get(task, set()):
        raise LabelError(
            f"{aligned.path} holds {aligned.label_dtype or 'no'} labels, and task='{task}' cannot "
            "be trained on them: classes are int64, numbers float64. Choose the task that the "
            "parties agreed on."
        )
    if task == "classification" and len(aligned.class_counts) == 1:
        raise LabelError(
            f"all {aligned.n_rows:,} rows of all {len(aligned.parties)} parties are of one class, "
            "so there is nothing to tell apart. Check the label column."
        )


def _refuse_model(model: ModelName | Estimator, task: Task, n_rows: int, seed: int) -> None:
    """Refuse what carries rows, does another task, or cannot learn in parts."""
    if isinstance(model, str):
        chosen = family(cast("ModelName", model), task)
        if chosen.carries_rows:
            refuse_row_carrying(chosen.build(task, n_rows, seed))
        if model == "boosted_trees":
            require_extra("xgboost", extra="trees")
        return
    refuse_row_carrying(model)
    if not hasattr(model, "partial_fit"):
        raise OptionError(
            f"{type(model).__name__} has no partial_fit, so it cannot learn from rows that do not "
            "fit in memory. Use a family ('logistic', 'ridge', 'rff', 'mlp', 'boosted_trees'), or "
            "an estimator that has it, such as SGDClassifier."
        )


def _fitted(model: ModelName | Estimator, job: _Job) -> Estimator:
    """Fit the model, each family by its own way."""
    if not isinstance(model, str):
        return _by_batches(clone(model), job)
    if model == "mlp":
        unfitted = clone(job.tuned("mlp"))
        return _by_batches(unfitted.set_params(early_stopping=False, shuffle=False), job)
    if model == "boosted_trees":
        return _boosted(job)
    if model == "logistic":
        return fit_logistic(
            job.rows.aligned,
            job.frame,
            start=job.tuned("logistic"),
            sample=job.sample[0].astype(np.float64),
            over=job.over,
            report=job.report,
        )
    if model == "ridge":
        return fit_ridge(job.rows, task=job.task, over=job.over)
    unfitted = family("rff", job.task).build(job.task, job.rows.aligned.n_rows, job.seed)
    features = unfitted[0].fit(job.sample[0].astype(np.float64))
    ridge = fit_ridge(job.rows, task=job.task, over=job.over, features=features)
    return make_pipeline(features, ridge)


def _boosted(job: _Job) -> Estimator:
    """Boost trees here, or on the cluster."""
    options: dict[str, Any] = {
        "task": job.task,
        "over": job.over,
        "seed": job.seed,
        "max_rounds": job.max_passes,
    }
    if job.cluster is None:
        return fit_trees(job.held(), report=job.report, cache=job.work, **options)
    from cobasis.engine.cluster import fit_trees_there  # noqa: PLC0415 -- an extra

    return fit_trees_there(job.held(), client=job.cluster, **options)


def _by_batches(estimator: Estimator, job: _Job) -> Estimator:
    """Train by mini-batches, with a mark after each round where that is possible."""
    mark = None
    perceptron = isinstance(estimator, MLPClassifier | MLPRegressor)
    exact = perceptron and estimator.solver == "adam" and not estimator.shuffle
    if job.work is not None and exact:  # what else would end in other weights
        make_folder(job.work)
        told = [job.rows.aligned.run, job.seed, repr(sorted(estimator.get_params().items()))]
        name = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]
        mark = job.work / f"perceptron-{name}.safetensors"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit_batches(
            estimator,
            job.held(),
            over=job.over,
            seed=job.seed,
            max_passes=job.max_passes,
            report=job.report,
            mark=mark,
        )
