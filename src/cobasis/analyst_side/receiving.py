"""Uploads as they come in: verified, stored, acknowledged; each file by itself."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from cobasis.analyst_side.audit_record import audit_record, audit_words
from cobasis.analyst_side.checking import check_payload, file_digest
from cobasis.analyst_side.desk import AnalystDesk
from cobasis.analyst_side.history import RECEIVED, History, Received
from cobasis.analyst_side.keeping import refuse_forgotten
from cobasis.analyst_side.reception import FileVerdict, Reception, late, missing
from cobasis.bundle.envelope import Bundle, Limits
from cobasis.bundle.expecting import refuse_replay
from cobasis.bundle.messages import upload_in
from cobasis.bundle.receipts import receipt_text
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
from cobasis.protocol.receipts import Receipt, sign_receipt

PATTERN = "*.upload"


def receive(
    desk: AnalystDesk,
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
    with desk.at_work() as before:
        refuse_forgotten(desk, before)
        history = before
        for done, path in enumerate(files):
            report("receiving", done, len(files))
            verdict, taken = _verdict(desk, path, history=history, limits=limits)
            verdicts.append(verdict)
            if taken is not None:
                history = replace(history, received={**history.received, taken.party: taken})
        report("receiving", len(files), len(files))
        for each in history.received.values():
            _give_receipt(desk, each)
    return Reception(
        files=tuple(verdicts),
        received=history.received,
        missing=missing(desk.agreement, history),
        late=late(history),
    )


def take_in(
    desk: AnalystDesk, path: Path, *, history: History, limits: Limits | None = None
) -> tuple[Received, bool]:
    """Take in one upload, inside `AnalystDesk.at_work`."""
    before = _known(path, history)
    if before is not None:
        _give_receipt(desk, before)
        return before, False
    try:
        bundle = desk.opened(path, kind="upload", limits=limits)
        received = _stored(desk, bundle, history)
    finally:
        remove_tree(desk.work.incoming)
    _give_receipt(desk, received)
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
    desk: AnalystDesk, path: Path, *, history: History, limits: Limits | None
) -> tuple[FileVerdict, Received | None]:
    """Take one file in and say what it was, or say why not."""
    try:
        file_digest(path)
    except DiskError as error:
        return _refused(path, error), None
    try:
        received, new = take_in(desk, path, history=history, limits=limits)
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


def _stored(desk: AnalystDesk, bundle: Bundle, history: History) -> Received:
    """Check an opened bundle, put it on the disk twice, and write the line that acknowledges it."""
    manifest, work = bundle.manifest, desk.work
    party = manifest.sender
    if party in history.removed:
        raise ReplayError(_gone(party))
    before = history.received.get(party)
    accepted = None if before is None else before.accepted
    refuse_replay(manifest, digest=bundle.digest, accepted=accepted)
    payload = upload_in(bundle, agreement=desk.agreement)
    check_payload(payload, desk.agreement)
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
    entry = desk.transcript.append(RECEIVED, {**told, "audit": words})
    return Received(**told, time=entry.time, line=entry.hash, audit=audit_record(words))


def _give_receipt(desk: AnalystDesk, received: Received) -> None:
    """Write a party's receipt, unless it is there as it has to be."""
    receipt = Receipt(
        round_id=desk.agreement.round_id,
        agreement=desk.digest,
        party=received.party,
        analyst=desk.name,
        upload=received.upload,
        time=received.time,
        transcript=received.line,
    )
    text = receipt_text(sign_receipt(receipt, desk.identity.sign))
    path = desk.work.receipt(received.party)
    if not path.is_file() or path.read_bytes() != text:
        write_whole(path, text)


def _gone(party: str) -> str:
    return (
        f"the upload of party '{party}' was removed from this round, and is not taken again. If "
        "the party comes back, agree on a new round."
    )
