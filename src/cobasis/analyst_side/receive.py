"""``analyst receive``: uploads as they come in, verified, stored and acknowledged one by one."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from cobasis.analyst_side.history import (
    RECEIVED,
    AuditRecord,
    History,
    Received,
    audit_record,
    audit_words,
)
from cobasis.analyst_side.session import AnalystSession, refuse_forgotten
from cobasis.bundle.envelope import Bundle, Limits
from cobasis.bundle.expecting import refuse_replay
from cobasis.bundle.messages import upload_in
from cobasis.bundle.receipts import receipt_text
from cobasis.disk.files import opened
from cobasis.disk.whole import copy_whole, move_whole, remove_tree, write_whole
from cobasis.errors import (
    AnotherRunError,
    CobasisError,
    DiskError,
    FileChangedError,
    OptionError,
    ReplayError,
    TranscriptError,
)
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.exchanges import exchanges
from cobasis.protocol.receipts import Receipt, sign_receipt
from cobasis.protocol.refusals import check_upload

PATTERN = "*.upload"
_PIECE = 2**20


@dataclass(frozen=True, kw_only=True)
class FileVerdict:
    """What became of one file of the inbox.

    Attributes
    ----------
    file : str
        Its name.
    verdict : {"accepted", "received before", "refused"}
        Only the last leaves something to do.
    party : str or None
        Whose it is; None where nobody's signature was found good.
    n_rows : int or None
        Rows that were accepted.
    code, reason : str
        Of the refusal; empty otherwise.
    audit : AuditRecord or None
        What an upload says of the party's audit; None where it says nothing.
    """

    file: str
    verdict: Literal["accepted", "received before", "refused"]
    party: str | None = None
    n_rows: int | None = None
    code: str = ""
    reason: str = ""
    audit: AuditRecord | None = None


@dataclass(frozen=True, kw_only=True)
class Reception:
    """What became of an inbox, and where the round stands.

    Attributes
    ----------
    files : tuple of FileVerdict
        In the order of their names.
    received : mapping of str to Received
        Everybody who is in.
    missing : tuple of str
        Enrolled parties whose upload is not.
    late : tuple of str
        Parties that came after the run, and wait for ``analyst add``.
    """

    files: tuple[FileVerdict, ...]
    received: Mapping[str, Received]
    missing: tuple[str, ...]
    late: tuple[str, ...]

    @property
    def refused(self) -> tuple[FileVerdict, ...]:
        """The files that were refused."""
        return tuple(each for each in self.files if each.verdict == "refused")


def missing(agreement: Agreement, history: History) -> tuple[str, ...]:
    """Return the enrolled parties that have no upload in, and were not removed."""
    known = {*history.received, *history.removed}
    return tuple(name for name in agreement.parties if name not in known)


def late(history: History) -> tuple[str, ...]:
    """Return the parties whose upload is in, and no part of the last run."""
    if history.outcome is None:
        return ()
    return tuple(name for name in history.received if name not in history.outcome.uploads)


def receive(
    session: AnalystSession,
    inbox: Path,
    *,
    limits: Limits | None = None,
    report: Report = silent,
) -> Reception:
    """Take in every upload of an inbox; what cannot be taken is told, and blocks no other.

    An upload is acknowledged once it lies on the disk twice, sealed and opened, and the
    transcript says so; only then is there a receipt. A file that is received again changes
    nothing.
    """
    files = _files(inbox)
    verdicts = []
    with session.at_work() as before:
        refuse_forgotten(session, before)
        history = before
        for done, path in enumerate(files):
            report("receiving", done, len(files))
            verdict, taken = _verdict(session, path, history=history, limits=limits)
            verdicts.append(verdict)
            if taken is not None:
                history = replace(history, received={**history.received, taken.party: taken})
        report("receiving", len(files), len(files))
        for each in history.received.values():
            _give_receipt(session, each)
    return Reception(
        files=tuple(verdicts),
        received=history.received,
        missing=missing(session.agreement, history),
        late=late(history),
    )


def take_in(
    session: AnalystSession, path: Path, *, history: History, limits: Limits | None = None
) -> tuple[Received, bool]:
    """Take in one upload, inside `AnalystSession.at_work`."""
    before = _known(path, history)
    if before is not None:
        _give_receipt(session, before)
        return before, False
    try:
        bundle = session.opened(path, kind="upload", limits=limits)
        received = _stored(session, bundle, history)
    finally:
        remove_tree(session.work.incoming)
    _give_receipt(session, received)
    return received, True


def _files(inbox: Path) -> list[Path]:
    """Return the uploads in an inbox, sorted by name."""
    if inbox.is_file():
        return [inbox]
    if not inbox.is_dir():
        raise OptionError(f"there is no folder '{inbox}' with uploads. Check the path.")
    try:
        return sorted(path for path in inbox.glob(PATTERN) if not path.name.startswith("."))
    except OSError as error:
        raise DiskError(
            f"the folder '{inbox}' cannot be read: {error.strerror}. Check your rights to it."
        ) from error


def _verdict(
    session: AnalystSession, path: Path, *, history: History, limits: Limits | None
) -> tuple[FileVerdict, Received | None]:
    """Take one file in and say what it was, or say why not."""
    try:
        file_digest(path)
    except DiskError as error:
        return _refused(path, error), None
    try:
        received, new = take_in(session, path, history=history, limits=limits)
    except (DiskError, TranscriptError, AnotherRunError):
        raise  # of the work folder, and so of every file
    except CobasisError as error:
        return _refused(path, error), None
    verdict = FileVerdict(
        file=path.name,
        verdict="accepted" if new else "received before",
        party=received.party,
        n_rows=received.n_rows,
        audit=received.audit,
    )
    return verdict, received


def _refused(path: Path, error: CobasisError) -> FileVerdict:
    reason = str(error.args[0])
    return FileVerdict(file=path.name, verdict="refused", code=error.code, reason=reason)


def _known(path: Path, history: History) -> Received | None:
    """Return what is known of a file that was received before; ReplayError if it was removed."""
    digest = file_digest(path)
    for name, each in history.removed.items():
        if each.upload == digest:
            raise ReplayError(_gone(name))
    return next((each for each in history.received.values() if each.upload == digest), None)


def _stored(session: AnalystSession, bundle: Bundle, history: History) -> Received:
    """Check an opened bundle, put it on the disk twice, and write the line that acknowledges it."""
    manifest, work = bundle.manifest, session.work
    party = manifest.sender
    if party in history.removed:
        raise ReplayError(_gone(party))
    before = history.received.get(party)
    accepted = None if before is None else before.accepted
    refuse_replay(manifest, digest=bundle.digest, accepted=accepted)
    payload = upload_in(bundle, agreement=session.agreement)
    check_upload(payload, session.agreement)
    copy_whole(bundle.path, work.sealed(party))
    if file_digest(work.sealed(party)) != bundle.digest:
        raise FileChangedError(
            f"the file '{bundle.path.name}' changed while it was received, so it was not "
            "acknowledged. Wait until it is copied, then receive it again."
        )
    move_whole(payload.path, work.payload(party))
    told: dict[str, Any] = {
        "party": party,
        "upload": bundle.digest,
        "payload": next(part.sha256 for part in manifest.parts),
        "created": manifest.created,
        "n_rows": payload.n_rows,
    }
    words = audit_words(manifest.audit)
    entry = session.transcript.append(RECEIVED, {**told, "audit": words})
    return Received(**told, time=entry.time, line=entry.hash, audit=audit_record(words))


def _give_receipt(session: AnalystSession, received: Received) -> None:
    """Write a party's receipt, unless it is there as it has to be."""
    receipt = Receipt(
        round_id=session.agreement.round_id,
        agreement=session.digest,
        party=received.party,
        analyst=session.name,
        exchange=len(exchanges(session.agreement)),
        file=received.upload,
        time=received.time,
        transcript=received.line,
    )
    text = receipt_text(sign_receipt(receipt, session.identity.sign))
    path = session.work.receipt(received.party)
    if not path.is_file() or path.read_bytes() != text:
        write_whole(path, text)


def _gone(party: str) -> str:
    return (
        f"the upload of party '{party}' was removed from this round, and is not taken again. If "
        "the party comes back, agree on a new round."
    )


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with opened(path) as (file, _):
        while piece := cast("bytes", file.read(_PIECE)):
            digest.update(piece)
    return digest.hexdigest()
