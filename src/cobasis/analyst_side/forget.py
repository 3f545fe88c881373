"""The uploads that the analyst keeps: compared with what was received, and at last destroyed."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cobasis.analyst_side.history import FORGOTTEN, KEY_DESTROYED, History, Received
from cobasis.analyst_side.receive import file_digest
from cobasis.analyst_side.session import AnalystSession, refuse_forgotten
from cobasis.bundle.envelope import Limits
from cobasis.bundle.manifest import moment_of, moment_text
from cobasis.bundle.messages import upload_in
from cobasis.bundle.uploads import UploadFolder
from cobasis.disk.whole import move_whole, remove_tree
from cobasis.errors import RetentionError, StepError
from cobasis.progress import Report, silent

_NO_LIMIT = Limits(n_bytes=2**48)  # it was within the limits when it was received


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
    path, sealed = session.work.payload(received.party), session.work.sealed(received.party)
    if path.is_file() and file_digest(path) == received.payload:
        return
    if not sealed.is_file() or file_digest(sealed) != received.upload:
        raise RetentionError(
            f"the upload of party '{received.party}' ({received.upload[:16]}) is not in "
            f"'{session.work.path}' any more, or was changed there. Restore the folder from a "
            "copy; if it was destroyed on purpose, agree on a new round."
        )
    bundle = session.opened(sealed, kind="upload", limits=_NO_LIMIT)
    move_whole(upload_in(bundle, agreement=session.agreement).path, path)
    remove_tree(session.work.incoming)


def retained_until(session: AnalystSession, history: History) -> datetime | None:
    """Return until when uploads are kept: retention_days after the last one came; None before."""
    days = session.agreement.retention_days
    times = [moment_of(each.time) for each in history.received.values()]
    return max(times) + timedelta(days=days) if times and days is not None else None


def forget(
    session: AnalystSession,
    *,
    early: bool = False,
    key: Path | None = None,
    now: datetime | None = None,
) -> str:
    """Destroy all uploads of a round, sealed and opened, with target and changes of basis.

    Models, receipts, certificates and the transcript stay. Deleting takes away the files' names:
    copies of opened uploads in backups, and what a disk keeps of deleted files, are for whoever
    runs the machine to destroy. Sealed copies are closed for good with the key, and copies of the
    key file are to be destroyed with it. Without its key the analyst can do nothing more.
    """
    with session.at_work() as history:
        until = retained_until(session, history)
        if not history.forgotten and until is None:
            raise StepError(
                f"no upload of round '{session.agreement.round_id}' is kept, so none is destroyed. "
                "Look at 'cobasis analyst receive'."
            )
        if until is not None and (now or datetime.now(UTC)) < until and not early:
            raise StepError(
                f"the uploads of round '{session.agreement.round_id}' are agreed to be kept until "
                f"{moment_text(until)}: parties may still come or leave. Wait, or say --early."
            )
        time = history.forgotten
        if not time:
            uploads = [each.upload for each in history.received.values()]
            time = session.transcript.append(FORGOTTEN, {"uploads": uploads}).time
        work = session.work
        for path in (work.payloads, work.uploads, work.alignments, work.consensus):
            remove_tree(path)
        if key is not None:
            told = {"fingerprint": session.identity.public.fingerprint}
            session.transcript.append(KEY_DESTROYED, told)
            remove_tree(key)
        return time


def require_enough(
    session: AnalystSession, parties: Iterable[str], *, missing: Iterable[str]
) -> None:
    """Raise StepError below the agreed minimum, with the names of those who are missing."""
    here, away = tuple(parties), tuple(missing)
    least = session.agreement.minimum_parties
    if len(here) >= max(1, least):
        return
    raise StepError(
        f"{len(here)} upload(s) of round '{session.agreement.round_id}' would be used "
        f"({', '.join(here) or 'none'}), and the agreement asks for at least {least}: with fewer, "
        f"each shows more of itself. Missing: {', '.join(away) or 'nobody'}. Receive theirs first."
    )
