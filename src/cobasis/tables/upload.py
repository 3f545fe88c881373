"""From a table larger than memory to an upload on disk, in two passes."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy.typing as npt

from cobasis.bundle.payload import PayloadHeader, PayloadWriter
from cobasis.errors import OptionError
from cobasis.linalg.threads import one_blas_thread
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.choice import Memory
from cobasis.protocol.messages import ConsensusSpan
from cobasis.protocol.party import Party
from cobasis.protocol.secrets import SecretBasis
from cobasis.protocol.streamed import Plan
from cobasis.tables.marks import Marks
from cobasis.tables.order import write_rows
from cobasis.tables.streaming import StreamedTable, open_table


def prepare_upload(
    party: Party,
    table: str | Path | Any,  # noqa: ANN401 -- frames of any library
    *,
    to: str | Path,
    labels: str | None = None,
    work: str | Path | None = None,
    consensus: ConsensusSpan | None = None,
    basis: SecretBasis | None = None,
    report: Report = silent,
) -> Path:
    """Turn a party's table into its upload: what `Party.prepare` does, in bounded memory.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from cobasis import Agreement, ConsortiumSecret, Party, numeric_features
    >>> from cobasis.bundle.payload import open_payload
    >>> secret = ConsortiumSecret()
    >>> agreement = Agreement(
    ...     round_id="icu-2026", parties=("north", "south"), task="regression",
    ...     features=numeric_features(["age", "pulse"]), n_components=1, n_anchor_rows=2,
    ...     model="ridge", commitment=secret.commitment("icu-2026"))
    >>> north = Party("north", agreement=agreement, secret=secret)
    >>> frame = pl.DataFrame({"id": [7, 8], "age": [61.5, 70.0], "pulse": [80, 90], "y": [1, 3]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = prepare_upload(north, frame, labels="y", to=Path(folder, "north.safetensors"))
    ...     open_payload(path).n_rows
    2
    """
    path = Path(to)
    _refuse_own_table(table, path)
    labels = _label_column(labels, party.agreement)
    with one_blas_thread():
        rows = open_table(
            table, agreement=party.agreement, party=party.name, labels=labels, report=report
        )
        encoded = rows.labels(party.agreement)
        memory = _memory(rows, party, Path(work or f"{path}.work"))
        plan = party.plan(rows, labels=encoded, consensus=consensus, basis=basis, memory=memory)
        with PayloadWriter(path, header=_header(plan, encoded)) as writer:
            writer.write_anchor_image(plan.anchor_image)
            write_rows(rows, plan, writer=writer, report=report)
            told = plan.labels(rows.labels(party.agreement))  # as that pass found them
            if told is not None:
                writer.write_labels(told)
            rows.source.refuse_changed()
    party.keep(plan)
    memory.clear()
    return path


def _label_column(given: str | None, agreement: Agreement) -> str | None:
    """Return the column of labels; OptionError where another one is agreed on."""
    if given is not None and agreement.label and given != agreement.label:
        raise OptionError(
            f"labels='{given}', but the agreement's label column is '{agreement.label}', and every "
            "party has to upload the same. Leave labels= out."
        )
    return given or agreement.label or None


def _refuse_own_table(table: object, to: Path) -> None:
    """Raise OptionError where the upload would take the table's place, under whatever name."""
    if not isinstance(table, (str, Path)):
        return
    same = Path(table).resolve() == to.resolve()
    with suppress(OSError):  # one of them is not there, or out of reach, so nothing is lost
        same = same or to.samefile(table)
    if same:
        raise OptionError(
            f"to='{to}' is the table itself, which the upload would overwrite. Choose another name."
        )


def _memory(rows: StreamedTable, party: Party, work: Path) -> Memory:
    """Return marks that are bound to the file; nothing outlives a frame in memory."""
    source = rows.source
    if source.path is None or source.stamp is None:
        return {}
    made_from = {
        "table": str(source.path.resolve()),
        "stamp": "/".join(map(str, source.stamp)),
        "agreement": party.agreement.digest().hex(),
        "party": party.name,
    }
    return Marks(work, bound_to=made_from)


def _header(plan: Plan, labels: npt.NDArray[Any] | None) -> PayloadHeader:
    """Return what is known before the first row."""
    return PayloadHeader(
        party=plan.party,
        agreement_digest=plan.agreement_digest,
        anchor_tag=plan.anchor_tag,
        simulated=plan.simulated,
        n_rows=plan.shape[0],
        n_components=plan.shape[1],
        n_anchor_rows=len(plan.anchor_image),
        labels=None if labels is None else labels.dtype.name,
    )
