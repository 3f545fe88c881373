"""What a party does with the model: it predicts, exports it, and scores what it is worth."""

import hashlib
import io
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import cast

import narwhals as nw
import numpy as np
import polars as pl

from cobasis.bundle.messages import model_in
from cobasis.disk.whole import WholeFile, write_whole
from cobasis.errors import (
    CobasisError,
    DtypeError,
    FeatureError,
    NotFiniteError,
    OptionError,
    StepError,
    TableError,
)
from cobasis.features.contract import MISSING, UNKNOWN, CategoryFeature, Feature
from cobasis.features.encoder import words_of
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.models import ModelName
from cobasis.models.chain import Chain
from cobasis.models.onnx import Precision, raw_graph
from cobasis.models.trainer import train
from cobasis.models.worth import Figure, Verdict, compared, figures
from cobasis.party_side.rows import PartyRows, gathered, open_rows, require_id
from cobasis.party_side.session import PartySession, notes, refuse_target
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import Labels, decode_labels
from cobasis.protocol.secrets import SecretBasis
from cobasis.tables.sources import CSV, PARQUET, Source, source_of
from cobasis.tables.table import StreamedTable, as_text
from cobasis.vault.datasets import Dataset

_LINE = "\0line"


@dataclass(frozen=True, kw_only=True, repr=False)
class Usable(Hidden):
    """A party's way from encoded rows to predictions."""

    dataset: Dataset
    basis: SecretBasis  # F_i
    change_of_basis: Matrix  # G_i
    model: Chain

    def aligned(self, rows: Matrix) -> Matrix:
        """Return ``Y F_i G_i`` for rows on the agreed scale."""
        return self.basis.project(rows) @ self.change_of_basis


def usable(session: PartySession) -> Usable:
    """Return what was accepted; StepError before, or where the round trains no model."""
    agreement, name = session.agreement, session.name
    found = session.round.accepted()
    uploaded = None if found is None else session.vault.upload_of(agreement, upload=found.upload)
    if uploaded is None or found is None:
        raise StepError(
            f"party '{name}' has accepted no return in round '{agreement.round_id}', so there is "
            "no model to use. Run 'cobasis accept' with what the analyst sent."
        )
    if found.model is None or agreement.task == "representation":
        raise StepError(
            f"round '{agreement.round_id}' was for a representation and trained no model. Agree on "
            "a task in a new round."
        )
    model = model_in(found.model, agreement)
    return Usable(
        dataset=uploaded.dataset,
        basis=uploaded.basis,
        change_of_basis=found.change_of_basis,
        model=model,
    )


@dataclass(frozen=True, kw_only=True)
class BadCell:
    """A cell because of which its row has no prediction; never its value."""

    line: int  # of the table, counted from 1; that of the names is the first
    column: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """What was written."""

    n_rows: int  # rows with a prediction
    bad: tuple[BadCell, ...] = ()


def predict(session: PartySession, table: Path, *, to: Path, report: Report = silent) -> Predicted:
    """Predict for every row of a table, in its order; a row with a bad cell has no prediction."""
    for own in (table, Path(notes(session).get("table", table))):
        refuse_target(to, table=own)
    if to.suffix.lower() not in (*CSV, *PARQUET):
        raise OptionError(
            f"-o '{to}' has to end in one of {', '.join((*CSV, *PARQUET))}. Choose such a name."
        )
    use, features, mapping = usable(session), session.agreement.features, session.round.mapping()
    read = partial(
        source_of,
        table,
        party=session.name,
        features=(*features, *as_text(session.agreement.id)),
        mapping=mapping,
    )
    try:
        return Predicted(n_rows=_written(session, use, read(), to=to, report=report))
    except (DtypeError, FeatureError, NotFiniteError, TableError):
        source = read(lenient=True)
        bad = _bad_cells(source, features)
        n_rows = int(source.collect(pl.len()).item())
        if not 0 < len({each.line for each in bad}) < n_rows:
            raise
        n_good = _written(session, use, source, to=to, report=report, bad=bad)
    return Predicted(n_rows=n_good, bad=tuple(bad))


def _bad_cells(source: Source, features: Iterable[Feature]) -> list[BadCell]:
    """Find the cells of a table, read leniently, that the agreement has no place for."""
    found = []
    for each in (each for each in features if each.name in source.schema):
        cells = source.collect(pl.col(each.name))[each.name]
        if isinstance(each, CategoryFeature):
            codes, unknown = (
                words_of(nw.from_native(cells, series_only=True), each),
                "no agreed word",
            )
        else:
            numbers, unknown = cells.cast(pl.Float64, strict=False).to_numpy(), "no number"
            lacking = np.isnan(numbers) & (each.missing == "refuse")
            codes = np.where(np.isinf(numbers), UNKNOWN, np.where(lacking, MISSING, 0))
        for row in np.flatnonzero(codes < 0):
            problem = "empty" if codes[row] == MISSING else unknown
            found.append(BadCell(line=int(row) + 2, column=each.name, problem=problem))
    return sorted(found, key=lambda each: each.line)


def _written(
    session: PartySession,
    use: Usable,
    source: Source,
    *,
    to: Path,
    report: Report,
    bad: Iterable[BadCell] = (),
) -> int:
    """Write the predictions of a table without its bad rows, which get a line that says why."""
    agreement, name = session.agreement, session.agreement.id
    why: dict[int, str] = {}
    for each in bad:
        told, row = f"{each.column}: {each.problem}", each.line - 2
        why[row] = f"{why[row]}; {told}" if row in why else told
    good = source
    if why:
        left = source.frame.with_row_index(_LINE).filter(~pl.col(_LINE).is_in(list(why)))
        good = replace(source, frame=left.drop(_LINE))
    rows = StreamedTable(good, agreement=agreement, party=session.name, report=report)
    require_id(good, session)
    ids = good.collect(pl.col(name))[name] if name else None

    def answered(first: int, blocks: Iterator[Matrix]) -> pl.DataFrame:
        answers = _answers(np.vstack(list(map(use.aligned, blocks))), use.model, agreement)
        stop = first + answers.height
        return answers if ids is None else answers.insert_column(0, ids[first:stop])

    csv, n_rows = to.suffix.lower() in CSV, 0
    with WholeFile(to, n_bytes=0) as file:
        kept, at = [], 0
        for frame in rows.over(answered, step="predicting"):
            if csv and not why:
                data = frame.write_csv(include_header=not n_rows).encode()
                file.write(data, offset=at)
                at += len(data)
            else:  # of a few columns; a row group for each part would make it slow to read
                kept.append(frame)
            n_rows += frame.height
        if kept:
            whole, buffer = pl.concat(kept), io.BytesIO()
            if why:
                whole = _with_gaps(whole, why, source=source, name=name)
            (whole.write_csv if csv else whole.write_parquet)(buffer)
            file.write(buffer.getvalue(), offset=0)
    return n_rows


def _with_gaps(
    good: pl.DataFrame, why: Mapping[int, str], *, source: Source, name: str
) -> pl.DataFrame:
    """Return predictions with an empty line, and a word, for each row that has none."""
    n_rows, problem = good.height + len(why), "problem" if name != "problem" else "model_problem"
    at = [row for row in range(n_rows) if row not in why]
    lines = pl.DataFrame({_LINE: range(n_rows), problem: [why.get(row) for row in range(n_rows)]})
    found = lines.join(good.with_columns(pl.Series(_LINE, at)), on=_LINE, how="left")
    found = found.select(*good.columns, problem)
    return found.with_columns(source.collect(pl.col(name))[name]) if name else found


def _answers(aligned: Matrix, model: Chain, agreement: Agreement) -> pl.DataFrame:
    """Return predictions and scores of aligned rows, under names that the identifier has not."""
    found = {"prediction": decode_labels(model.predict(aligned), agreement)}
    if agreement.task == "classification":
        scores = model.scores(aligned, method=model.method)
        table = scores[:, np.newaxis] if scores.ndim == 1 else scores
        classes = agreement.classes[1:] if scores.ndim == 1 else agreement.classes
        # a model of rows with noise cannot know how sure it may be of rows without
        word = "score" if agreement.dp or not model.likely else "probability"
        found |= {f"{word}_{each}": table[:, at] for at, each in enumerate(classes)}
    taken = agreement.id
    return pl.DataFrame(
        {f"model_{name}" if name == taken else name: each for name, each in found.items()}
    )


def export_onnx(session: PartySession, to: Path, *, precision: Precision = "float64") -> int:
    """Write encoding, ``F_i G_i`` and model as one graph that takes raw columns."""
    sent = notes(session).get("table")
    refuse_target(to, table=None if sent is None else Path(sent))
    found, agreement = usable(session), session.agreement
    data = raw_graph(
        agreement.features,
        found.model,
        map_in=found.aligned(np.eye(agreement.n_features)),  # F_i G_i
        classes=agreement.classes,
        precision=precision,
    )
    write_whole(to, data)
    session.transcript.append("exported", {"sha256": hashlib.sha256(data).hexdigest()})
    return len(data)


MOST_CELLS = 2**25
"""Cells of the rows that the party's own model is trained on, 256 MB; of more, a random part."""

_ONE_CLASS = "all of these rows are of one class: they say nothing of AUC and calibration"

_WORSE_HERE = (
    "the common model is worse here than the party's own: before using it, look whether labels and "
    "units mean the same at all parties"
)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Figures on the rows that a party held back; for its own screen."""

    n_rows: int
    # of each measure, by name
    together: Mapping[str, Figure] = field(default_factory=dict)
    alone: Mapping[str, Figure] = field(default_factory=dict)  # own model, on raw uploaded rows
    constant: Mapping[str, Figure] = field(default_factory=dict)  # shares of those, or their mean
    verdict: Verdict | None = None  # together against alone
    remarks: tuple[str, ...] = ()


def score(session: PartySession, *, table: Path | None = None, report: Report = silent) -> Scores:
    """Score what was accepted on rows that the party never uploaded.

    Without a table these are the held-back rows of the one that it uploaded. Rows of another
    table are left out where they were uploaded, in this round or in an earlier one.
    """
    agreement = session.agreement

    def nothing(reason: str) -> Scores:
        return Scores(n_rows=0, remarks=(reason,))

    if agreement.task == "representation":
        return nothing("the round was for a representation: there is no model to score")
    if not agreement.holdout and table is None:
        return nothing("the agreement holds no rows back; give a table: cobasis score TABLE")
    noted = Path(notes(session).get("table", ""))
    place = table or noted
    if not place.is_file() and table is None:
        gone = f"the table '{place}' is not there any more; give it: cobasis score TABLE"
        # the note is forgotten with the round
        return nothing(gone) if place != Path() else Scores(n_rows=0)
    use = usable(session)
    rows = _unseen(session, place, use=use, report=report)
    if not rows.n_held:
        return nothing(f"every row of '{place.name}' was uploaded, so none is left to score on")
    own = rows
    if not rows.n_sent and noted.is_file():
        own = _unseen(session, noted, use=use, report=report)
    return _scored(session, rows, own=own, use=use)


def score_quietly(session: PartySession, *, report: Report = silent) -> Scores:
    """Score on held-back rows; where the table cannot be read any more, say why in a remark."""
    try:
        return score(session, report=report)
    except CobasisError as error:
        remark = f"the table cannot be scored on: {error.args[0]}"
        return Scores(n_rows=0, remarks=(remark.rstrip("."),))


def _unseen(session: PartySession, table: Path, *, use: Usable, report: Report) -> PartyRows:
    """Open a table, and hold back every row that was not uploaded."""
    rows = open_rows(session, table, report=report)
    seen = use.dataset.knows(rows.marks, rows.marks[:0])
    if rows.ids is not None:
        seen = seen | use.dataset.knows(rows.ids[:0], rows.ids)
    return replace(rows, held=~seen)


def _scored(session: PartySession, rows: PartyRows, *, own: PartyRows, use: Usable) -> Scores:
    """Predict the rows that were never uploaded, three ways."""
    held, truth, task = gathered(rows.kept), rows.kept.labels(), session.agreement.task
    if truth is None:
        return Scores(n_rows=0)

    def measured(model: Chain, rows: Matrix) -> Mapping[str, Figure]:
        certain = model.likely and session.agreement.dp is None
        likely = model.scores(rows, method=model.method) if certain else None
        return figures(truth, model.predict(rows), likely=likely, task=task)

    aligned, one_class = use.aligned(held), task == "classification" and len(np.unique(truth)) == 1
    remarks: tuple[str, ...] = (_ONE_CLASS,) if one_class else ()
    found = Scores(n_rows=len(truth), together=measured(use.model, aligned))
    if not own.n_sent:
        gone = "the table that was uploaded is not there, so there is nothing beside it"
        return replace(found, remarks=(*remarks, gone))
    uploaded, labels = _own_rows(own)
    kind = use.model.family
    family: ModelName = "ridge" if kind == "linear" else kind
    alone, more = _alone(session, uploaded, labels=labels, family=family)
    remarks += more
    if len(uploaded) < own.n_sent:
        remarks += (
            f"the party's own model was trained on {len(uploaded):,} of its rows, at random",
        )
    if task == "regression":
        guess, shares = np.full(len(truth), labels.mean()), None
    else:
        counts = np.bincount(labels.astype(np.int64), minlength=len(session.agreement.classes))
        guess = np.full(len(truth), np.argmax(counts))
        shares = np.tile(counts / counts.sum(), (len(truth), 1))
    constant = figures(truth, guess, likely=shares, task=task)
    if alone is None:
        return replace(found, constant=constant, remarks=remarks)
    verdict = compared(use.model.predict(aligned), alone.predict(held), truth=truth, task=task)
    if verdict == "worse":
        remarks += (_WORSE_HERE,)
    return replace(
        found, alone=measured(alone, held), constant=constant, verdict=verdict, remarks=remarks
    )


def _own_rows(rows: PartyRows) -> tuple[Matrix, Labels]:
    """Return the rows that were uploaded, encoded, and their labels; at most so many cells."""
    chosen = ~rows.held
    most = max(1, MOST_CELLS // rows.table.shape[1])
    if rows.n_sent > most:  # those with the smallest fingerprints, which are random numbers
        chosen = chosen & (rows.marks <= np.sort(rows.marks[chosen])[most - 1])
    own = rows.table.only(chosen)
    return gathered(own), np.asarray(own.labels())


def _alone(
    session: PartySession, own: Matrix, *, labels: Labels, family: ModelName
) -> tuple[Chain | None, tuple[str, ...]]:
    """Train the party's own model, or say why there is none."""
    task = session.agreement.task
    if task == "classification" and len(np.unique(labels)) == 1:
        return None, ("all uploaded rows are of one class, so the party has no model of its own",)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scikit-learn, about few rows
            made = train(
                own,
                labels,
                model=family,
                task=task,
                seed=0,
                n_classes=len(session.agreement.classes),
                aligned=False,
                tempered=session.agreement.dp is None,
            )
            return cast("Chain", made), ()
    except (CobasisError, ValueError) as error:
        kind = type(error).__name__
        return None, (f"the party's rows do not allow a model of family '{family}' ({kind})",)
