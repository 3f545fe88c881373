"""What became of an inbox: a verdict for each file, and who is in, missing or late."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cobasis.analyst_side.audit_record import AuditRecord
from cobasis.analyst_side.history import History, Received
from cobasis.protocol.agreement import Agreement


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
