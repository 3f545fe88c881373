"""Predictions for a party's new rows, block by block, beside their identifiers."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from cobasis.disk.whole import WholeFile
from cobasis.errors import OptionError
from cobasis.features.encoding import Encoder
from cobasis.party_side.accepted import Usable, usable
from cobasis.party_side.desk import PartyDesk, refuse_target
from cobasis.party_side.rows import require_id
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
from cobasis.tables.streaming import as_text

PREDICTION = "prediction"
_BLOCK_CELLS = 2**22


def predict(desk: PartyDesk, table: Path, *, to: Path, report: Report = silent) -> int:
    """Predict for every row of a table, in its order."""
    refuse_target(to, table=table)
    if to.suffix.lower() not in (*CSV, *PARQUET):
        raise OptionError(
            f"-o '{to}' has to end in one of {', '.join((*CSV, *PARQUET))}. Choose such a name."
        )
    use, agreement = usable(desk), desk.agreement
    source = source_of(
        table, party=desk.name, features=(*agreement.features, *as_text(agreement.id))
    )
    refuse_schema(source, agreement.features, labels=None, party=desk.name)
    require_id(source, desk)
    frames = _predicted(source, desk, use=use, report=report)
    write = _write_csv if to.suffix.lower() in CSV else _write_parquet
    with WholeFile(to, n_bytes=0) as file:
        n_rows = write(file, frames)
        source.refuse_changed()
    return n_rows


def _predicted(
    source: Source, desk: PartyDesk, *, use: Usable, report: Report
) -> Iterator[pl.DataFrame]:
    """Yield predictions, some rows at a time."""
    agreement, encoder = desk.agreement, Encoder(desk.agreement.features)
    n_rows = int(source.collect(pl.len()).item())
    batch = max(256, _BLOCK_CELLS // encoder.width)
    names = list(dict.fromkeys([*encoder.names, *([agreement.id] if agreement.id else [])]))
    for first, frame in source.parts(names, n_rows=n_rows, batch=batch):
        rows = np.empty((encoder.width, frame.height))
        refuse_csv_rounding(frame, what=source.what, integers=source.integers)
        if not encoder.put(encoder.read(nw.from_native(frame), what=source.what), rows):
            raise not_finite(source, agreement.features, n_rows=n_rows)
        yield _answers(frame, rows.T, desk=desk, use=use)
        report("predicting", first + frame.height, n_rows)


def _answers(frame: pl.DataFrame, rows: Any, *, desk: PartyDesk, use: Usable) -> pl.DataFrame:  # noqa: ANN401
    """Return identifier, prediction and scores of some rows."""
    agreement, model = desk.agreement, use.model
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
