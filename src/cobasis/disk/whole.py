"""Files written, copied and moved as a whole, folders made, and both removed.

A file is written under the name ``NAME.part`` and gets its own by a rename, which is one moment: a
process that dies before it leaves the old file and a part, one that dies after it the new file. The
order is sync the file, rename, sync the folder. Without the first, a power cut can leave the name
on a file whose bytes never reached the disk; without the last, the name itself can be lost after
somebody was told that the file is there.
"""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import IO, Any, Self

import numpy.typing as npt

from cobasis.disk import calls
from cobasis.disk.files import bytes_of, opened
from cobasis.disk.lock import Lock
from cobasis.errors import DiskError

PART = ".part"
"""Ends the name of a file that is still being written."""

_PIECE, _MEGABYTE = 2**20, 10**6


class WholeFile:
    """A file that stands under its name when all of it is written, and not before."""

    def __init__(self, path: Path, *, n_bytes: int, mode: int = 0o600) -> None:
        self.path = path
        self.n_bytes = n_bytes
        self._part = path.with_name(path.name + PART)
        busy = (
            f"another process writes to '{path}' right now. Two at a time would mix their bytes. "
            "Wait for it, or choose another name."
        )
        # on the part, which is what two writers would mix; a part that a kill left has no lock
        self._lock = Lock(self._part, what=f"'{path}'", busy=busy)
        self._open = False
        try:
            with self._refusals():
                self._take_over(mode)
                # bytes of a killed writer go first: reserving keeps what is there
                calls.shorten(self._lock.descriptor, 0, path=self._part)
                calls.reserve(self._lock.descriptor, n_bytes, path=self._part)
        except BaseException:
            if self._open:
                self.discard()
            else:
                self._lock.release()
            raise

    def _take_over(self, mode: int) -> None:
        """Refuse a half-written file that somebody else put there, who could read this one."""
        found = os.fstat(self._lock.descriptor)
        if found.st_uid != os.geteuid() or found.st_nlink > 1:
            raise DiskError(
                f"'{self._part}' was put there by somebody else, who could read what is written to "
                f"'{self.path}'. Choose a folder that only you may write to."
            )
        os.fchmod(self._lock.descriptor, mode)
        self._open = True

    def write(self, data: bytes | npt.NDArray[Any], *, offset: int) -> None:
        """Write bytes, or a contiguous array's, at a place of the file."""
        rest = memoryview(data) if isinstance(data, bytes) else bytes_of(data)
        with self._refusals():
            calls.write(self._lock.descriptor, rest, offset=offset, path=self._part)

    def read(self, array: npt.NDArray[Any], *, offset: int) -> None:
        """Fill a contiguous array from a place of the file that was written before."""
        rest = bytes_of(array)
        with self._refusals():
            while rest and (read := os.preadv(self._lock.descriptor, [rest], offset)):
                rest, offset = rest[read:], offset + read

    def shorten(self, n_bytes: int) -> None:
        """End the file here, where fewer bytes were needed than were asked for."""
        with self._refusals():
            calls.shorten(self._lock.descriptor, n_bytes, path=self._part)

    def finish(self) -> None:
        """Give the file its name, once its bytes are on the disk."""
        with self._refusals():
            calls.sync(self._lock.descriptor, path=self._part)
            calls.rename(self._part, self.path)
            self._open = False  # from here on there is no part to discard
            self._lock.release()
            calls.sync_folder(self.path.parent)  # its name outlives a power cut, too

    def discard(self) -> None:
        """Leave nothing behind but what stood under the name before; nothing when finished."""
        if not self._open:
            return
        self._open = False
        try:
            # before the lock goes: after it, the part may be another writer's
            with suppress(OSError):
                calls.remove(self._part)
        finally:
            with suppress(OSError):
                self._lock.release()

    def __enter__(self) -> Self:
        """Write inside a with block: it finishes, or discards when something is raised."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Finish, or discard."""
        try:
            if kind is None:
                self.finish()
        finally:
            self.discard()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Say what the system's error means here."""
        try:
            yield
        except OSError as error:
            raise DiskError(
                f"'{self.path}' cannot be written: {error.strerror} ({self.n_bytes:,} bytes are "
                "needed). Nothing half-written is left under that name. Free some space, or "
                "choose a folder that you may write to, then start again."
            ) from error


def write_whole(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write a file, or leave what stood there before."""
    with WholeFile(path, n_bytes=len(data), mode=mode) as file:
        file.write(data, offset=0)


def copy_whole(source: Path, target: Path) -> None:
    """Copy a file, so that all of the copy is on the disk, or what stood there before.

    A source that is written to meanwhile is copied as it was read: whoever has its digest compares.
    """
    with opened(source) as (file, stamp), WholeFile(target, n_bytes=stamp.size) as whole:
        at = 0
        while piece := _read(file, source):
            whole.write(piece, offset=at)
            at += len(piece)
        whole.shorten(at)


def _read(file: FileIO, path: Path) -> bytes | None:
    """Read the next piece; a DiskError when that fails."""
    try:
        return file.read(_PIECE)
    except OSError as error:
        raise DiskError(
            f"'{path}' cannot be read: {error.strerror}. Check the disk it is on."
        ) from error


def move_whole(source: Path, target: Path) -> None:
    """Give a file or folder another name on the same disk, and wait until the name is there."""
    try:
        calls.rename(source, target)
        calls.sync_folder(target.parent)
    except OSError as error:
        raise DiskError(
            f"'{source}' cannot be moved to '{target}': {error.strerror}. Free some space, or "
            "correct the rights, then start again."
        ) from error


def make_folder(path: Path) -> None:
    """Make a folder for its owner alone, unless it is there, and see that its name is on the disk.

    So are the folders above it that are missing. A DiskError when that fails.
    """
    try:
        if path.is_dir():
            return
        above = [folder for folder in path.parents if not folder.exists()]
        for folder in (*reversed(above), path):  # a name is worth nothing in a folder without one
            calls.make(folder)
            calls.sync_folder(folder.parent)
    except OSError as error:
        raise DiskError(
            f"the folder '{path}' cannot be made: {error.strerror}. Free some space, correct the "
            "rights, or choose another."
        ) from error


def remove_tree(path: Path) -> None:
    """Delete a file or a folder, if it is there, and wait until its name is gone."""
    try:
        _remove_all(path)
        if path.parent.is_dir():
            calls.sync_folder(path.parent)
    except OSError as error:
        raise DiskError(
            f"'{path}' cannot be deleted: {error.strerror or error}. It may hold private numbers; "
            "delete it yourself, then start again."
        ) from error


def remove_left(folder: Path, *ends: str) -> None:
    """Delete what a process that died left half-written below a folder, whose lock is held."""
    try:
        left = [path for end in (PART, *ends) for path in folder.rglob(f"*{end}")]
    except OSError as error:
        raise DiskError(
            f"the folder '{folder}' cannot be read: {error.strerror}. Check the disk and your "
            "rights to it, then start again."
        ) from error
    for path in left:
        remove_tree(path)


def _remove_all(path: Path) -> None:
    """Delete what is in a folder before the folder; of a link only the link."""
    if path.is_dir() and not path.is_symlink():
        for inner in sorted(path.iterdir()):
            _remove_all(inner)
    with suppress(FileNotFoundError):
        calls.remove(path)


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """Give a folder for one piece of work, deleted at its end; by default where TMPDIR says."""
    folder = (parent or Path(tempfile.gettempdir())) / f"scratch-{secrets.token_hex(8)}"
    make_folder(folder)
    try:
        yield folder
    finally:
        remove_tree(folder)


def require_room(folder: Path, n_bytes: int, *, what: str) -> None:
    """Raise DiskError where a folder's disk has less room than something will take."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise DiskError(
            f"{what} writes about {n_bytes / _MEGABYTE:,.0f} MB to '{folder}', whose disk has "
            f"{free / _MEGABYTE:,.0f} MB left. Make room there, or choose a folder on another "
            "disk: work=, or TMPDIR in the environment."
        )


def nameless_file(folder: Path) -> AbstractContextManager[IO[bytes]]:
    """Open a file without a name, which no crash leaves behind."""
    return tempfile.TemporaryFile(dir=folder)
