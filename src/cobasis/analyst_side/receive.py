"""``receive``: signatures, proposals and uploads as they come, each checked, kept, acknowledged.

A file is acknowledged once it lies on the disk as it came (an upload also opened), and the
transcript says so; only then stands its receipt in the news. What cannot be taken is told, and
blocks no other; what is received again changes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cobasis.analyst_side.history import (
    AGREED,
    RECEIVED,
    AuditRecord,
    History,
    Received,
    audit_words,
    received_of,
)
from cobasis.analyst_side.session import AnalystSession, refuse_forgotten
from cobasis.bundle.agreement_file import read_agreement, seal, sealed_path, stem_of
from cobasis.bundle.agreement_text import line_in
from cobasis.bundle.envelope import PLAIN, Bundle, PlainKind, plain_kind
from cobasis.bundle.manifest import AcceptedFile, refuse_replay
from cobasis.bundle.messages import proposal_in, upload_in
from cobasis.bundle.seal import look
from cobasis.disk.calls import READABLE, explained
from cobasis.disk.whole import copy_whole, file_digest, move_whole, remove_tree
from cobasis.errors import (
    AnotherRunError,
    CobasisError,
    DiskError,
    FileChangedError,
    ForeignBundleError,
    OptionError,
    ReplayError,
    TranscriptError,
)
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement, Exchange, exchanges
from cobasis.protocol.refusals import check_proposal, check_upload
from cobasis.protocol.signatures import Signature, check_signature, signers

SIGNS: tuple[PlainKind, ...] = ("signature", "agreement")
"""What may hold signatures."""


@dataclass(frozen=True, kw_only=True)
class FileVerdict:
    """What became of one file."""

    file: str
    verdict: Literal["accepted", "received before", "passed over", "refused"]
    message: str = ""  # empty where it is none, or was refused
    party: str | None = None  # None where nobody's signature was found good
    n_rows: int | None = None
    code: str = ""  # of the refusal
    reason: str = ""
    audit: AuditRecord | None = None


@dataclass(frozen=True, kw_only=True)
class Reception:
    """What became of files, and where the round stands."""

    files: tuple[FileVerdict, ...]
    agreed: tuple[str, ...]
    unsigned: tuple[str, ...]
    sealed: Path | None  # the sealed agreement, once everybody has signed
    exchange: Exchange  # the first that has not ended, or the last
    received: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    late: tuple[str, ...] = ()  # in, and no part of the last run
    without: tuple[str, ...] = ()
    news: Path | None = None  # None where a party has sealed

    @property
    def refused(self) -> tuple[FileVerdict, ...]:
        """The files that were refused."""
        return tuple(each for each in self.files if each.verdict == "refused")


def seal_only(agreement_path: Path, paths: Iterable[Path]) -> Reception:
    """Seal an agreement as a party: look at signatures, here and beside it, and at nothing else."""
    agreement = read_agreement(agreement_path).agreement
    agreed: dict[str, Signature] = {}
    verdicts, new = [], not sealed_path(agreement_path).exists()
    given = files_of([*paths, *sorted(agreement_path.parent.glob("*.sig"))], agreement_path)
    for path in given:
        kind = kind_of(path)
        try:
            signed = signatures_in(path, agreement, kind=kind) if kind in SIGNS else ()
        except CobasisError as error:
            verdicts.append(refused(path, error))
            continue
        agreed |= {each.name: each for each in signed}
        verdicts.append(
            signed_verdict(path, signed, new=new) if signed else passed_over(path, kind)
        )
    if new and not set(signers(agreement)) - set(agreed):
        seal(agreement_path, agreed.values())
    return reception(agreement, agreed, files=tuple(verdicts), path=agreement_path)


def reception(
    agreement: Agreement,
    agreed: Mapping[str, Signature],
    *,
    files: tuple[FileVerdict, ...],
    path: Path,
) -> Reception:
    """Say who has signed, and who has not."""
    everybody = signers(agreement)
    sealed = sealed_path(path)
    return Reception(
        files=files,
        agreed=tuple(name for name in everybody if name in agreed),
        unsigned=tuple(name for name in everybody if name not in agreed),
        sealed=sealed if sealed.exists() else None,
        exchange=exchanges(agreement)[0],
    )


def files_of(paths: Iterable[Path], agreement: Path) -> list[Path]:
    """Return the files given, folders' own (none hidden), or without any what lies beside."""
    given = list(paths)
    if not given:
        stem, messages = stem_of(agreement), ("proposal", "upload")
        beside = [agreement.parent.glob(f"{stem}.*.[0-9]-{word}") for word in messages]
        return sorted(path for found in beside for path in found)
    found: dict[Path, None] = {}
    for path in given:
        with explained(f"'{path}' cannot be read", advice=READABLE):
            inside = sorted(path.iterdir()) if path.is_dir() else []
            files = [each for each in inside if each.name[0] != "." and not each.is_dir()]
            found |= dict.fromkeys(files if path.is_dir() else [path])
            there = path.exists() or path.is_symlink()
        if not there:
            raise OptionError(f"there is neither a file nor a folder '{path}'. Check the path.")
    return list(found)


def kind_of(path: Path) -> PlainKind | None:
    """Return what a file of ours is that is not sealed; None where it cannot be read, either."""
    try:
        return plain_kind(path)
    except DiskError:
        return None  # said when it is taken


def signatures_in(
    path: Path, agreement: Agreement, *, kind: PlainKind | None
) -> tuple[Signature, ...]:
    """Return the good signatures of this agreement in a file."""
    found: tuple[Signature, ...]
    if kind == "signature":
        found = (line_in(path, Signature),)
    else:
        read = read_agreement(path)
        found = read.signatures
        if found and read.agreement.digest() != agreement.digest():
            raise ForeignBundleError(
                f"'{path.name}' is the agreement of round '{read.agreement.round_id}' as another "
                f"text ({read.agreement.digest().hex()[:16]}) than the one here "
                f"({agreement.digest().hex()[:16]}). Ask the others which of the two they signed."
            )
    for each in found:
        check_signature(agreement, each)
    return found


def signed_verdict(path: Path, found: tuple[Signature, ...], *, new: bool) -> FileVerdict:
    """Say whose signatures a file has."""
    return FileVerdict(
        file=path.name,
        verdict="accepted" if new else "received before",
        message="signature",
        party=", ".join(each.name for each in found),
    )


def passed_over(path: Path, kind: PlainKind | None) -> FileVerdict:
    """Say what a file is that nothing is done with."""
    reason = "no signature" if kind is None else PLAIN[kind]
    return FileVerdict(file=path.name, verdict="passed over", reason=reason)


def refused(path: Path, error: CobasisError) -> FileVerdict:
    """Say why a file is not taken."""
    reason = str(error.args[0])
    return FileVerdict(file=path.name, verdict="refused", code=error.code, reason=reason)


def receive(
    session: AnalystSession,
    paths: Iterable[Path],
    *,
    report: Report = silent,
) -> Reception:
    """Take in whatever came; with the last signature the agreement is sealed, and not before."""
    kinds = {path: kind_of(path) for path in files_of(paths, session.path)}
    with session.at_work() as before:
        refuse_forgotten(session, before)
        verdicts, history = _signatures(session, kinds, history=before)
        for done, (path, kind) in enumerate(kinds.items()):
            report("receiving", done, len(kinds))
            if path not in verdicts:
                verdicts[path], history = _taken(session, path, kind=kind, history=history)
        report("receiving", len(kinds), len(kinds))
        news = session.tell(history)
    exchange, outcome = session.open_exchange(history), history.outcome
    known = {*history.taken(exchange.message), *history.removed, *history.without}
    trained_on = history.received if outcome is None else outcome.uploads
    files = tuple(verdicts[path] for path in sorted(verdicts, key=lambda each: each.name))
    found = reception(session.agreement, history.agreed, files=files, path=session.path)
    return replace(
        found,
        exchange=exchange,
        received=tuple(sorted(history.taken(exchange.message))),
        missing=tuple(name for name in session.agreement.parties if name not in known),
        late=tuple(name for name in history.received if name not in trained_on),
        without=history.without,
        news=news,
    )


def _signatures(
    session: AnalystSession, kinds: Mapping[Path, PlainKind | None], *, history: History
) -> tuple[dict[Path, FileVerdict], History]:
    """Take signatures, of the files and beside the agreement; seal it once all are there."""
    beside = dict.fromkeys(session.path.parent.glob("*.sig"), SIGNS[0])
    if session.sealed:
        sealed = sealed_path(session.path)
        beside[sealed if sealed.exists() else session.path] = SIGNS[1]
    known, verdicts = {path.absolute() for path in kinds}, {}
    for path, kind in {**beside, **kinds}.items():
        if kind in SIGNS and path.exists():
            verdict, history = _signed(session, path, kind=kind, history=history)
            new = verdict.verdict == "accepted" and kind == SIGNS[0]
            if path in kinds or (new and path.absolute() not in known):
                verdicts[path] = verdict
    if not set(signers(session.agreement)) - set(history.agreed) and not session.sealed:
        seal(session.path, history.agreed.values())
        session.sealed = True
    return verdicts, history


def _signed(
    session: AnalystSession, path: Path, *, kind: PlainKind | None, history: History
) -> tuple[FileVerdict, History]:
    """Note the signatures of a file in the transcript, each once."""
    try:
        found = signatures_in(path, session.agreement, kind=kind)
    except CobasisError as error:
        return refused(path, error), history
    new = [each for each in found if each.name not in history.agreed]
    time = history.agreed_at
    for each in new:
        told = {"name": each.name, "signature": each.signature}
        time = session.transcript.append(AGREED, told).time
    agreed = {**history.agreed, **{each.name: each for each in new}}
    verdict = signed_verdict(path, found, new=bool(new)) if found else passed_over(path, kind)
    return verdict, replace(history, agreed=agreed, agreed_at=time)


def _taken(
    session: AnalystSession,
    path: Path,
    *,
    kind: PlainKind | None,
    history: History,
) -> tuple[FileVerdict, History]:
    """Take one sealed file in and say what it was, or say why not."""
    if kind is not None:
        return passed_over(path, kind), history
    try:
        digest = file_digest(path)
    except DiskError as error:
        return refused(path, error), history
    try:
        look(path)  # what is no sealed file at all does not wait for signatures
        session.require_sealed(history)
        received, new = _take_in(session, path, digest=digest, history=history)
    except (DiskError, TranscriptError, AnotherRunError):
        raise  # of the work folder, and so of every file
    except CobasisError as error:
        return refused(path, error), history
    verdict = FileVerdict(
        file=path.name,
        verdict="accepted" if new else "received before",
        message=received.message,
        party=received.party,
        n_rows=received.n_rows or None,
        audit=received.audit,
    )
    return verdict, history.with_file(received) if new else history


def _take_in(
    session: AnalystSession, path: Path, *, digest: str, history: History
) -> tuple[Received, bool]:
    """Take in one file, unless it was received before; ReplayError if its party was removed."""
    for each in history.files.values():
        if each.file == digest:
            _refuse_removed(each.party, history)
            return each, False
    try:
        bundle = session.opened(path)
        exchange = _exchange_of(session, bundle, history)
        _refuse_removed(bundle.manifest.sender, history)
        before = history.files.get((exchange.message, bundle.manifest.sender))
        if before is not None:
            accepted = AcceptedFile(digest=before.file, created=before.created)
            refuse_replay(bundle.manifest, digest=bundle.digest, accepted=accepted)
        return _stored(session, bundle, exchange), True
    finally:
        remove_tree(session.work.incoming)


def _exchange_of(session: AnalystSession, bundle: Bundle, history: History) -> Exchange:
    """Return the exchange that a file belongs to; ForeignBundleError unless its turn has come."""
    kind, every = bundle.manifest.kind, session.exchanges
    of = next((each for each in every if each.message == kind), None)
    what = f"the bundle '{bundle.path.name}' of '{bundle.manifest.sender}' is of kind '{kind}'"
    if of is None:
        wanted = " and ".join(f"'{each.message}'" for each in every)
        raise ForeignBundleError(
            f"{what}, and the analyst of this round takes {wanted}. Look whether files were mixed "
            "up, or ask for the right one."
        )
    now = session.open_exchange(history)
    if of.number < now.number:
        party = bundle.manifest.sender
        raise ForeignBundleError(
            f"{what}, of exchange {of.number} of {len(every)}, which ended on "
            f"{history.ended[of.number - 1]}; exchange {now.number} takes '{now.message}'. So "
            f"'{party}' has no part in what was made, and goes on from it: send '{party}' the file "
            f"{session.outbox.name}/{session.reply(party, of)}."
        )
    if of.number > now.number:
        raise ForeignBundleError(
            f"{what}, of exchange {of.number} of {len(every)}, and exchange {now.number} "
            f"('{now.message}') has not ended, so it is made of something that is not there yet. "
            "Ask its sender which round it is of."
        )
    return of


def _stored(session: AnalystSession, bundle: Bundle, exchange: Exchange) -> Received:
    """Check what is inside, put it on the disk as it came, and write the acknowledging line."""
    manifest, work = bundle.manifest, session.work
    told: dict[str, Any] = {
        "party": manifest.sender,
        "exchange": exchange.number,
        "message": exchange.message,
        "file": bundle.digest,
        "created": manifest.created,
    }
    sealed = work.sealed(manifest.sender, exchange)
    if exchange.message == "proposal":
        check_proposal(proposal_in(bundle, agreement=session.agreement), session.agreement)
        _copy(bundle, sealed)
    else:
        payload = upload_in(bundle, agreement=session.agreement)
        check_upload(payload, session.agreement)
        _copy(bundle, sealed)
        move_whole(payload.path, work.payload(manifest.sender))
        told |= {"payload": manifest.parts[0].sha256, "n_rows": payload.n_rows}
    words = audit_words(manifest.audit)
    return received_of(session.transcript.append(RECEIVED, {**told, "audit": words}))


def _copy(bundle: Bundle, to: Path) -> None:
    copy_whole(bundle.path, to)
    if file_digest(to) != bundle.digest:
        raise FileChangedError(
            f"the file '{bundle.path.name}' changed while it was received, so it was not "
            "acknowledged. Wait until it is copied, then receive it again."
        )


def _refuse_removed(party: str, history: History) -> None:
    if party in history.removed:
        raise ReplayError(
            f"what party '{party}' sent was removed from this round, and is not taken again. If "
            "the party comes back, agree on a new round."
        )
