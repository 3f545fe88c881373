"""Where the analyst's files of one round lie: a folder beside the agreement."""

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from cobasis.bundle.files import WholeFile, opened, sync_folder
from cobasis.errors import AnotherRunError, DiskError

SUFFIX = ".round"
_PIECE = 2**20


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
        with as_disk_error(self.path):
            for folder in (self.path, self.uploads, self.payloads, self.receipts):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                msg = (
                    f"another process is at work in '{self.path}'. Two at a time would mix their "
                    "results. Wait for it, then start again."
                )
                raise AnotherRunError(msg) from None
            shutil.rmtree(self.incoming, ignore_errors=True)
            yield
        finally:
            os.close(descriptor)


@contextmanager
def as_disk_error(path: Path) -> Iterator[None]:
    """Say what the system's error means here."""
    try:
        yield
    except OSError as error:
        msg = (
            f"'{path}' cannot be written: {error.strerror}. What was acknowledged is kept. Free "
            "some space, or correct the rights, then start the same command again."
        )
        raise DiskError(msg) from error


def make_folder(path: Path) -> None:
    """Make a folder for results, if it is not there."""
    with as_disk_error(path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a small file, or leave what stood there before."""
    with WholeFile(path, n_bytes=len(data)) as file:
        file.write(data, offset=0)


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file, so that all of the copy is on the disk or nothing."""
    with opened(source) as (file, stamp), WholeFile(target, n_bytes=stamp.size) as whole:
        at = 0
        while piece := cast("bytes", file.read(_PIECE)):
            whole.write(piece, offset=at)
            at += len(piece)
        whole.shorten(at)


def move_whole(source: Path, target: Path) -> None:
    """Move a file to another folder of the same disk, and wait until its name is there."""
    with as_disk_error(target):
        source.replace(target)
        sync_folder(target.parent)


def delete(paths: Iterable[Path]) -> None:
    """Delete files and folders, and wait until their names are gone."""
    for path in paths:
        with as_disk_error(path):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            if path.parent.is_dir():
                with suppress(FileNotFoundError):
                    sync_folder(path.parent)
