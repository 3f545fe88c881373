"""What the analyst's commands work with: agreement, identity, work folder and transcript."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from cobasis.analyst_side.history import OPENED, History, history_of
from cobasis.bundle.agreement_file import read_agreement, sealed_agreement, sealed_path, stem_of
from cobasis.bundle.envelope import MAX_BYTES, Bundle, open_bundle
from cobasis.bundle.manifest import Expected
from cobasis.bundle.transcript import Transcript, verify_transcript
from cobasis.bundle.transcript import now as time_now
from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, remove_left, remove_tree, write_whole
from cobasis.errors import (
    AgreementError,
    AnotherRunError,
    IdentityError,
    RetentionError,
    UnsignedError,
)
from cobasis.keys.at_rest import home as home_folder
from cobasis.keys.at_rest import key_path, load_identity
from cobasis.keys.identity import Identity
from cobasis.linalg.arrays import Hidden
from cobasis.protocol.agreement import Agreement, Exchange, exchanges, moment_text
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.signatures import News, Receipt, sign_receipt, signers

SUFFIX, NEWS, OUTBOX = ".round", ".news", "outbox"


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
        self.certificates = path / "certificates"
        self.span = path / "span.safetensors"

    def sealed(self, party: str, exchange: Exchange) -> Path:
        """Return where a party's file of an exchange stands as it came."""
        return self.received / f"{party}.{exchange.number}-{exchange.message}"

    def payload(self, party: str) -> Path:
        """Return where a party's upload stands when it is opened."""
        return self.payloads / f"{party}.safetensors"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make the folder, keep other processes out, and clear what a crash left half done."""
        for folder in (self.path, self.received, self.payloads):
            make_folder(folder)
        busy = (
            f"another process is at work in '{self.path}'. Two at a time would mix their "
            "results. Wait for it, then start again."
        )
        with Lock(self.path / "lock", what=f"'{self.path}'", busy=busy):
            remove_tree(self.incoming)
            remove_left(self.path)
            yield


class AnalystSession(Hidden):
    """What each of the analyst's commands works with."""

    def __init__(
        self, agreement: Agreement, *, identity: Identity, path: Path, sealed: bool = True
    ) -> None:
        enrolled = _analyst_of(agreement)
        if identity.public != enrolled:
            raise IdentityError(
                f"the key of '{identity.public.name}' ({identity.public.fingerprint}) is not the "
                f"one that round '{agreement.round_id}' enrols for its analyst '{enrolled.name}' "
                f"({enrolled.fingerprint}). Use that key: --as {enrolled.name}."
            )
        self.agreement, self.identity, self.path = agreement, identity, path
        self.sealed = sealed
        self.work = work_folder(path)
        self.news = path.with_name(f"{stem_of(path)}{NEWS}")
        self.outbox = path.with_name(OUTBOX)
        self.exchanges = exchanges(agreement)

    @property
    def name(self) -> str:
        """The analyst's."""
        return self.identity.public.name

    @cached_property
    def enrolled(self) -> Mapping[str, PublicIdentity]:
        """Every party's public identity, by name."""
        return {each.name: each for each in self.agreement.enrolled}

    @cached_property
    def digest(self) -> str:
        """The agreement's, 64 hexadecimal digits."""
        return self.agreement.digest().hex()

    @cached_property
    def transcript(self) -> Transcript:
        """To which everything that happens is appended."""
        return Transcript(self.work.transcript)

    def reply(self, party: str, exchange: Exchange) -> str:
        """Return the name of what a party gets back: ``icu.north.2-return``."""
        return f"{stem_of(self.path)}.{party}.{exchange.number}-{exchange.reply}"

    def open_exchange(self, history: History) -> Exchange:
        """Return the first exchange that has not ended, or the last."""
        return self.exchanges[min(len(history.ended), len(self.exchanges) - 1)]

    def opened(self, path: Path, *, max_bytes: int = MAX_BYTES) -> Bundle:
        """Open into the work folder what a party sealed for this analyst, in this round."""
        expected = Expected(
            round_id=self.agreement.round_id, agreement=self.digest, recipient=self.name
        )
        return open_bundle(
            path,
            unseal=self.identity.unseal,
            signer=self.enrolled,
            into=self.work.incoming,
            expected=expected,
            max_bytes=max_bytes,
        )

    def history(self) -> History:
        """Return where the round stands."""
        if not self.work.transcript.exists():
            return History()
        found = history_of(verify_transcript(self.work.transcript).entries)
        if found.digest in {"", self.digest}:
            return found
        if not found.files and not sealed_path(self.path).exists():
            return History()  # signatures of a text that was edited before all had signed
        raise AnotherRunError(
            f"'{self.work.path}' holds a round under another agreement ({found.digest[:16]}) "
            f"than this one ({self.digest[:16]}). Use the agreement that was signed then, or "
            "a new name and round for the new one."
        )

    @contextmanager
    def at_work(self) -> Iterator[History]:
        """Take the work folder for this process, and say where the round stands."""
        with self.work.alone():
            history = self.history()
            if not history.digest:
                told = {"round": self.agreement.round_id, "agreement": self.digest}
                self.transcript.append(OPENED, {**told, "analyst": self.name})
                history = self.history()
            yield history

    def require_sealed(self, history: History) -> None:
        """Raise UnsignedError, with who is missing, before everybody's signature is in."""
        if not self.sealed:
            everybody = signers(self.agreement)
            away = [name for name in everybody if name not in history.agreed]
            raise UnsignedError(
                f"the agreement of round '{self.agreement.round_id}' is not signed by everybody "
                f"(missing: {', '.join(away)}; {len(history.agreed)} of {len(everybody)} are in), "
                "so only signatures are taken yet. Receive theirs first."
            )

    def tell(self, history: History) -> Path:
        """Write the news beside the agreement: with its receipt a file is acknowledged."""
        files = history.files.values()
        order = {name: at for at, name in enumerate(signers(self.agreement))}
        told = News(
            round_id=self.agreement.round_id,
            agreement=self.digest,
            analyst=self.name,
            time=moment_text(time_now()),
            agreed=tuple(sorted(history.agreed, key=lambda name: order[name])),
            sealed=history.agreed_at if len(history.agreed) == len(order) else "",
            receipts=tuple(
                sign_receipt(
                    Receipt(
                        round_id=self.agreement.round_id,
                        agreement=self.digest,
                        party=each.party,
                        analyst=self.name,
                        exchange=each.exchange,
                        file=each.file,
                        time=each.time,
                        transcript=each.line,
                    ),
                    self.identity.sign,
                )
                for each in sorted(files, key=lambda one: (one.exchange, order[one.party]))
            ),
            ended=history.ended,
            trained_on=() if history.outcome is None else tuple(history.outcome.uploads),
            without=history.without,
            removed=history.removed,
        )
        write_whole(self.news, told.text(self.identity.sign), mode=0o644)
        return self.news


def work_folder(agreement: Path) -> WorkFolder:
    """Return the analyst's folder of a round, beside its agreement."""
    return WorkFolder(agreement.with_name(f"{stem_of(agreement)}{SUFFIX}"))


def open_session(
    agreement_path: Path,
    *,
    home: Path | None,
    name: str | None,
    passphrase: Callable[[], str],
    sealed: bool = True,
) -> AnalystSession:
    """Open the analyst's session of an agreement that everybody signed, or may still sign."""
    found = read_agreement(agreement_path)  # with .sig files alone it is for receive to seal it
    signed = bool(found.signatures) or sealed_path(agreement_path).exists()
    agreement = sealed_agreement(agreement_path) if signed else found.agreement
    whose = name or _analyst_of(agreement).name
    identity = load_identity(key_path(home_folder(home), whose), passphrase=passphrase())
    session = AnalystSession(agreement, identity=identity, path=agreement_path, sealed=signed)
    if sealed:
        session.require_sealed(session.history())
    return session


def _analyst_of(agreement: Agreement) -> PublicIdentity:
    if agreement.analyst is not None:
        return agreement.analyst
    raise AgreementError(
        f"the agreement of round '{agreement.round_id}' enrols no analyst, so nobody may receive "
        "anything. Have one made with its file: cobasis agreement new ... --analyst lab.pub."
    )


def refuse_forgotten(session: AnalystSession, history: History) -> None:
    """Raise RetentionError once the uploads were destroyed."""
    if history.forgotten:
        raise RetentionError(
            f"the uploads of round '{session.agreement.round_id}' were destroyed on "
            f"{history.forgotten}, as agreed, so nothing can be trained again. Agree on a new "
            "round; what was returned stays in use."
        )
