"""Alone, together, together with a consensus basis, pooled: the four numbers that matter."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.anchors import FROM_PUBLIC_ROWS, AnchorKind
from cobasis.algorithms.bases import BasisName, check_basis_rule
from cobasis.algorithms.registry import AlignerName
from cobasis.errors import AgreementError
from cobasis.features.encoding import encode
from cobasis.features.numeric import NumericFeature
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import one_blas_thread
from cobasis.models.families import ModelName, Task
from cobasis.models.training import train
from cobasis.protocol.labels import figure_of
from cobasis.protocol.round import Round
from cobasis.protocol.simulation import simulate

Labels = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """A data set, dealt out to parties, with one test set that all predict.

    Attributes
    ----------
    name, task, split : str
        What it is called, what it is for, and how it was dealt.
    features : tuple of NumericFeature
        With the agreement's centres and scales.
    rows : mapping of str to (X, y)
        By party name.
    test_rows, test_labels : ndarray of shape (n_test, n_features) and (n_test,)
        Common to all parties.
    public_rows : ndarray of shape (n_public, n_features) or None
        Where anchor or basis are public.
    """

    name: str
    task: Task
    split: str
    features: tuple[NumericFeature, ...]
    rows: Mapping[str, tuple[Matrix, Labels]]
    test_rows: Matrix
    test_labels: Labels
    public_rows: Matrix | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a comparison may change.

    Attributes
    ----------
    n_components, aligner, anchor, basis, model : int and str
        As in ``simulate``.
    seed : int
        For keys and folds.
    allow_row_carrying : bool
        Accept a model that stores rows.
    """

    n_components: int
    aligner: AlignerName
    anchor: AnchorKind
    basis: BasisName
    model: ModelName
    seed: int
    allow_row_carrying: bool = False


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Scores by party, and the rounds they came from.

    Attributes
    ----------
    data : Dealt
        What was compared on.
    settings : Settings
        With what.
    alone, together : mapping of str to float
        Accuracy, or R2, of each party on the common test set.
    consensus : mapping of str to float, or None
        With the consensus basis; None where the table of bases forbids it.
    consensus_refusal : str
        Why there is none; empty otherwise.
    pooled : float
        One model on everybody's raw rows.
    one_class : tuple of str
        Parties that hold one class only, so that alone they can only repeat it.
    round : Round
        The round behind `together`.
    seconds : float
        Wall time of the whole comparison.
    """

    data: Dealt
    settings: Settings
    alone: Mapping[str, float]
    together: Mapping[str, float]
    consensus: Mapping[str, float] | None
    consensus_refusal: str
    pooled: float
    one_class: tuple[str, ...]
    round: Round
    seconds: float

    @property
    def metric(self) -> str:
        """What the scores are."""
        return "R2" if self.data.task == "regression" else "accuracy"


def compare(
    data: Dealt, settings: Settings, *, progress: Callable[[str], None] | None = None
) -> Comparison:
    """Run the rounds and the two raw-feature baselines on one dealt data set."""
    with one_blas_thread():
        return _compared(data, settings, progress or (lambda _: None))


def _compared(data: Dealt, settings: Settings, tell: Callable[[str], None]) -> Comparison:
    """Do what `compare` says."""
    started = time.perf_counter()
    tell("together: parties upload, the analyst aligns, certifies and trains")
    together = _round(data, settings)
    consensus, refusal = None, ""
    try:
        check_basis_rule("consensus", anchor=settings.anchor, n_parties=len(data.rows))
    except AgreementError as error:
        refusal = str(error)
    else:
        tell("together with a consensus basis: one small exchange more")
        common = _round(data, replace(settings, basis="consensus"))
        consensus = common.score(data.test_rows, data.test_labels)
    tell("alone: every party by itself")
    alone = {name: _raw_score(*rows, data, settings) for name, rows in data.rows.items()}
    tell("pooled: what nobody may do")
    tables, labels = zip(*data.rows.values(), strict=True)
    pooled = _raw_score(np.vstack(tables), np.concatenate(labels), data, settings)
    return Comparison(
        data=data,
        settings=settings,
        alone=alone,
        together=together.score(data.test_rows, data.test_labels),
        consensus=consensus,
        consensus_refusal=refusal,
        pooled=pooled,
        one_class=tuple(name for name, rows in data.rows.items() if _one_class(rows[1], data)),
        round=together,
        seconds=time.perf_counter() - started,
    )


def _round(data: Dealt, settings: Settings) -> Round:
    """Run one round with the settings."""
    public = settings.anchor in FROM_PUBLIC_ROWS or settings.basis == "public"
    return simulate(
        data.rows,
        rng=np.random.default_rng(settings.seed),
        n_components=settings.n_components,
        task=data.task,
        aligner=settings.aligner,
        anchor=settings.anchor,
        basis=settings.basis,
        model=settings.model,
        features=data.features,
        public_rows=data.public_rows if public else None,
        allow_row_carrying=settings.allow_row_carrying,
    )


def _raw_score(rows: Matrix, labels: Labels, data: Dealt, settings: Settings) -> float:
    """Train on raw features and score; a single class can only be repeated."""
    if _one_class(labels, data):
        return figure_of(
            data.test_labels, np.full(len(data.test_labels), labels[0]), task=data.task
        )
    classes, told = np.unique(labels, return_inverse=True)
    trained = train(
        encode(rows, data.features, party="raw"),
        told if data.task == "classification" else labels,
        model=settings.model,
        task=data.task,
        seed=settings.seed,
        allow_row_carrying=settings.allow_row_carrying,
        aligned=False,
    )
    test = encode(data.test_rows, data.features, party="raw")
    found = trained.predict(test)
    found = classes[found] if data.task == "classification" else found
    return figure_of(data.test_labels, found, task=data.task)


def _one_class(labels: Labels, data: Dealt) -> bool:
    """Whether all labels are of one class."""
    return data.task == "classification" and len(np.unique(labels)) == 1
