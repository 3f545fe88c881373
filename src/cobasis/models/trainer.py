"""Training a family on rows that lie in one frame, wherever they lie.

Ridge, random features and logistic regression are sums over rows: one code for one block, for many
and for a cluster. The other families are libraries': on many blocks a perceptron learns by
mini-batches, xgboost from files, and scikit-learn's trees are refused.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np

from cobasis.errors import LabelError, OptionError
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.models import TABULAR, ChainFamily, Estimator, ModelName, Task, family, needing
from cobasis.models.chain import Affine, Chain, Head, Held, Layer, chain_of
from cobasis.models.linear import FACTOR, Design, draw_waves, fit_logistic, fit_ridge
from cobasis.models.out_of_core import fit_by_batches, fit_xgboost
from cobasis.models.passes import (
    Job,
    LabelledRows,
    Labels,
    Pass,
    WholeRows,
    axes_of,
    look,
)
from cobasis.models.sources import boosted_layers, network_layers, xgboost_layers
from cobasis.models.tuning import folds, refuse_row_carrying, stored_bytes, tuned, unfitted
from cobasis.progress import Report, silent


@dataclass(frozen=True, kw_only=True)
class TrainedModel:
    # orthogonal; the first step of the model; identity for raw rows
    axes: Matrix = field(repr=False)
    estimator: Estimator  # fitted on rows turned by the axes

    def predict(self, rows: Matrix) -> Labels:
        return np.asarray(self.estimator.predict(rows @ self.axes))

    def scores(self, rows: Matrix, *, method: str) -> Labels:
        return np.asarray(getattr(self.estimator, method)(rows @ self.axes))

    @property
    def n_bytes(self) -> int:
        return int(self.axes.nbytes) + stored_bytes(self.estimator)


Model: TypeAlias = Chain | TrainedModel
"""What training gives: an estimator of the user's own has no form as a chain."""


def train(
    rows: LabelledRows | Matrix,
    labels: Labels | None = None,
    *,
    model: ModelName | Estimator,
    task: Task,
    seed: int,
    n_classes: int | None = None,
    over: Pass | None = None,
    report: Report = silent,
    allow_row_carrying: bool = False,
    aligned: bool = True,
    tempered: bool = True,
) -> Model:
    """Train a family, tuned by cross-validation, or an estimator as it is.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_components), or LabelledRows
        Of all parties together, or of one for comparison.
    labels : ndarray of shape (n_rows,)
        With an array of rows: positions of classes, at least two of them, or numbers.
    model : str or scikit-learn estimator
        A family's name, or an unfitted estimator or pipeline, which is cloned.
    task : {"classification", "regression"}
        What the family is for.
    seed : int
        For folds, initial weights and random features; no secret depends on it.
    n_classes : int, optional
        How many classes were agreed on; by default one more than the largest label.
    over : Pass, optional
        Where passes are done; by default in threads here.
    report : callable, optional
        Told how far it is.
    allow_row_carrying : bool
        Accept a model that stores rows; simulation only.
    aligned : bool
        Turn to principal axes first; False for raw features, whose frame means something.
    tempered : bool
        Make a family's scores likelihoods that are right on rows that a fit has not seen; False
        for rows with noise, which say nothing of how sure a model may be of rows without.

    Returns
    -------
    Chain or TrainedModel
        Ready to predict: positions of classes, or numbers. An estimator of your own and "svm"
        have no form as a chain.

    Raises
    ------
    RowCarryingError
        The model stores training rows.
    OptionError
        No such family for the task, or it cannot be trained on more rows than fit in memory.
    LabelError
        Labels are not the task's, or all of one class.

    Notes
    -----
    **Who sees what.** The analyst trains; every party gets the model.

    **Cost.** Of ridge and random features four passes at most; of logistic regression one for each
    of five to fifteen steps; of others five folds for each value of the grid, then one fit.
    """
    refuse_model(model, task, allow_row_carrying=allow_row_carrying)
    given = rows if labels is None else WholeRows(np.asarray(rows), np.asarray(labels), seed=seed)
    over = Pass(report) if over is None else over
    with one_blas_thread(), over.copied(cast("LabelledRows", given)) as source:
        seen = look(source, over, task=task, n_classes=n_classes)
        axes = axes_of(source, seen, over=over) if aligned else np.eye(source.n_columns)
        held: Held = []
        job = Job(
            rows=source,
            over=over,
            axes=axes,
            seen=seen,
            n_classes=len(seen.counts),
            present=np.flatnonzero(seen.counts),
            task=task,
            seed=seed,
            tempered=tempered,
            held=held,
            tuned=partial(tuned, task=task, seed=seed, held=held),
        )
        if not isinstance(model, str):
            return _users(model, job, allow_row_carrying=allow_row_carrying)
        if task == "classification" and len(job.present) == 1:
            raise LabelError(
                f"all {source.n_rows:,} rows are of one class, so there is nothing to tell apart. "
                "Check the label column."
            )
        fitted = _FITS[cast("ModelName", model)](job)
        return fitted.tempered(job.held) if tempered and isinstance(fitted, Chain) else fitted


def refuse_model(
    model: ModelName | Estimator, task: Task, *, allow_row_carrying: bool = False
) -> None:
    """Refuse what carries rows, does another task, or needs a package that is not there."""
    if not isinstance(model, str):
        if not allow_row_carrying:
            refuse_row_carrying(model)
        return
    chosen = family(cast("ModelName", model), task)
    if model in TABULAR:
        raise OptionError(
            f"model='{model}' is a regression table of all parties' rows, and no model that is "
            "trained by itself. Agree on it, or ask simulate(..., model=...) for it."
        )
    if chosen.carries_rows and not allow_row_carrying:
        refuse_row_carrying(unfitted(cast("ModelName", model), task, n_rows=1, seed=0))
    if model == "xgboost":
        with needing("xgboost", extra="trees", what="model='xgboost'"):
            import xgboost  # noqa: F401


def _linear(job: Job, *, name: ChainFamily) -> Chain:
    """Fit ridge to rows in their own frame, which turning would not change, or to waves of them."""
    waves, width = None, job.rows.n_columns
    if name == "rff":
        waves = draw_waves(job.axes, variance=job.variance, seed=job.seed)
        width = len(waves.offset)
    design = Design(width=width, waves=waves, n_classes=job.n_classes, present=job.present)
    last, _, held = fit_ridge(job.rows, design=design, over=job.over)
    layers: list[Layer] = [last]
    if waves is not None:
        layers = [waves, "Cos", Affine(weights=last.weights * FACTOR, offset=last.offset)]
    if job.n_classes:
        job.held.extend(held)
    head: Head = "probabilities" if job.tempered else "decision"
    return chain_of(name, layers, present=job.present, n_classes=job.n_classes, head=head)


def _logistic(job: Job) -> Chain:
    """Fit logistic regression in the rows' own frame, with the sample's best strength."""
    present, sample = job.present, job.along(job.sample)
    n_outputs = 1 if len(present) == 2 else len(present)  # noqa: PLR2004 -- of two, one tells both
    start, strength = np.zeros((n_outputs, job.rows.n_columns + 1)), 1.0
    if len(np.unique(sample.labels)) > 1:
        tried = job.tuned("logistic", sample)
        strength = float(tried.get_params()["C"])
        if np.array_equal(tried.classes_, present):
            start = np.column_stack([tried.coef_ @ job.axes.T, tried.intercept_])
            if n_outputs > 1:
                start[:, -1] -= start[:, -1].mean()
    fitted = fit_logistic(job.rows, present=present, strength=strength, start=start, over=job.over)
    return chain_of("logistic", [fitted], present=present, n_classes=job.n_classes)


def _perceptron(job: Job) -> Chain:
    from sklearn.base import clone

    if job.rows.n_blocks == 1:
        return job.chain("mlp", network_layers(job.tuned("mlp", job.whole("mlp"))))
    chosen = job.tuned("mlp", job.along(job.sample))
    network = clone(chosen).set_params(early_stopping=False, shuffle=False)
    return job.chain("mlp", network_layers(fit_by_batches(network, job)))


def _boosted_trees(job: Job) -> Chain:
    fitted = job.tuned("boosted_trees", job.whole("model='boosted_trees'"))
    return job.chain("boosted_trees", boosted_layers(fitted))


def _xgboost(job: Job) -> Chain:
    """Boost xgboost's trees; five folds of a sample tell how far their scores are likelihoods."""
    told = fit_xgboost(job)
    rows, labels = job.sample
    known = np.unique(labels)
    same: dict[str, Any] = {"task": job.task, "seed": job.seed, "tempered": False}
    asked = job.tempered and job.n_classes
    for learned, rest in folds(labels, task=job.task, seed=job.seed) if asked else ():
        if np.array_equal(np.unique(labels[learned]), known):
            fitted = cast("Chain", train(rows[learned], labels[learned], model="xgboost", **same))
            logits = fitted.outputs(rows[rest])[:, known]
            job.held.append((logits, np.searchsorted(known, labels[rest])))
    return job.chain("boosted_trees", xgboost_layers(told))


def _svm(job: Job) -> TrainedModel:
    fitted = job.tuned("svm", job.whole("model='svm'"))
    return TrainedModel(axes=job.axes, estimator=fitted)


def _users(estimator: Estimator, job: Job, *, allow_row_carrying: bool) -> TrainedModel:
    from sklearn.base import clone

    block = job.whole(type(estimator).__name__)
    fitted = clone(estimator).fit(*block)
    if not allow_row_carrying:
        refuse_row_carrying(fitted, block.rows)
    return TrainedModel(axes=job.axes, estimator=fitted)


def _in_any_unit(fit: Callable[[Job], Chain]) -> Callable[[Job], Chain]:
    """Let a library whose steps and stops suit labels of size one fit numbers of any unit."""

    def fitted(job: Job) -> Chain:
        if job.task == "classification":
            return fit(job)
        labels = job.sample.labels
        middle, spread = float(labels.mean()), float(labels.std()) or 1.0
        found = fit(replace(job, middle=middle, spread=spread))
        return found.rescaled(spread, np.array([middle]))

    return fitted


_FITS: dict[ModelName, Callable[[Job], Model]] = {
    "logistic": _logistic,
    "ridge": partial(_linear, name="linear"),
    "mlp": _in_any_unit(_perceptron),
    "rff": partial(_linear, name="rff"),
    "boosted_trees": _in_any_unit(_boosted_trees),
    "xgboost": _in_any_unit(_xgboost),
    "svm": _svm,
}
