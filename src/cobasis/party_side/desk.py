"""A party's desk: who it is, what was agreed, its vault and its transcript, opened together."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cobasis.bundle.agreement_file import read_agreement, sealed_agreement
from cobasis.bundle.enclosing import Written, write_bundle
from cobasis.bundle.envelope import Bundle, Expected, open_bundle
from cobasis.bundle.manifest import moment_text
from cobasis.bundle.messages import Enclosed
from cobasis.bundle.transcript import Transcript
from cobasis.disk.files import opened
from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, remove_tree, write_whole
from cobasis.errors import (
    AgreementError,
    DiskError,
    IdentityError,
    OptionError,
    UnknownPartyError,
    VaultError,
)
from cobasis.keys.at_rest import home as home_folder
from cobasis.keys.at_rest import key_path, load_identity, names
from cobasis.keys.identity import Identity
from cobasis.linalg.arrays import Hidden
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.vault.rounds import RoundRecords
from cobasis.vault.vault import Vault

MARKS, NOTES = "marks", "notes.age"
"""What outlives a command in the work folder: directions until the upload is whole, and notes."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PartyDesk(Hidden):
    """What every command of a party works with.

    Attributes
    ----------
    agreement : Agreement
        The round's.
    identity : Identity
        The party's, unlocked.
    vault : Vault
        Its secrets at rest.
    transcript : Transcript
        What it did in this round.
    work : Path
        A folder of its own for this round, mode 0700.
    audits : Path
        Where the round's audits are kept.
    """

    agreement: Agreement
    identity: Identity
    vault: Vault
    transcript: Transcript
    work: Path
    audits: Path

    @property
    def name(self) -> str:
        """The party's."""
        return self.identity.public.name

    @property
    def round(self) -> RoundRecords:
        """What the vault holds of this round."""
        return self.vault.round(self.agreement)

    @property
    def analyst(self) -> PublicIdentity:
        """To whom bundles are sealed, and who signs what comes back."""
        if self.agreement.analyst is None:
            raise AgreementError(
                f"the agreement of round '{self.agreement.round_id}' names no analyst, so there is "
                "nobody to seal for. Enrol one with 'cobasis agreement enrol'."
            )
        return self.agreement.analyst


def open_desk(
    agreement: Path,
    *,
    home: Path | None,
    name: str | None,
    passphrase: Callable[[], str],
    sealed: bool = True,
) -> PartyDesk:
    """Read the agreement, unlock the key, and open vault and transcript."""
    agreed = sealed_agreement(agreement) if sealed else read_agreement(agreement).agreement
    folder = home_folder(home)
    who = _who(agreed, folder, name)
    identity = load_identity(key_path(folder, who.name), passphrase=passphrase())
    if identity.public != who:
        raise IdentityError(
            f"the key of '{who.name}' in '{folder}' is not the one that the agreement enrols "
            f"({who.fingerprint}), but {identity.public.fingerprint}. Use the home folder with the "
            "enrolled key; if it is lost, a new agreement has to enrol the new one."
        )
    digest = agreed.digest().hex()[:16]
    work, told = folder / "work" / who.name / digest, folder / "transcripts" / who.name / digest
    make_folder(work)
    make_folder(told)
    return PartyDesk(
        agreement=agreed,
        identity=identity,
        vault=Vault(
            folder / "vault" / who.name,
            party=who.name,
            seal=identity.seal_for_self,
            unseal=identity.unseal_own,
        ),
        transcript=Transcript(told / "transcript.jsonl"),
        work=work,
        audits=folder / "audits" / who.name / digest,
    )


def time_now() -> str:
    """Return the time as manifests and histories write it."""
    return moment_text(datetime.now(UTC))


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of bytes, 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _who(agreement: Agreement, home: Path, name: str | None) -> PublicIdentity:
    """Return which enrolled party this is."""
    enrolled = {each.name: each for each in agreement.enrolled}
    if name is not None:
        if name not in enrolled:
            raise UnknownPartyError(
                f"'{name}' is no party that round '{agreement.round_id}' enrols "
                f"({', '.join(enrolled) or 'nobody yet'}). Give the name of one with --as, or have "
                "it enrolled in a new agreement."
            )
        return enrolled[name]
    here = [each for each in names(home) if each in enrolled]
    if len(here) != 1:
        has = f"keys of {', '.join(here)}" if here else "no key"
        raise IdentityError(
            f"the home folder '{home}' has {has} among the parties that round "
            f"'{agreement.round_id}' enrols ({', '.join(enrolled) or 'nobody yet'}). Say which "
            "with --as, or give the right folder with --home."
        )
    return enrolled[here[0]]


@contextmanager
def alone(desk: PartyDesk) -> Iterator[None]:
    """Keep other commands out of the work folder, and clear what a killed one left in it.

    The system lets go of the lock when a process dies, however it dies. Of what is in the folder,
    only notes and marks outlive a command, and both are sealed.
    """
    make_folder(desk.work)
    busy = (
        f"another command of party '{desk.name}' is at work in round '{desk.agreement.round_id}', "
        f"in '{desk.work}'. Two at a time would mix their files. Wait for it, then start again."
    )
    with Lock(desk.work, what=f"the work folder '{desk.work}'", busy=busy):
        for path in sorted(desk.work.iterdir()):
            if path.name not in {MARKS, NOTES}:
                remove_tree(path)
        yield


def note(desk: PartyDesk, **facts: str) -> None:
    """Add facts to a round's notes, in place of those of the same names."""
    text = json.dumps({**notes(desk), **facts}, sort_keys=True)
    write_whole(desk.work / NOTES, desk.identity.seal_for_self(text.encode()))


def notes(desk: PartyDesk) -> dict[str, str]:
    """Return a round's notes; none before the first."""
    path = desk.work / NOTES
    if not path.exists():
        return {}
    with opened(path) as (file, _):
        sealed = file.readall()
    try:
        found: dict[str, str] = json.loads(desk.identity.unseal_own(sealed))
    except ValueError as error:
        raise VaultError(
            f"the notes '{path}' of party '{desk.name}' cannot be used: they are damaged or were "
            "made with another key. Put the home folder back from a copy, or delete this file."
        ) from error
    return found


@contextmanager
def opened_bundle(
    desk: PartyDesk,
    path: Path,
    *,
    signer: PublicIdentity | Mapping[str, PublicIdentity],
    expected: Expected,
) -> Iterator[Bundle]:
    """Open a bundle that was sealed for the party; its parts are gone when the block ends."""
    into = desk.work / "opened"
    remove_tree(into)
    try:
        yield open_bundle(
            path, unseal=desk.identity.unseal, signer=signer, into=into, expected=expected
        )
    finally:
        remove_tree(into)


def sealed_for_analyst(desk: PartyDesk, enclosed: Enclosed, *, name: str) -> Written:
    """Sign and seal a message to the analyst, as a file of the work folder."""
    return write_bundle(
        desk.work / name,
        draft=enclosed.draft,
        parts=enclosed.parts,
        sign=desk.identity.sign,
        recipients=[desk.analyst],
    )


def refuse_target(to: Path, *, table: Path | None = None) -> None:
    """Raise OptionError or DiskError where a result would overwrite its table or has no folder."""
    with suppress(OSError):
        if table is not None and (to.resolve() == table.resolve() or to.samefile(table)):
            raise OptionError(
                f"-o '{to}' is the table itself, which would be overwritten. Choose another name."
            )
    if to.is_dir() or not to.parent.is_dir():
        raise DiskError(f"-o '{to}' is a folder, or in one that does not exist. Name a file.")
