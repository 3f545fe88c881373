"""The analyst's desk: agreement, identity, work folder and transcript of one round."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from cobasis.analyst_side.history import OPENED, History, history_of
from cobasis.analyst_side.work import SUFFIX, WorkFolder
from cobasis.bundle.agreement_file import read_agreement
from cobasis.bundle.envelope import Bundle, Expected, Limits, open_bundle
from cobasis.bundle.parts import Kind
from cobasis.bundle.transcript import Transcript, verify_transcript
from cobasis.errors import AgreementError, AnotherRunError, IdentityError
from cobasis.keys.at_rest import load_identity
from cobasis.keys.home import home as home_folder
from cobasis.keys.home import key_path
from cobasis.keys.identity import Identity
from cobasis.linalg.hidden import Hidden
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity


class AnalystDesk(Hidden):
    """All that the analyst's commands work with."""

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


def open_desk(
    agreement_path: Path,
    *,
    home: Path | None,
    name: str | None,
    passphrase: Callable[[], str],
) -> AnalystDesk:
    """Open the analyst's desk for an agreement that everybody signed."""
    file = read_agreement(agreement_path)
    file.check_sealed()
    whose = name or _analyst_of(file.agreement).name
    identity = load_identity(key_path(home_folder(home), whose), passphrase=passphrase())
    work = WorkFolder(agreement_path.with_suffix(SUFFIX))
    return AnalystDesk(file.agreement, identity=identity, work=work)


def _analyst_of(agreement: Agreement) -> PublicIdentity:
    if agreement.analyst is not None:
        return agreement.analyst
    raise AgreementError(
        f"the agreement of round '{agreement.round_id}' enrols no analyst, so nobody may receive "
        "uploads. Enrol one: cobasis agreement enrol ... --analyst lab.pub."
    )
