"""Where the analyst's files of one round lie: a folder beside the agreement."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cobasis.bundle.files import made_folder
from cobasis.bundle.whole import remove_tree
from cobasis.errors import AnotherRunError, DiskError

SUFFIX = ".round"


class WorkFolder:
    """The analyst's folder of one round: ``icu.round`` beside ``icu.toml``.

    Parameters
    ----------
    path : Path
        Made by `alone`, for its owner only.

    Attributes
    ----------
    transcript, uploads, payloads, receipts, incoming, alignments, models, certificates : Path
        Inside it: uploads as they came, and opened; what was signed; what was made of them.

    Notes
    -----
    **Who sees what.** The analyst: pseudonymised rows, changes of basis, models. Nothing of a
    party's secrets is ever here.

    **Cost.** Every upload twice: sealed, and opened.
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
        """Make the folder, keep other processes out, and clear what a crash left half done.

        Raises
        ------
        AnotherRunError
            Another process is at work in it.
        DiskError
            It cannot be made or written to.

        Notes
        -----
        **Who sees what.** Nothing is read. **Cost.** None.
        """
        for folder in (self.path, self.uploads, self.payloads, self.receipts):
            made_folder(folder)
        try:
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            msg = (
                f"'{self.path}' cannot be written: {error.strerror}. What was acknowledged is "
                "kept. Free some space, or correct the rights, then start the same command again."
            )
            raise DiskError(msg) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                msg = (
                    f"another process is at work in '{self.path}'. Two at a time would mix their "
                    "results. Wait for it, then start again."
                )
                raise AnotherRunError(msg) from None
            remove_tree(self.incoming)
            yield
        finally:
            os.close(descriptor)
