"""A party's upload, projected and written on its own disk; nothing of it has left yet."""

from pathlib import Path

import numpy.typing as npt
import polars as pl

from cobasis.bundle.payload import PayloadHeader, PayloadWriter
from cobasis.bundle.precision import in_precision
from cobasis.features.numeric import NumericFeature
from cobasis.linalg.threads import one_blas_thread
from cobasis.party_side.desk import MARKS, PartyDesk
from cobasis.party_side.rows import PartyRows, labels_of
from cobasis.progress import Report
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.choice import Memory
from cobasis.protocol.party import Party
from cobasis.protocol.secrets import PartyKey
from cobasis.protocol.streamed import Plan
from cobasis.tables.marks import Marks
from cobasis.tables.order import write_rows
from cobasis.tables.refusals import refuse_schema
from cobasis.tables.sources import source_of


def make_party(desk: PartyDesk, *, key: PartyKey, public_rows: npt.ArrayLike | None) -> Party:
    """Return the protocol's party, with its secret from the vault."""
    return Party(
        desk.name,
        agreement=desk.agreement,
        secret=desk.round.secret(),
        key=key,
        public_rows=public_rows,
    )


def read_public_rows(desk: PartyDesk, path: Path) -> npt.ArrayLike:
    """Read the agreed public rows from a file."""
    return public_rows_in(path, agreement=desk.agreement, party=desk.name)


def public_rows_in(path: Path, *, agreement: Agreement, party: str) -> npt.ArrayLike:
    """Read public rows from a file, whoever asks; as `read_public_rows` returns them."""
    source = source_of(path, party=party, features=agreement.features)
    refuse_schema(source, agreement.features, labels=None, party=party)
    frame = source.collect(*map(pl.col, agreement.columns))
    numbers = all(isinstance(each, NumericFeature) for each in agreement.features)
    return frame.to_numpy() if numbers else frame


def memory_of(desk: PartyDesk, rows: PartyRows) -> Memory:
    """Return where directions are kept between an interrupted pass and the next call."""
    source = rows.table.source
    if source.path is None or source.stamp is None:
        return {}
    made_from = {
        "table": str(source.path.resolve()),
        "stamp": "/".join(map(str, source.stamp)),
        "agreement": desk.agreement.digest().hex(),
        "party": desk.name,
    }
    return Marks(
        desk.work / MARKS,
        bound_to=made_from,
        seal=desk.identity.seal_for_self,
        unseal=desk.identity.unseal_own,
    )


def write_payload(
    desk: PartyDesk, rows: PartyRows, *, plan: Plan, report: Report
) -> tuple[Path, tuple[Path, ...]]:
    """Project the rows that are uploaded, and write them in the agreed precision."""
    exact = desk.work / "exact.safetensors"
    labels = labels_of(rows, desk, chosen=~rows.held)
    header = PayloadHeader(
        party=plan.party,
        agreement_digest=plan.agreement_digest,
        anchor_tag=plan.anchor_tag,
        simulated=plan.simulated,
        n_rows=plan.shape[0],
        n_components=plan.shape[1],
        n_anchor_rows=len(plan.anchor_image),
        labels=None if labels is None else labels.dtype.name,
    )
    with one_blas_thread(), PayloadWriter(exact, header=header) as writer:
        writer.write_anchor_image(plan.anchor_image)
        write_rows(rows.sent, plan, writer=writer, report=report)
        told = plan.labels(labels)
        if told is not None:
            writer.write_labels(told)
        rows.table.source.refuse_changed()
    rounded = in_precision(
        exact,
        to=desk.work / "agreed.safetensors",
        precision=desk.agreement.precision,
        int8_range=desk.agreement.int8_range,
    )
    return rounded, (exact, desk.work / "agreed.safetensors")
