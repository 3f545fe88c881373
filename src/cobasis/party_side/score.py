"""What the common model is worth to a party: on rows that never left, beside a model of its own."""

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cobasis.errors import CobasisError
from cobasis.linalg.arrays import Matrix
from cobasis.models import ModelName
from cobasis.models.chain import ChainFamily
from cobasis.models.trainer import train
from cobasis.party_side.predict import Usable, usable
from cobasis.party_side.rows import ChosenRows, PartyRows, gathered, open_rows
from cobasis.party_side.session import PartySession, notes
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
    """Figures on the rows that a party held back; for its own screen."""

    metric: str
    n_rows: int
    together: float | None = None
    local: float | None = None  # of the same family, on rows uploaded before their projection
    baseline: float | None = None  # of the most frequent class, or the mean, of those rows
    remarks: tuple[str, ...] = ()


def score(session: PartySession, *, table: Path | None = None, report: Report = silent) -> Scores:
    """Score what was accepted on rows that the party never uploaded.

    Without a table these are the held-back rows of the one that it uploaded. Rows of another
    table are left out where they were uploaded, in this round or in an earlier one.
    """
    agreement = session.agreement
    metric = "r2" if agreement.task == "regression" else "accuracy"

    def nothing(reason: str) -> Scores:
        return Scores(metric=metric, n_rows=0, remarks=(reason,))

    if agreement.task == "representation":
        return nothing("the round was for a representation: there is no model to score")
    if not agreement.holdout and table is None:
        return nothing("the agreement holds no rows back; give a table: cobasis score TABLE")
    noted = Path(notes(session).get("table", ""))
    place = table or noted
    if not place.is_file() and table is None:
        gone = f"the table '{place}' is not there any more; give it: cobasis score TABLE"
        # the note is forgotten with the round
        return nothing(gone) if place != Path() else Scores(metric=metric, n_rows=0)
    use = usable(session)
    rows = _unseen(session, place, use=use, report=report)
    if not rows.n_held:
        return nothing(f"every row of '{place.name}' was uploaded, so none is left to score on")
    own = rows
    if not rows.n_sent and noted.is_file():
        own = _unseen(session, noted, use=use, report=report)
    return _scored(session, rows, own=own, use=use, metric=metric)


def score_quietly(session: PartySession, *, report: Report = silent) -> Scores:
    """Score on held-back rows; where the table cannot be read any more, say why in a remark."""
    try:
        return score(session, report=report)
    except CobasisError as error:
        metric = "r2" if session.agreement.task == "regression" else "accuracy"
        remark = f"the table cannot be scored on: {error.args[0]}"
        return Scores(metric=metric, n_rows=0, remarks=(remark.rstrip("."),))


def _unseen(session: PartySession, table: Path, *, use: Usable, report: Report) -> PartyRows:
    """Open a table, and hold back every row that was not uploaded."""
    rows = open_rows(session, table, report=report)
    people = rows.marks[:0] if rows.ids is None else rows.ids
    known = use.dataset.knows(rows.marks, people)
    seen = known[: len(rows.marks)]
    if rows.ids is not None:
        seen = seen | known[len(rows.marks) :]
    return replace(rows, held=~seen)


def _scored(
    session: PartySession, rows: PartyRows, *, own: PartyRows, use: Usable, metric: str
) -> Scores:
    """Predict the rows that were never uploaded, three ways."""
    held, truth = gathered(rows.kept), rows.kept.labels()
    if truth is None:
        return Scores(metric=metric, n_rows=0)
    together = _figure(use.model.predict(use.aligned(held)), truth, metric)
    if not own.n_sent:
        return Scores(
            metric=metric,
            n_rows=len(truth),
            together=together,
            remarks=("the table that was uploaded is not there, so there is nothing beside it",),
        )
    uploaded, labels, whole = _own_rows(own)
    guess = _guess(labels, metric)
    baseline = _figure(np.full(len(truth), guess), truth, metric)
    local, remarks = _local(session, uploaded, labels=labels, family=_FAMILIES[use.model.family])
    alone = None if local is None else _figure(local.predict(held), truth, metric)
    if not whole:
        remarks += (
            f"the party's own model was trained on {len(uploaded):,} of its rows, at random",
        )
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
    session: PartySession, own: Matrix, *, labels: Labels, family: ModelName
) -> tuple[Any, tuple[str, ...]]:
    """Train the party's own model, or say why there is none."""
    task = session.agreement.task
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
