"""What the common model is worth to a party: on rows that never left, beside a model of its own."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cobasis.errors import CobasisError
from cobasis.linalg.arrays import Matrix
from cobasis.models import ModelName
from cobasis.models.chain import ChainFamily
from cobasis.models.training import train
from cobasis.party_side.accepted import Usable, usable
from cobasis.party_side.desk import PartyDesk, notes
from cobasis.party_side.rows import ChosenRows, PartyRows, gathered, open_rows
from cobasis.progress import Report, silent
from cobasis.protocol.messages import Labels

MOST_CELLS = 2**25
"""Cells of the rows that the party's own model is trained on, 256 MB; of more, a random part."""

WORSE = 0.02
"""So much below the party's own model, and by more than few rows do by chance, is worth a word."""

_WORSE_HERE = (
    "the common model is worse here than the party's own: before using it, look whether labels and "
    "units mean the same at all parties"
)

_FAMILIES: dict[ChainFamily, ModelName] = {
    "linear": "ridge",
    "logistic": "logistic",
    "mlp": "mlp",
    "rff": "rff",
    "boosted_trees": "boosted_trees",
}


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Figures on the rows that a party held back; for its own screen.

    Attributes
    ----------
    metric : {"accuracy", "r2"}
        What is counted; higher is better.
    n_rows : int
        How many rows were held back.
    together : float or None
        Of the model that all parties have; None where there is nothing to score on.
    local : float or None
        Of a model of the same family, trained on the rows that this party uploaded, before
        they were projected; None where it cannot be trained.
    baseline : float or None
        Of the most frequent class, or the mean, of those rows.
    remarks : tuple of str
        Why a figure is missing, and what a person should hear.
    """

    metric: str
    n_rows: int
    together: float | None = None
    local: float | None = None
    baseline: float | None = None
    remarks: tuple[str, ...] = ()


def score(desk: PartyDesk, *, table: Path | None = None, report: Report = silent) -> Scores:
    """Score what was accepted on the rows that the party held back."""
    agreement = desk.agreement
    metric = "r2" if agreement.task == "regression" else "accuracy"

    def nothing(reason: str) -> Scores:
        return Scores(metric=metric, n_rows=0, remarks=(reason,))

    if agreement.task == "representation":
        return nothing("the round was for a representation: there is no model to score")
    if not agreement.holdout:
        return nothing("the agreement holds no rows back, so nothing can be scored here")
    noted = notes(desk).get("table")
    place = table or Path(noted or "")
    if not place.is_file():
        gone = f"the table '{place}' is not there any more; give it with --data"
        known = table or noted  # the note is forgotten with the round
        return nothing(gone) if known else Scores(metric=metric, n_rows=0)
    use = usable(desk)
    try:
        rows = open_rows(desk, place, report=report)
    except CobasisError as error:
        return nothing(f"the table '{place}' cannot be scored on: {error}")
    if not rows.n_held:
        return nothing("by chance no row of this table is held back; more rows would help")
    return _scored(desk, rows, use=use, metric=metric)


def _scored(desk: PartyDesk, rows: PartyRows, *, use: Usable, metric: str) -> Scores:
    """Predict the rows that were held back, three ways."""
    held, truth = gathered(rows.kept), rows.kept.labels()
    if truth is None:
        return Scores(metric=metric, n_rows=0)
    together = _figure(use.model.predict(use.aligned(held)), truth, metric)
    own, labels, whole = _own_rows(rows)
    guess = _guess(labels, metric)
    baseline = _figure(np.full(len(truth), guess), truth, metric)
    local, remarks = _local(desk, own, labels=labels, family=_FAMILIES[use.model.family])
    alone = None if local is None else _figure(local.predict(held), truth, metric)
    if not whole:
        remarks += (f"the party's own model was trained on {len(own):,} of its rows, at random",)
    if alone is not None and together < alone - max(WORSE, len(truth) ** -0.5):
        remarks += (_WORSE_HERE,)
    return Scores(
        metric=metric,
        n_rows=len(truth),
        together=together,
        local=alone,
        baseline=baseline,
        remarks=remarks,
    )


def _own_rows(rows: PartyRows) -> tuple[Matrix, Labels, bool]:
    """Return the rows that were uploaded, encoded, and their labels; at most so many cells."""
    chosen = ~rows.held
    most = max(1, MOST_CELLS // rows.table.shape[1])
    whole = rows.n_sent <= most
    if not whole:
        chosen = chosen & (rows.marks <= rows.fingerprints[most - 1])  # which are random numbers
    own = ChosenRows(rows.table, chosen)
    return gathered(own), np.asarray(own.labels()), whole


def _local(
    desk: PartyDesk, own: Matrix, *, labels: Labels, family: ModelName
) -> tuple[Any, tuple[str, ...]]:
    """Train the party's own model, or say why there is none."""
    task = desk.agreement.task
    if task == "classification" and len(np.unique(labels)) == 1:
        return None, ("all uploaded rows are of one class, so the party has no model of its own",)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scikit-learn, about few rows
            return train(own, labels, model=family, task=task, seed=0, aligned=False), ()
    except (CobasisError, ValueError) as error:
        kind = type(error).__name__
        return None, (f"the party's rows do not allow a model of family '{family}' ({kind})",)


def _guess(labels: Labels, metric: str) -> float:
    """Return the one answer that is right most often, or off least."""
    if metric == "r2":
        return float(np.mean(labels))
    values, counts = np.unique(labels, return_counts=True)
    return float(values[np.argmax(counts)])


def _figure(predicted: Labels, truth: Labels, metric: str) -> float:
    """Return the share of right answers, or R2."""
    if metric == "accuracy":
        return float(np.mean(predicted == truth))
    spread = float(np.sum((truth - truth.mean()) ** 2))
    off = float(np.sum((truth - predicted) ** 2))
    return 1.0 - off / spread if spread else float(off == 0)
