"""``receive``: signatures, proposals and uploads as they come, each checked, kept, acknowledged.

A file is acknowledged once it lies on the disk as it came (an upload also opened), and the
transcript says so; only then stands its receipt in the news. What cannot be taken is told, and
blocks no other; what is received again changes nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from cobasis.analyst_side.history import AGREED, LATE, RECEIVED, Received, audit_words
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.agreement_file import beside, line_in, read_agreement, seal, sealed_path
from cobasis.bundle.envelope import PLAIN, Bundle, plain_kind
from cobasis.bundle.messages import proposal_in, sums_in, upload_in
from cobasis.bundle.seal import look
from cobasis.disk.calls import READABLE, explained
from cobasis.disk.whole import copy_whole, file_digest, move_whole
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
from cobasis.progress import counted
from cobasis.protocol.exchanges import EXCHANGES, Exchange
from cobasis.protocol.refusals import check_proposal, check_upload
from cobasis.protocol.signatures import (
    Signature,
    check_approved,
    check_lines,
    check_signature,
    signers,
)
from cobasis.protocol.word import WORD, Word


@dataclass(frozen=True, kw_only=True)
class FileVerdict:
    file: str
    verdict: Literal["accepted", "received before", "passed over", "refused"]
    message: str = ""  # empty where it is none, or was refused
    party: str | None = None  # None where nobody's signature was found good
    n_rows: int | None = None
    code: str = ""  # of the refusal
    reason: str = ""
    audit: Mapping[str, str] | None = None

    @classmethod
    def taken(cls, path: Path, *, new: bool, **told: Any) -> Self:  # noqa: ANN401 -- its fields
        return cls(file=path.name, verdict="accepted" if new else "received before", **told)

    @classmethod
    def refused(cls, path: Path, error: CobasisError) -> Self:
        reason = str(error.args[0])
        return cls(file=path.name, verdict="refused", code=error.code, reason=reason)


def receive(session: AnalystSession, paths: Iterable[Path]) -> tuple[FileVerdict, ...]:
    """Take in whatever came; with the last signature the agreement is sealed, and not before."""
    kinds = {path: plain_kind(path) for path in _files(paths, session.path)}
    with session.at_work():
        session.require_kept()
        verdicts = _signatures(session, kinds)
        for path in counted(kinds, step="receiving", report=session.report):
            if path not in verdicts:
                verdicts[path] = _taken(session, path, kind=kinds[path])
        session.tell()
    return tuple(sorted(verdicts.values(), key=lambda each: each.file))


def _files(paths: Iterable[Path], agreement: Path) -> list[Path]:
    """Return the files given, folders' own (none hidden), or without any what lies beside."""
    given = list(paths)
    if not given:
        ends = (*(f"[0-9]*-{message}" for message in EXCHANGES), WORD)
        return sorted(each for end in ends for each in beside(agreement, f"*.{end}"))
    found: dict[Path, None] = {}
    for path in given:
        with explained(f"'{path}' cannot be read", advice=READABLE):
            if path.is_dir():
                inside = (each for each in sorted(path.iterdir()) if not each.is_dir())
                found |= {each: None for each in inside if each.name[0] != "."}
            elif path.exists() or path.is_symlink():
                found[path] = None
            else:
                raise OptionError(
                    f"there is neither a file nor a folder '{path}'. Make the folder and put what "
                    "came into it, or put it beside the agreement and name none."
                )
    return list(found)


def _signatures(
    session: AnalystSession, kinds: Mapping[Path, str | None]
) -> dict[Path, FileVerdict]:
    """Take signatures, of the files and beside the agreement; seal it once all are there."""
    beside = dict.fromkeys(session.path.parent.glob("*.sig"), "signature")
    if session.sealed:
        sealed = sealed_path(session.path)
        beside[sealed if sealed.exists() else session.path] = "agreement"
    known, verdicts = {path.absolute() for path in kinds}, {}
    for path, kind in {**beside, **kinds}.items():
        if kind in {"signature", "agreement"} and path.exists():
            verdict = _signed(session, path, kind=kind)
            new = verdict.verdict == "accepted" and kind == "signature"
            if path in kinds or (new and path.absolute() not in known):
                verdicts[path] = verdict
    # Each signature has its line before the sealed file is written: a kill in between leaves an
    # agreement that the same command seals from the lines, also when the .sig files are gone.
    agreed = session.history.agreed
    if not set(signers(session.agreement)) - set(agreed) and not session.sealed:
        seal(session.path, agreed.values())
        session.sealed = True
    return verdicts


def _signed(session: AnalystSession, path: Path, *, kind: str) -> FileVerdict:
    """Take the signatures of a file, if all are good and of this agreement; say whose they are."""
    try:
        sealed = kind == "agreement"
        found = read_agreement(path).signatures if sealed else (line_in(path, Signature),)
        for each in found:
            check_signature(session.agreement, each)
    except CobasisError as error:
        return FileVerdict.refused(path, error)
    if not found:
        return FileVerdict(file=path.name, verdict="passed over", reason=PLAIN[kind])
    new = [each for each in found if each.name not in session.history.agreed]
    for each in new:
        session.note(AGREED, each.model_dump(exclude={"agreement"}))
    whose = ", ".join(each.name for each in found)
    return FileVerdict.taken(path, new=bool(new), message="signature", party=whose)


def _taken(session: AnalystSession, path: Path, *, kind: str | None) -> FileVerdict:
    if kind is not None and kind != WORD:
        return FileVerdict(file=path.name, verdict="passed over", reason=PLAIN[kind])
    try:
        digest = file_digest(path)
    except DiskError as error:
        return FileVerdict.refused(path, error)
    try:
        if path.suffix == ".secret":
            raise ForeignBundleError(
                f"'{path.name}' is by its name a party's copy of the consortium secret, which no "
                "analyst may have. Delete it, and tell its sender that it goes to the party alone."
            )
        if kind is None:
            look(path)  # what is no sealed file at all does not wait for signatures
        session.require_sealed()
        session.refuse_revoked(out={*session.history.removed, *session.history.without})
        if kind == WORD:
            word = line_in(path, Word)
            _refuse_removed(session, word.party)
            said, new = word.said(), session.hear(word)
            return FileVerdict.taken(path, new=new, message=WORD, party=word.party, reason=said)
        received, new = _take_in(session, path, digest=digest)
    except (DiskError, TranscriptError, AnotherRunError):
        raise  # of the work folder, and so of every file
    except CobasisError as error:
        return FileVerdict.refused(path, error)
    told = {"message": received.message, "party": received.party, "audit": received.audit}
    return FileVerdict.taken(path, new=new, n_rows=received.n_rows or None, **told)


def _take_in(session: AnalystSession, path: Path, *, digest: str) -> tuple[Received, bool]:
    files = session.history.files
    for each in files.values():
        if each.file == digest:
            _refuse_removed(session, each.party)
            return each, False
    with session.opened(path) as bundle:
        manifest, exchange = bundle.manifest, _exchange_of(session, bundle)
        _refuse_removed(session, manifest.sender)
        place = exchange.number, manifest.sender
        # two uploads of the same rows show more than one, and the second could be made to show
        # where they differ
        if before := files.get(place):
            raise ReplayError(
                f"this {manifest.kind} of '{manifest.sender}' was made on {manifest.created}, and "
                f"one of {before.created} was accepted. A party's is taken once in a round. The "
                "first one stays; to replace it, agree on a new round."
            )
        _store(session, bundle, exchange)
        return files[place], True


def _exchange_of(session: AnalystSession, bundle: Bundle) -> Exchange:
    """Return the exchange that a file belongs to; ForeignBundleError unless its turn has come."""
    kind, every = bundle.manifest.kind, session.exchanges
    party, history, now = bundle.manifest.sender, session.history, session.open_exchange()
    number = bundle.manifest.told.get("exchange")  # of steps, which are all of one kind
    of = next((x for x in every if x.message == kind and number in (None, x.number)), None)
    what = f"the bundle '{bundle.path.name}' of '{party}' is of kind '{kind}'"
    if of is None:
        wanted = " and ".join({f"'{each.message}'": None for each in every})
        raise ForeignBundleError(
            f"{what}, and this round takes {wanted}. Look whether files were mixed up."
        )
    if of.number < now.number:
        if bundle.digest not in history.late:
            session.note(LATE, {"party": party, "exchange": of.number, "file": bundle.digest})
        made = "total" if of.masked else "common span"
        go_on = "" if of.masked else f"cobasis run --without {party}, or "
        raise ForeignBundleError(
            f"{what}, and came after the {made} was made, on {history.ended[of.number - 1]}, "
            f"without it. To go on: {go_on}agree on a new round."
        )
    if of.number > now.number:
        raise ForeignBundleError(
            f"{what}, of exchange {of.number} of {len(every)}, and exchange {now.number} "
            f"('{now.message}') has not ended. Ask its sender which round it is of."
        )
    return of


def _store(session: AnalystSession, bundle: Bundle, exchange: Exchange) -> None:
    manifest, work = bundle.manifest, session.work
    told: dict[str, Any] = {
        "party": manifest.sender,
        "exchange": exchange.number,
        "message": exchange.message,
        "file": bundle.digest,
        "created": manifest.created,
        "history": manifest.history or "",
        "audit": audit_words(manifest.audit),
    }
    check_approved(
        (manifest.audit or {}).get("approvals"),
        session.agreement,
        party=manifest.sender,
        exchange=exchange.message,
        at=manifest.created,
    )
    payload = None
    if exchange.masked:
        found = sums_in(bundle, exchange=exchange)
        session.sums_analyst(exchange).receive(found)
    elif exchange.message == "proposal":
        check_proposal(proposal_in(bundle), session.agreement)
    else:
        payload = upload_in(bundle, agreement=session.agreement)
        check_upload(payload, session.agreement)
        if session.history.contributors:
            span, sender = session.kept_span(), (manifest.sender,)
            check_lines(manifest.lines, session.agreement, consensus=span, parties=sender)
            told["span"] = [span.digest().hex(), manifest.lines[0].signature]
    if copy_whole(bundle.path, work.sealed(manifest.sender, exchange)) != bundle.digest:
        raise FileChangedError(
            f"the file '{bundle.path.name}' changed while it was received, so it was not "
            "acknowledged. Wait until it is copied, then receive it again."
        )
    if payload is not None:
        move_whole(payload.path, work.payload(manifest.sender))
        told |= {"payload": manifest.parts[0].sha256, "n_rows": payload.rows.shape[0]}
    # Files come before the line, and the line before the news: a kill leaves files that nobody
    # was told of, which the next receipt of the same file replaces; never a receipt for nothing.
    session.note(RECEIVED, told)


def _refuse_removed(session: AnalystSession, party: str) -> None:
    if party in session.history.removed:
        raise ReplayError(
            f"what party '{party}' sent was removed from this round, and is not taken again. For "
            "it to come back, agree on a new round."
        )
    # also where the others go on without it
    session.refuse_revoked(out={*signers(session.agreement)} - {party})
