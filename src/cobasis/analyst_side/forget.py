"""The uploads that the analyst keeps: compared with what was received, and at last destroyed."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cobasis.analyst_side.history import FORGOTTEN, KEY_DESTROYED, History, Received
from cobasis.analyst_side.session import AnalystSession, refuse_forgotten
from cobasis.bundle.messages import upload_in
from cobasis.bundle.uploads import UploadFolder
from cobasis.disk.whole import file_digest, move_whole, remove_tree
from cobasis.errors import RetentionError, StepError
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import moment_of, moment_text

_NO_LIMIT = 2**48  # it was within the limits when it was received


def kept_uploads(
    session: AnalystSession,
    history: History,
    *,
    parties: Collection[str],
    report: Report = silent,
) -> UploadFolder:
    """Return the folder of opened uploads, once every one that is needed is as it was received."""
    refuse_forgotten(session, history)
    for done, party in enumerate(parties):
        report("comparing digests", done, len(parties))
        _restore(session, history.received[party])
    report("comparing digests", len(parties), len(parties))
    return UploadFolder(session.work.payloads)


def _restore(session: AnalystSession, received: Received) -> None:
    """Make sure that a party's opened upload is the one that was acknowledged."""
    path = session.work.payload(received.party)
    sealed = session.work.sealed(received.party, session.exchanges[-1])
    if path.is_file() and file_digest(path) == received.payload:
        return
    if not sealed.is_file() or file_digest(sealed) != received.file:
        raise RetentionError(
            f"the upload of party '{received.party}' ({received.file[:16]}) is not in "
            f"'{session.work.path}' any more, or was changed there. Restore the folder from a "
            "copy; if it was destroyed on purpose, agree on a new round."
        )
    bundle = session.opened(sealed, max_bytes=_NO_LIMIT)
    move_whole(upload_in(bundle, agreement=session.agreement).path, path)
    remove_tree(session.work.incoming)


def retained_until(session: AnalystSession, history: History) -> datetime | None:
    """Return until when files are kept: retention_days after the last one came; None before."""
    days = session.agreement.retention_days
    times = [moment_of(each.time) for each in _kept(history)]
    return max(times) + timedelta(days=days) if times and days is not None else None


def _kept(history: History) -> list[Received]:
    """Return what was taken of those that were not removed."""
    return [each for each in history.files.values() if each.party not in history.removed]


def forget(
    session: AnalystSession,
    *,
    early: bool = False,
    key: Path | None = None,
    ask: Callable[[], object] = lambda: None,
    now: datetime | None = None,
) -> str:
    """Destroy all that parties sent, sealed and opened, with span, target and changes of basis.

    Models, receipts, certificates and the transcript stay. Deleting takes away the files' names:
    copies of opened uploads in backups, and what a disk keeps of deleted files, are for whoever
    runs the machine to destroy. Sealed copies are closed for good with the key, and copies of the
    key file are to be destroyed with it. Without its key the analyst can do nothing more. `ask`
    is called once nothing else stands in the way.
    """
    with session.at_work() as history:
        until = retained_until(session, history)
        if not history.forgotten and until is None:
            raise StepError(
                f"nothing that a party sent in round '{session.agreement.round_id}' is kept, so "
                "there is nothing to destroy."
            )
        if until is not None and (now or datetime.now(UTC)) < until and not early:
            raise StepError(
                f"the uploads of round '{session.agreement.round_id}' are agreed to be kept until "
                f"{moment_text(until)}: parties may still come or leave. Wait, or say --early."
            )
        ask()
        time = history.forgotten
        if not time:
            files = [each.file for each in _kept(history)]
            time = session.transcript.append(FORGOTTEN, {"files": files}).time
        work = session.work
        for path in (work.payloads, work.received, work.alignments, work.span):
            remove_tree(path)
        if key is not None:
            told = {"fingerprint": session.identity.public.fingerprint}
            session.transcript.append(KEY_DESTROYED, told)
            remove_tree(key)
        return time
