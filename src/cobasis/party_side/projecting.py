"""An upload that is planned, and written in the work folder: to be looked at, and to be sealed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy.typing as npt

from cobasis.disk.whole import remove_tree
from cobasis.linalg.hidden import Hidden
from cobasis.linalg.threads import one_blas_thread
from cobasis.party_side.alone import alone
from cobasis.party_side.making import make_party, memory_of, write_payload
from cobasis.party_side.readying import Ready
from cobasis.party_side.rows import labels_of
from cobasis.progress import Report, silent
from cobasis.protocol.streamed import Plan
from cobasis.vault import Kept


@dataclass(frozen=True, kw_only=True, repr=False)
class Projected(Hidden):
    """An upload's file that nobody has sealed yet.

    Attributes
    ----------
    ready : Ready
        What it was made of.
    plan : Plan
        Its basis, and the order of its rows.
    payload : Path
        The file, in the agreed precision.
    public_rows : array-like or None
        The agreed ones, as they were given.
    """

    ready: Ready
    plan: Plan
    payload: Path
    public_rows: npt.ArrayLike | None


def plan_upload(ready: Ready, *, public_rows: npt.ArrayLike | None) -> Plan:
    """Choose an upload's basis and the order of its rows."""
    desk, rows = ready.desk, ready.rows
    party = make_party(desk, key=ready.choice.key, public_rows=public_rows)
    with one_blas_thread():
        return party.plan(
            rows.sent,
            labels=labels_of(rows, desk, chosen=~rows.held),
            consensus=desk.round.consensus(),
            basis=ready.choice.basis if isinstance(ready.choice, Kept) else None,
            memory=memory_of(desk, rows),
        )


@contextmanager
def projected(
    ready: Ready, *, public_rows: npt.ArrayLike | None = None, report: Report = silent
) -> Iterator[Projected]:
    """Write an upload to look at it; it is gone when the block ends, unknown to the vault."""
    desk = ready.desk
    with alone(desk):
        plan = plan_upload(ready, public_rows=public_rows)
        payload, made = write_payload(desk, ready.rows, plan=plan, report=report)
        try:
            yield Projected(ready=ready, plan=plan, payload=payload, public_rows=public_rows)
        finally:
            for path in made:
                remove_tree(path)
