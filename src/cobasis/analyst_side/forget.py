"""``forget``: all that parties sent is destroyed, once its time is over."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from cobasis.analyst_side.history import FORGOTTEN
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.agreement_file import inbox_of
from cobasis.disk.whole import remove_tree
from cobasis.errors import StepError
from cobasis.protocol.agreement import moment_of, moment_text


def forget(
    session: AnalystSession,
    *,
    early: bool = False,
    ask: Callable[[], object] = lambda: None,
    now: datetime | None = None,
) -> str:
    """Destroy all that parties sent, sealed and opened, with span, target and changes of basis.

    Models, receipts, certificates and the transcript stay. Sealed copies elsewhere are unreadable
    once the analyst's key is destroyed, which this does not do; opened ones in backups are for
    whoever runs the machine to destroy.
    `ask` is called once nothing else stands in the way.
    """
    with session.at_work() as history:
        kept = [each for each in history.files.values() if each.party not in history.removed]
        if not history.forgotten and not kept:
            raise StepError(
                f"nothing that a party sent in round '{session.agreement.round_id}' is kept, so "
                "there is nothing to destroy."
            )
        if kept and not early and not history.forgotten:
            days = session.agreement.retention_days or 0  # nobody can sign an agreement without
            until = max(moment_of(each.time) for each in kept) + timedelta(days=days)
            if (now or datetime.now(UTC)) < until:
                raise StepError(
                    f"the uploads are agreed to be kept until {moment_text(until)}: parties may "
                    "still come or leave. Wait, or say --early."
                )
        ask()
        # The line comes first: a kill among the deletions leaves files that the same command,
        # typed again, deletes. The other way round it would leave a round whose uploads are gone,
        # and a record that says they are kept.
        if not history.forgotten:
            session.note(FORGOTTEN, {"files": [each.file for each in kept]})
        work = session.work
        kept_here = (work.payloads, work.received, work.alignments, work.span, work.table)
        for path in (*kept_here, inbox_of(session.path)):  # the inbox of a server
            remove_tree(path)
        return history.forgotten
