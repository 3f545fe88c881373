"""What a party sends: directions, where they are agreed on, and its one upload.

The order is the promise. The vault knows the basis and the rows before anything is sealed; it
knows the sealed file's digest, and so does the transcript, before the file has its name. Noise
that leaves is charged before it is drawn; whether the upload may leave is asked before that,
about a rehearsal with other noise.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy.typing as npt
import polars as pl

from cobasis.bundle.enclosing import Written
from cobasis.bundle.messages import enclose_proposal, enclose_upload
from cobasis.bundle.precision import UploadFile
from cobasis.disk.whole import copy_whole, remove_tree
from cobasis.features.numeric import NumericFeature
from cobasis.linalg.arrays import Hidden
from cobasis.linalg.threads import one_blas_thread
from cobasis.party_side.desk import (
    MARKS,
    PartyDesk,
    alone,
    note,
    refuse_target,
    sealed_for_analyst,
    time_now,
)
from cobasis.party_side.preview import Dry, Ready, same_as_before
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.choice import Memory
from cobasis.protocol.party import Party
from cobasis.protocol.projection import Projection
from cobasis.tables.sources import refuse_schema, source_of
from cobasis.vault import Kept


@dataclass(frozen=True, kw_only=True, repr=False)
class Projected(Hidden):
    """An upload's file that nobody has sealed; with noise, a rehearsal that never will be.

    Attributes
    ----------
    ready : Ready
        What it was made of.
    projection : Projection
        Its basis, and the order of its rows.
    payload : Path
        The file, in the agreed precision.
    public_rows : array-like or None
        The agreed ones, as they were given.
    """

    ready: Ready
    projection: Projection
    payload: Path
    public_rows: npt.ArrayLike | None


Allow = Callable[[Projected], Mapping[str, str]]
"""Looks at an upload before it is sealed: raises, or returns the manifest's record of its audit."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A sealed file that is ready to be taken to the analyst.

    Attributes
    ----------
    path : Path
        Where it stands.
    digest : str
        SHA-256 of the file, 64 hexadecimal digits; the receipt names it.
    n_bytes : int
        Its size.
    dry : Dry
        What was said before.
    again : bool
        Whether an upload of the same rows was made in this round before; its numbers are these.
    """

    path: Path
    digest: str
    n_bytes: int
    dry: Dry
    again: bool = False


def prepare(
    ready: Ready,
    to: Path,
    *,
    public_rows: npt.ArrayLike | None = None,
    allow: Allow | None = None,
    report: Report = silent,
) -> Sent:
    """Make the upload: project, write the history, sign, seal, and only then give it its name.

    A crash at any moment leaves the old state or the new one, and the same command goes on.
    """
    desk, source = ready.desk, ready.rows.table.source.path
    refuse_target(to, table=source)
    with alone(desk):
        if source is not None:
            note(desk, table=str(source.resolve()))
        made = _projection(ready, public_rows)
        again, noisy, audit = same_as_before(ready), made.noising is not None, None
        if allow is not None or not noisy:  # noise that was drawn could not be taken back
            payload = _written(ready, made.rehearsed(), report=report)
            audit = _allowed(ready, made, payload, public_rows, allow)
        number = _begin(ready, made)  # charged before the noise that leaves is drawn
        if noisy:
            payload = _written(ready, made, report=report)
        enclosed = enclose_upload(payload, agreement=desk.agreement, audit=audit)
        written = sealed_for_analyst(desk, enclosed, name="sealed.upload")
        desk.vault.finish_upload(number, written.digest)
        desk.transcript.append("prepared", {"upload": written.digest, "analyst": desk.analyst.name})
        sent = _delivered(written, to, dry=ready.dry, again=again)
        for path in (written.path, payload, desk.work / MARKS):
            remove_tree(path)
        return sent


@contextmanager
def projected(
    ready: Ready, *, public_rows: npt.ArrayLike | None = None, report: Report = silent
) -> Iterator[Projected]:
    """Write an upload to look at it; it is gone when the block ends, unknown to the vault."""
    with alone(ready.desk):
        made = _projection(ready, public_rows).rehearsed()
        payload = _written(ready, made, report=report)
        try:
            yield Projected(ready=ready, projection=made, payload=payload, public_rows=public_rows)
        finally:
            remove_tree(payload)


def propose(
    ready: Ready, to: Path, *, public_rows: npt.ArrayLike | None = None, report: Report = silent
) -> Sent:
    """Make the proposal of a span, where the agreement's basis takes two exchanges."""
    desk, rows = ready.desk, ready.rows
    refuse_target(to, table=rows.table.source.path)
    with alone(desk):
        report("finding directions", 0, 1)
        party, memory = _party(ready, public_rows)
        with one_blas_thread():
            proposal = party.propose(rows.sent, memory=memory)
        report("finding directions", 1, 1)
        desk.vault.ledger.propose(ready.choice.asked, desk.agreement)
        enclosed = enclose_proposal(proposal, agreement=desk.agreement)
        written = sealed_for_analyst(desk, enclosed, name="sealed.span")
        desk.transcript.append(
            "proposed", {"proposal": written.digest, "analyst": desk.analyst.name}
        )
        sent = _delivered(written, to, dry=ready.dry)
        for path in (written.path, desk.work / MARKS):
            remove_tree(path)
        return sent


def read_public_rows(desk: PartyDesk, path: Path | None) -> npt.ArrayLike | None:
    """Read the agreed public rows from a file, if one is given."""
    if path is None:
        return None
    return public_rows_in(path, agreement=desk.agreement, party=desk.name)


def public_rows_in(path: Path, *, agreement: Agreement, party: str) -> npt.ArrayLike:
    """Read the agreed public rows from a file."""
    source = source_of(path, party=party, features=agreement.features)
    refuse_schema(source, agreement.features, labels=None, party=party)
    frame = source.collect(*map(pl.col, agreement.columns))
    numbers = all(isinstance(each, NumericFeature) for each in agreement.features)
    return frame.to_numpy() if numbers else frame


def _party(ready: Ready, public_rows: npt.ArrayLike | None) -> tuple[Party, Memory]:
    """Return the protocol's party, and where it keeps directions if it is interrupted."""
    desk, identity = ready.desk, ready.desk.identity
    party = Party(
        desk.name,
        agreement=desk.agreement,
        secret=desk.round.secret(),
        key=ready.choice.key,
        public_rows=public_rows,
    )
    return party, ready.rows.table.memory(
        desk.work / MARKS, seal=identity.seal_for_self, unseal=identity.unseal_own
    )


def _projection(ready: Ready, public_rows: npt.ArrayLike | None) -> Projection:
    """Choose an upload's basis and the order of its rows."""
    party, memory = _party(ready, public_rows)
    return party.project(
        ready.rows.sent,
        consensus=ready.desk.round.consensus(),
        basis=ready.choice.basis if isinstance(ready.choice, Kept) else None,
        memory=memory,
    )


def _written(ready: Ready, made: Projection, *, report: Report) -> Path:
    """Project the rows into a file of the work folder, in the agreed precision."""
    desk = ready.desk
    path, agreement = desk.work / "upload.safetensors", desk.agreement
    file = UploadFile(path, precision=agreement.precision, int8_range=agreement.int8_range)
    made.write(file, report=report)
    return path


def _allowed(
    ready: Ready,
    made: Projection,
    payload: Path,
    public_rows: npt.ArrayLike | None,
    allow: Allow | None,
) -> Mapping[str, str] | None:
    """Ask whether an upload may leave; where it may not, its file goes."""
    if allow is None:
        return None
    try:
        return allow(
            Projected(ready=ready, projection=made, payload=payload, public_rows=public_rows)
        )
    except Exception:
        remove_tree(payload)
        raise


def _begin(ready: Ready, made: Projection) -> int:
    """Let the vault know the basis, the rows and what they spend; return the line's number."""
    desk = ready.desk
    return desk.vault.begin_upload(
        ready.choice,
        made.basis,
        agreement=desk.agreement,
        time=time_now(),
        release="" if made.noising is None else made.noising.release,
    )


def _delivered(written: Written, to: Path, *, dry: Dry, again: bool = False) -> Sent:
    """Give a sealed file its name."""
    n_bytes = written.path.stat().st_size
    copy_whole(written.path, to)
    return Sent(path=to, digest=written.digest, n_bytes=n_bytes, dry=dry, again=again)
