"""What a party does with the model: predictions block by block beside identifiers, and export."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from cobasis.bundle.messages import model_in
from cobasis.disk.whole import WholeFile, write_whole
from cobasis.errors import OptionError, StepError
from cobasis.features.encoder import Encoder
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.models.chain import Chain
from cobasis.models.onnx import Precision, raw_graph
from cobasis.party_side.rows import require_id
from cobasis.party_side.session import PartySession, digest_of, refuse_target, sent_table
from cobasis.progress import Report, silent
from cobasis.protocol.messages import decode_labels
from cobasis.tables.sources import (
    CSV,
    PARQUET,
    Source,
    not_finite,
    refuse_csv_rounding,
    refuse_schema,
    source_of,
)
from cobasis.tables.table import as_text
from cobasis.vault.datasets import Dataset


@dataclass(frozen=True, kw_only=True, repr=False)
class Usable(Hidden):
    """A party's way from encoded rows to predictions."""

    dataset: Dataset
    change_of_basis: Matrix  # G_i; the dataset's basis is F_i
    model: Chain

    def aligned(self, rows: Matrix) -> Matrix:
        """Return ``Y F_i G_i`` for rows on the agreed scale."""
        return self.dataset.basis.project(rows) @ self.change_of_basis

    def map_in(self) -> Matrix:
        """Return ``F_i G_i``, of shape (n_features, n_components)."""
        return self.aligned(np.eye(self.dataset.basis.shape[0]))


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
    return Usable(dataset=uploaded.dataset, change_of_basis=found.change_of_basis, model=model)


PREDICTION = "prediction"
_BLOCK_CELLS = 2**22


def predict(session: PartySession, table: Path, *, to: Path, report: Report = silent) -> int:
    """Predict for every row of a table, in its order."""
    for own in (table, sent_table(session)):
        refuse_target(to, table=own)
    if to.suffix.lower() not in (*CSV, *PARQUET):
        raise OptionError(
            f"-o '{to}' has to end in one of {', '.join((*CSV, *PARQUET))}. Choose such a name."
        )
    use, agreement = usable(session), session.agreement
    source = source_of(
        table, party=session.name, features=(*agreement.features, *as_text(agreement.id))
    )
    refuse_schema(source, agreement.features, labels=None, party=session.name)
    require_id(source, session)
    frames = _predicted(source, session, use=use, report=report)
    write = _write_csv if to.suffix.lower() in CSV else _write_parquet
    with WholeFile(to, n_bytes=0) as file:
        n_rows = write(file, frames)
        source.refuse_changed()
    return n_rows


def _predicted(
    source: Source, session: PartySession, *, use: Usable, report: Report
) -> Iterator[pl.DataFrame]:
    """Yield predictions, some rows at a time."""
    agreement, encoder = session.agreement, Encoder(session.agreement.features)
    n_rows = int(source.collect(pl.len()).item())
    batch = max(256, _BLOCK_CELLS // encoder.width)
    names = list(dict.fromkeys([*encoder.names, *([agreement.id] if agreement.id else [])]))
    for first, frame in source.parts(names, n_rows=n_rows, batch=batch):
        rows = np.empty((encoder.width, frame.height))
        refuse_csv_rounding(frame, what=source.what, integers=source.integers)
        if not encoder.put(encoder.read(nw.from_native(frame), what=source.what), rows):
            raise not_finite(source, agreement.features, n_rows=n_rows)
        yield _answers(frame, rows.T, session=session, use=use)
        report("predicting", first + frame.height, n_rows)


def _answers(frame: pl.DataFrame, rows: Any, *, session: PartySession, use: Usable) -> pl.DataFrame:  # noqa: ANN401
    """Return identifier, prediction and scores of some rows."""
    agreement, model = session.agreement, use.model
    aligned = use.aligned(np.ascontiguousarray(rows))
    columns = [pl.Series(agreement.id, frame[agreement.id])] if agreement.id else []
    columns.append(
        pl.Series(_free(PREDICTION, agreement.id), decode_labels(model.predict(aligned), agreement))
    )
    if agreement.task == "classification":
        scores = model.scores(aligned, method=model.method)
        table = scores[:, np.newaxis] if scores.ndim == 1 else scores
        classes = agreement.classes[1:] if scores.ndim == 1 else agreement.classes
        columns += [
            pl.Series(_free(f"score_{each}", agreement.id), table[:, at])
            for at, each in enumerate(classes)
        ]
    return pl.DataFrame(columns)


def _free(name: str, taken: str) -> str:
    """Return a column's name that is not the identifier's."""
    return f"model_{name}" if name == taken else name


def _write_csv(file: WholeFile, frames: Iterator[pl.DataFrame]) -> int:
    """Write frames as they come."""
    at = n_rows = 0
    for frame in frames:
        data = frame.write_csv(include_header=not n_rows).encode()
        file.write(data, offset=at)
        at, n_rows = at + len(data), n_rows + frame.height
    return n_rows


def _write_parquet(file: WholeFile, frames: Iterator[pl.DataFrame]) -> int:
    """Write all frames as one."""
    whole, buffer = pl.concat(list(frames)), io.BytesIO()
    whole.write_parquet(buffer)
    file.write(buffer.getvalue(), offset=0)
    return whole.height


def export_onnx(session: PartySession, to: Path, *, precision: Precision = "float64") -> int:
    """Write encoding, ``F_i G_i`` and model as one graph that takes raw columns."""
    refuse_target(to, table=sent_table(session))
    found, agreement = usable(session), session.agreement
    data = raw_graph(
        agreement.features,
        found.model,
        map_in=found.map_in(),
        classes=agreement.classes,
        precision=precision,
    )
    write_whole(to, data)
    session.transcript.append("exported", {"sha256": digest_of(data)})
    return len(data)
