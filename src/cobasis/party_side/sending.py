"""What a party sends: directions, where they are agreed on, and its one upload.

The order is the promise. The vault knows the basis and the rows before anything is sealed; it
knows the sealed file's digest, and so does the transcript, before the file has its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy.typing as npt

from cobasis.bundle.enclosing import Written
from cobasis.bundle.messages import enclose_proposal, enclose_upload
from cobasis.disk.whole import copy_whole, remove_tree
from cobasis.linalg.threads import one_blas_thread
from cobasis.party_side.alone import alone
from cobasis.party_side.desk import MARKS, time_now
from cobasis.party_side.making import make_party, memory_of, write_payload
from cobasis.party_side.notes import note
from cobasis.party_side.opening import refuse_target, sealed_for_analyst
from cobasis.party_side.projecting import Projected, plan_upload
from cobasis.party_side.readying import Dry, Ready, same_as_before
from cobasis.progress import Report, silent
from cobasis.protocol.streamed import Plan

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
    desk, rows = ready.desk, ready.rows
    source = rows.table.source.path
    refuse_target(to, table=source)
    with alone(desk):
        if source is not None:
            note(desk, table=str(source.resolve()))
        plan = plan_upload(ready, public_rows=public_rows)
        again = same_as_before(ready)
        number = _begin(ready, plan) if plan.release else None  # charged before noise is drawn
        payload, made = write_payload(desk, rows, plan=plan, report=report)
        written_down = Projected(ready=ready, plan=plan, payload=payload, public_rows=public_rows)
        audit = _allowed(written_down, made, allow)
        number = number or _begin(ready, plan)
        enclosed = enclose_upload(payload, agreement=desk.agreement, audit=audit)
        written = sealed_for_analyst(desk, enclosed, name="sealed.upload")
        desk.vault.finish_upload(number, written.digest)
        desk.transcript.append("prepared", {"upload": written.digest, "analyst": desk.analyst.name})
        sent = _delivered(written, to, dry=ready.dry, again=again)
        for path in (written.path, *made, desk.work / MARKS):
            remove_tree(path)
        return sent


def propose(
    ready: Ready, to: Path, *, public_rows: npt.ArrayLike | None = None, report: Report = silent
) -> Sent:
    """Make the proposal of a span, where the agreement's basis takes two exchanges."""
    desk, rows = ready.desk, ready.rows
    refuse_target(to, table=rows.table.source.path)
    with alone(desk):
        party = make_party(desk, key=ready.choice.key, public_rows=public_rows)
        report("finding directions", 0, 1)
        with one_blas_thread():
            proposal = party.propose(rows.sent, memory=memory_of(desk, rows))
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


def _allowed(
    made: Projected, files: tuple[Path, ...], allow: Allow | None
) -> Mapping[str, str] | None:
    """Ask whether an upload may leave; where it may not, its files go."""
    if allow is None:
        return None
    try:
        return allow(made)
    except Exception:
        for path in files:
            remove_tree(path)
        raise


def _begin(ready: Ready, plan: Plan) -> int:
    """Let the vault know the basis, the rows and what they spend; return the line's number."""
    desk = ready.desk
    return desk.vault.begin_upload(
        ready.choice,
        plan.basis,
        agreement=desk.agreement,
        time=time_now(),
        release=plan.release,
    )


def _delivered(written: Written, to: Path, *, dry: Dry, again: bool = False) -> Sent:
    """Give a sealed file its name."""
    n_bytes = written.path.stat().st_size
    copy_whole(written.path, to)
    return Sent(path=to, digest=written.digest, n_bytes=n_bytes, dry=dry, again=again)
