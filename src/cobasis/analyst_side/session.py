"""What the analyst's commands work with: agreement, identity, work folder, transcript, history."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from cobasis.analyst_side.history import ATTEMPT, OPENED, REVOKED, History, Received, history_of
from cobasis.bundle.agreement_file import (
    news_at,
    read_agreement,
    sealed_agreement,
    sealed_path,
    stem_of,
)
from cobasis.bundle.envelope import Bundle, open_bundle, write_bundle
from cobasis.bundle.manifest import MAX_AHEAD, Expected
from cobasis.bundle.messages import Enclosed
from cobasis.bundle.transcript import Transcript, verify_transcript
from cobasis.bundle.transcript import now as time_now
from cobasis.disk.lock import Lock
from cobasis.disk.tensors import read_tables
from cobasis.disk.whole import file_digest, make_folder, remove_left, remove_tree, write_whole
from cobasis.errors import AnotherRunError, CobasisError, ReplayError, RetentionError, UnsignedError
from cobasis.keys.identity import Identity, enrolled_key
from cobasis.linalg.arrays import Hidden, Integers
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement, moment_of, moment_text
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.exchanges import Exchange, exchanges
from cobasis.protocol.messages import ConsensusSpan
from cobasis.protocol.news import News, Revocation, refuse_revoked
from cobasis.protocol.signatures import Receipt, analyst_of, mask_keys, sign_receipt, signers
from cobasis.protocol.sums import SumsAnalyst
from cobasis.protocol.word import WORD, Word

SUFFIX, NEWS = ".round", ".news"


class WorkFolder:
    """The analyst's folder of one round: ``icu.round`` beside ``icu.toml``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.transcript = path / "transcript.jsonl"
        self.received = path / "received"
        self.payloads = path / "payloads"
        self.incoming = path / "incoming"
        self.alignments = path / "alignment"
        self.models = path / "models"
        self.span = path / "span.safetensors"
        self.table = path / "aligned.parquet"  # of a group's rows
        self.findings = path / "findings.json"

    def sealed(self, party: str, exchange: Exchange) -> Path:
        return self.received / f"{party}.{exchange.number}-{exchange.message}"

    def payload(self, party: str) -> Path:
        return self.payloads / f"{party}.safetensors"


def work_folder(agreement: Path) -> WorkFolder:
    return WorkFolder(agreement.with_name(f"{stem_of(agreement)}{SUFFIX}"))


class AnalystSession(Hidden):
    def __init__(
        self, agreement: Agreement, *, identity: Identity, path: Path, sealed: bool = True
    ) -> None:
        enrolled = analyst_of(agreement)
        self.identity = enrolled_key(identity, enrolled)
        self.agreement, self.path = agreement, path
        self.sealed = sealed
        self.name, self.digest = enrolled.name, agreement.digest().hex()
        self.enrolled = {each.name: each for each in agreement.enrolled}
        self.work = work_folder(path)
        self.news = path.with_name(f"{stem_of(path)}{NEWS}")
        self.outbox = path.with_name("outbox")
        self.report: Report = silent  # hears how far the command at work is

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return exchanges(self.agreement, last=self.history.last)

    @cached_property
    def transcript(self) -> Transcript:
        return Transcript(self.work.transcript)

    @cached_property
    def history(self) -> History:
        """Where the round stands; read again when the work folder is taken."""
        if not self.work.transcript.exists():
            return History()
        found = history_of(verify_transcript(self.work.transcript))
        if found.digest in {"", self.digest}:
            return found
        if not found.files and not sealed_path(self.path).exists():
            return History()  # signatures of a text that was edited before all had signed
        raise AnotherRunError(
            f"'{self.work.path}' holds a round under another agreement ({found.digest[:16]}) "
            f"than this one ({self.digest[:16]}). Use that one, or a new name and round."
        )

    def note(self, event: str, told: dict[str, Any]) -> None:
        self.history.take(self.transcript.append(event, told))

    def hear(self, word: Word) -> bool:
        """Note a party's word on the model that was trained last; whether it is new.

        ReplayError for a second one of a party: two would show what changed.
        """
        made, words = self.history.outcome, self.history.words
        word.check(self.agreement, model_sha256=made.model_sha256 if made else None)
        before = words.get((word.party, word.model_sha256))
        if before is None:
            self.note(WORD, word.model_dump())
        elif before != word:
            raise ReplayError(
                f"party '{word.party}' has said a word on this model on {before.time}, which stays."
            )
        return before is None

    @contextmanager
    def at_work(self) -> Iterator[History]:
        """Keep other processes out of the work folder, and say where the round stands."""
        work = self.work
        for folder in (work.path, work.received, work.payloads, work.models):
            make_folder(folder)
        with Lock(work.path / "lock", what=f"'{work.path}'"):
            # what a kill left half done; under the lock, since it may be what another one does
            remove_tree(work.incoming)
            remove_left(work.path)
            for each in ("history", "told"):  # another process may have gone on since
                vars(self).pop(each, None)
            if not self.history.digest:
                told = {"round": self.agreement.round_id, "agreement": self.digest}
                self.note(OPENED, {**told, "analyst": self.name})
            yield self.history

    def open_exchange(self) -> Exchange:
        return self.exchanges[min(len(self.history.ended), len(self.exchanges) - 1)]

    def reply(self, party: str, exchange: Exchange) -> Path:  # as outbox/icu.north.2-return
        return self.outbox / f"{stem_of(self.path)}.{party}.{exchange.number}-{exchange.reply}"

    def reference(self, lab: str) -> Path:
        return self.path.with_name(f"{lab}.reference")

    def kept(self, received: Received) -> AbstractContextManager[Bundle]:
        path = self.work.sealed(received.party, self.exchanges[received.exchange - 1])
        if not path.is_file() or file_digest(path) != received.file:
            raise RetentionError(
                f"the {received.message} of party '{received.party}' ({received.file[:16]}) is not "
                f"in '{self.work.path}' any more, or was changed. Restore the folder from a copy."
            )
        return self.opened(path)

    def begin_attempt(self, attempt: int, *, without: Iterable[str]) -> None:
        """Begin sums anew with other parties; what was sent for the attempt before is deleted."""
        self.note(ATTEMPT, {"attempt": attempt, "without": list(without)})
        for path in self.work.received.iterdir():
            remove_tree(path)  # with a late file they would show what the attempt leaves out

    def sums_analyst(self, exchange: Exchange, *, before: Sequence[Integers] = ()) -> SumsAnalyst:
        """Return who adds up what this attempt's participants send; nothing is received yet."""
        history = self.history
        keys = mask_keys(self.agreement, history.agreed.values())
        out = history.without if history.attempt > 1 else ()
        keys = {name: key for name, key in keys.items() if name not in out}
        told: Any = {"attempt": history.attempt, "exchange": exchange, "before": before}
        return SumsAnalyst(self.agreement, keys=keys, **told)

    def kept_span(self) -> ConsensusSpan:
        tables, header = read_tables(self.work.span)
        return ConsensusSpan(
            agreement_digest=self.agreement.digest(),
            anchor_tag=bytes.fromhex(header.metadata["anchor_tag"]),
            rows=tables["rows"],
            contributors=self.history.contributors,
            simulated=False,
        )

    def seal(self, enclosed: Enclosed, path: Path, *, to: Sequence[PublicIdentity]) -> str:
        make_folder(path.parent)
        sign, created = self.identity.sign, self.now()
        return write_bundle(path, **enclosed._asdict(), sign=sign, recipients=to, created=created)

    @contextmanager
    def opened(self, path: Path, *, lab: PublicIdentity | None = None) -> Iterator[Bundle]:
        """Open what a party, or another group's analyst, sealed for this one in this round."""
        of: Any = {"kind": "consensus"} if lab else {"agreement": self.digest}
        mine = Expected(round_id=self.agreement.round_id, recipient=self.name, **of)
        signer = {lab.name: lab} if lab else self.enrolled
        told: Any = {"unseal": self.identity.unseal, "signer": signer, "expected": mine}
        try:
            yield open_bundle(path, into=self.work.incoming, **told)
        finally:
            remove_tree(self.work.incoming)

    def require_sealed(self) -> None:
        if not self.sealed:
            away = [name for name in signers(self.agreement) if name not in self.history.agreed]
            raise UnsignedError(
                f"the agreement is not signed by everybody (missing: {', '.join(away)}), so only "
                "signatures are taken yet. Receive theirs first."
            )

    def require_kept(self) -> None:
        if self.history.forgotten:
            raise RetentionError(
                f"the uploads of round '{self.agreement.round_id}' were destroyed on "
                f"{self.history.forgotten}, so nothing can be trained again. Agree on a new round; "
                "what was returned stays in use."
            )

    def revoke(self, made: Revocation) -> None:
        if made.name not in self.history.revoked:
            self.note(REVOKED, {"revoked": [made.text()]})
        self.tell()

    def refuse_revoked(self, *, out: Collection[str] = ()) -> None:
        refuse_revoked(self.history.revoked.values(), self.agreement, out=out)

    @cached_property
    def told(self) -> datetime:
        with suppress(CobasisError):  # of a text that was edited, or damaged
            if kept := news_at(self.news, self.agreement):
                return moment_of(kept.time)
        return datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        """Say what time it is; not before the last news, as of a clock that was fast.

        Whoever has those takes nothing that is older.
        """
        now = time_now()
        return self.told if now < self.told <= now + MAX_AHEAD else now

    def tell(self) -> None:
        """Write the news beside the agreement: with its receipt a file is acknowledged."""
        history, everybody = self.history, signers(self.agreement)
        of: Any = {"round_id": self.agreement.round_id, "agreement": self.digest}
        of |= {"analyst": self.name}
        order = {name: place for place, name in enumerate(everybody)}
        files = sorted(history.files.values(), key=lambda one: (one.exchange, order[one.party]))
        shared = ("party", "exchange", "file", "history", "time")
        receipts = [
            Receipt(transcript=each.line, **of, **{name: getattr(each, name) for name in shared})
            for each in files
        ]
        same = ("ended", "without", "removed", "attempt", "last", "halted")
        proposed = {name for number, name in history.files if number == 1}
        told = News(
            **of,
            time=moment_text(self.now()),
            agreed=tuple(name for name in everybody if name in history.agreed),
            sealed=history.agreed_at if len(history.agreed) == len(everybody) else "",
            receipts=tuple(sign_receipt(each, self.identity.sign) for each in receipts),
            **{name: getattr(history, name) for name in same},
            trained_on=() if history.outcome is None else tuple(history.outcome.uploads),
            # where receipts tell it, news stay such as the version before can read
            spanned=() if {*history.contributors} == proposed else history.contributors,
            revoked=tuple(history.revoked.values()),
        )
        write_whole(self.news, told.text(self.identity.sign), mode=0o644)


def session_of(path: Path, identity: Identity) -> AnalystSession:
    found = read_agreement(path)  # with .sig files alone it is for receive to seal it
    signed = bool(found.signatures) or sealed_path(path).exists()
    agreement = sealed_agreement(path) if signed else found.agreement
    return AnalystSession(agreement, identity=identity, path=path, sealed=signed)
