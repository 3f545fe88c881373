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
from cobasis.bundle.points import point
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
    """All that the analyst's commands work with.

    Parameters
    ----------
    agreement : Agreement
        Signed by everybody.
    identity : Identity
        The analyst's; it has to be the enrolled one.
    work : WorkFolder
        Of this round and no other.

    Raises
    ------
    AgreementError
        The agreement enrols no analyst.
    IdentityError
        The identity is not the one that is enrolled.

    Notes
    -----
    **Who sees what.** The analyst. There is no secret of a party in it.

    **Cost.** None.
    """

    def __init__(self, agreement: Agreement, *, identity: Identity, work: WorkFolder) -> None:
        enrolled = _analyst_of(agreement)
        if identity.public != enrolled:
            msg = (
                f"the key of '{identity.public.name}' ({identity.public.fingerprint}) is not the "
                f"one that round '{agreement.round_id}' enrols for its analyst '{enrolled.name}' "
                f"({enrolled.fingerprint}). Use that key: --as {enrolled.name}."
            )
            raise IdentityError(msg)
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
        """Open into the work folder what a party sealed for this analyst, in this round.

        Parameters
        ----------
        path : Path
            The sealed file.
        kind : str
            Of the bundle.
        limits : Limits, optional
            How much of it is read.

        Returns
        -------
        Bundle
            Its parts lie in ``work.incoming``, which the caller deletes.

        Raises
        ------
        SealError, SignatureError, BundleError, ForeignBundleError, ClockError
            It is not from a party of this round, not for this analyst, or damaged.

        Notes
        -----
        **Who sees what.** The analyst alone.

        **Cost.** One pass over the file, and its plain bytes on the disk.
        """
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
        """Return where the round stands.

        Returns
        -------
        History
            As the transcript has it.

        Raises
        ------
        TranscriptError
            A line was changed, removed, moved or added.
        AnotherRunError
            The work folder belongs to another agreement.

        Notes
        -----
        **Who sees what.** The analyst. **Cost.** The transcript is read.
        """
        if not self.work.transcript.exists():
            return History()
        found = history_of(verify_transcript(self.work.transcript).entries)
        if found.digest not in {"", self.digest}:
            msg = (
                f"'{self.work.path}' holds a round under another agreement ({found.digest[:16]}) "
                f"than this one ({self.digest[:16]}). Use the agreement that was signed then, or "
                "a new name and round for the new one."
            )
            raise AnotherRunError(msg)
        return found

    @contextmanager
    def at_work(self) -> Iterator[History]:
        """Take the work folder for this process, and say where the round stands.

        Yields
        ------
        History
            As it is at the beginning.

        Raises
        ------
        AnotherRunError
            Another process is at work, or the folder is another round's.
        TranscriptError, DiskError
            The transcript is not as it was written, or the folder cannot be used.

        Notes
        -----
        **Who sees what.** The analyst. **Cost.** None.
        """
        with self.work.alone():
            history = self.history()
            if not history.digest:
                told = {"round": self.agreement.round_id, "agreement": self.digest}
                self.transcript.append(OPENED, {**told, "analyst": self.name})
                point("analyst.opened")
                history = self.history()
            yield history


def open_desk(
    agreement_path: Path,
    *,
    home: Path | None,
    name: str | None,
    passphrase: Callable[[], str],
) -> AnalystDesk:
    """Open the analyst's desk for an agreement that everybody signed.

    Parameters
    ----------
    agreement_path : Path
        The agreement; the work folder is beside it, with ``.round`` in place of ``.toml``.
    home : Path or None
        Where keys lie; None for ``COBASIS_HOME`` or ``~/.cobasis``.
    name : str or None
        Whose key to use; by default the analyst's as enrolled.
    passphrase : callable
        Asked once, when the key is needed.

    Returns
    -------
    AnalystDesk
        Nothing was written yet.

    Raises
    ------
    AgreementFileError, AgreementError, UnsignedError
        The agreement cannot be read, enrols no analyst, or is not signed by everybody.
    IdentityError, PassphraseError
        There is no such key, it is not the enrolled one, or the passphrase does not open it.

    Notes
    -----
    **Who sees what.** The analyst.

    **Cost.** Opening the key takes one to two seconds, on purpose.
    """
    file = read_agreement(agreement_path)
    file.check_sealed()
    whose = name or _analyst_of(file.agreement).name
    identity = load_identity(key_path(home_folder(home), whose), passphrase=passphrase())
    work = WorkFolder(agreement_path.with_suffix(SUFFIX))
    return AnalystDesk(file.agreement, identity=identity, work=work)


def _analyst_of(agreement: Agreement) -> PublicIdentity:
    if agreement.analyst is not None:
        return agreement.analyst
    msg = (
        f"the agreement of round '{agreement.round_id}' enrols no analyst, so nobody may receive "
        "uploads. Enrol one: cobasis agreement enrol ... --analyst lab.pub."
    )
    raise AgreementError(msg)
