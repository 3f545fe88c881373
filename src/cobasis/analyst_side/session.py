"""What the analyst's commands work with: agreement, identity, work folder and transcript."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from cobasis.analyst_side.history import OPENED, History, history_of
from cobasis.bundle.agreement_file import sealed_agreement, stem_of
from cobasis.bundle.envelope import Bundle, Expected, Limits, open_bundle
from cobasis.bundle.manifest import Kind
from cobasis.bundle.transcript import Transcript, verify_transcript
from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, remove_left, remove_tree
from cobasis.errors import AgreementError, AnotherRunError, IdentityError, RetentionError
from cobasis.keys.at_rest import home as home_folder
from cobasis.keys.at_rest import key_path, load_identity
from cobasis.keys.identity import Identity
from cobasis.linalg.arrays import Hidden
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity

SUFFIX = ".round"


class WorkFolder:
    """The analyst's folder of one round: ``icu.round`` beside ``icu.toml``.

    Attributes
    ----------
    transcript, uploads, payloads, receipts, incoming, alignments, models, certificates : Path
        Inside it: uploads as they came, and opened; what was signed; what was made of them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.transcript = path / "transcript.jsonl"
        self.uploads = path / "uploads"
        self.payloads = path / "payloads"
        self.receipts = path / "receipts"
        self.incoming = path / "incoming"
        self.alignments = path / "alignment"
        self.models = path / "models"
        self.certificates = path / "certificates"

    def sealed(self, party: str) -> Path:
        """Return where a party's upload stands as it came."""
        return self.uploads / f"{party}.upload"

    def payload(self, party: str) -> Path:
        """Return where a party's upload stands when it is opened."""
        return self.payloads / f"{party}.safetensors"

    def receipt(self, party: str) -> Path:
        """Return where a party's receipt stands."""
        return self.receipts / f"{party}.receipt"

    @property
    def consensus(self) -> Path:
        """Where the common span stands, when there is one."""
        return self.path / "consensus.safetensors"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make the folder, keep other processes out, and clear what a crash left half done."""
        for folder in (self.path, self.uploads, self.payloads, self.receipts):
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

    def __init__(self, agreement: Agreement, *, identity: Identity, work: WorkFolder) -> None:
        enrolled = _analyst_of(agreement)
        if identity.public != enrolled:
            raise IdentityError(
                f"the key of '{identity.public.name}' ({identity.public.fingerprint}) is not the "
                f"one that round '{agreement.round_id}' enrols for its analyst '{enrolled.name}' "
                f"({enrolled.fingerprint}). Use that key: --as {enrolled.name}."
            )
        self.agreement, self.identity, self.work = agreement, identity, work

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

    def opened(self, path: Path, *, kind: Kind, limits: Limits | None = None) -> Bundle:
        """Open into the work folder what a party sealed for this analyst, in this round."""
        expected = Expected(
            kind=kind,
            round_id=self.agreement.round_id,
            agreement=self.digest,
            recipient=self.name,
        )
        return open_bundle(
            path,
            unseal=self.identity.unseal,
            signer=self.enrolled,
            into=self.work.incoming,
            expected=expected,
            limits=limits,
        )

    def history(self) -> History:
        """Return where the round stands."""
        if not self.work.transcript.exists():
            return History()
        found = history_of(verify_transcript(self.work.transcript).entries)
        if found.digest not in {"", self.digest}:
            raise AnotherRunError(
                f"'{self.work.path}' holds a round under another agreement ({found.digest[:16]}) "
                f"than this one ({self.digest[:16]}). Use the agreement that was signed then, or "
                "a new name and round for the new one."
            )
        return found

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


def open_session(
    agreement_path: Path,
    *,
    home: Path | None,
    name: str | None,
    passphrase: Callable[[], str],
) -> AnalystSession:
    """Open the analyst's session of an agreement that everybody signed."""
    agreement = sealed_agreement(agreement_path)
    whose = name or _analyst_of(agreement).name
    identity = load_identity(key_path(home_folder(home), whose), passphrase=passphrase())
    work = WorkFolder(agreement_path.with_name(f"{stem_of(agreement_path)}{SUFFIX}"))
    return AnalystSession(agreement, identity=identity, work=work)


def _analyst_of(agreement: Agreement) -> PublicIdentity:
    if agreement.analyst is not None:
        return agreement.analyst
    raise AgreementError(
        f"the agreement of round '{agreement.round_id}' enrols no analyst, so nobody may receive "
        "uploads. Enrol one: cobasis agreement enrol ... --analyst lab.pub."
    )


def refuse_forgotten(session: AnalystSession, history: History) -> None:
    """Raise RetentionError once the uploads were destroyed."""
    if history.forgotten:
        raise RetentionError(
            f"the uploads of round '{session.agreement.round_id}' were destroyed on "
            f"{history.forgotten}, as agreed, so nothing can be trained again. Agree on a new "
            "round; what was returned stays in use."
        )
