"""An upload that is planned, and written in the work folder: to be looked at, and to be sealed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy.typing as npt

from cobasis.bundle.whole import remove_tree
from cobasis.engine.progress import Report, silent
from cobasis.linalg.hidden import Hidden
from cobasis.linalg.threads import one_blas_thread
from cobasis.party_side.alone import alone
from cobasis.party_side.making import make_party, memory_of, write_payload
from cobasis.party_side.readying import Ready
from cobasis.party_side.rows import labels_of
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

    Notes
    -----
    **Who sees what.** The party alone. **Cost.** None.
    """

    ready: Ready
    plan: Plan
    payload: Path
    public_rows: npt.ArrayLike | None


def plan_upload(ready: Ready, *, public_rows: npt.ArrayLike | None) -> Plan:
    """Choose an upload's basis and the order of its rows.

    Parameters
    ----------
    ready : Ready
        From `cobasis.party_side.readying.make_ready`.
    public_rows : array-like or None
        The agreed public rows, where anchor or basis are made of them.

    Returns
    -------
    Plan
        The same for the same `ready`, however often it is asked for.

    Raises
    ------
    LocalError
        The rows have too few directions, or public rows are missing.
    StepError
        A consensus is needed, and none was adopted.

    Notes
    -----
    **Who sees what.** The party alone.

    **Cost.** Drawing the anchor, and one or two passes over the table.
    """
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
    """Write an upload to look at it; it is gone when the block ends, and the vault knows nothing.

    Parameters
    ----------
    ready : Ready
        From `cobasis.party_side.readying.make_ready`.
    public_rows : array-like, optional
        As for `plan_upload`.
    report : callable
        Is told of progress.

    Yields
    ------
    Projected
        What `cobasis.party_side.sending.prepare` would seal.

    Raises
    ------
    AnotherRunError
        Another command is at work in the work folder.
    LocalError, StepError
        As `plan_upload` and `cobasis.party_side.making.write_payload`.

    Notes
    -----
    **Who sees what.** The party: the file lies in its work folder, for its owner only.

    **Cost.** As `cobasis.party_side.sending.prepare`, without the seal.
    """
    desk = ready.desk
    with alone(desk):
        plan = plan_upload(ready, public_rows=public_rows)
        payload, made = write_payload(desk, ready.rows, plan=plan, report=report)
        try:
            yield Projected(ready=ready, plan=plan, payload=payload, public_rows=public_rows)
        finally:
            for path in made:
                remove_tree(path)
