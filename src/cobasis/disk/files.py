"""Files on disk: written whole or not at all, read exactly or not at all.

Nothing is memory-mapped: a mapped page counts as this process's memory, and a file that
shrinks under a mapping kills the process instead of raising an error.

``whole.py`` writes, copies, moves and removes in one call.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from cobasis.errors import AnotherRunError, DiskError, FileChangedError

PART = ".part"
"""Ends the name of a file that is still being written."""


class Stamp(NamedTuple):
    """What tells whether a file is still the one that was opened."""

    size: int
    modified_ns: int
    inode: int


@contextmanager
def opened(path: Path | str) -> Iterator[tuple[FileIO, Stamp]]:
    """Open a regular file for reading; a missing, forbidden or other one is a DiskError."""
    try:
        # a pipe that somebody put there is opened without waiting for its other end, then refused
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise DiskError(
            f"'{path}' cannot be read: {error.strerror}. Check the path and your rights to it."
        ) from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise DiskError(f"'{path}' cannot be read: it is no file. Give the path of a file.")
        yield FileIO(descriptor, "r", closefd=False), _stamp(found)
    finally:
        os.close(descriptor)


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of a file without opening it."""
    try:
        return _stamp(path.stat())
    except OSError as error:
        raise DiskError(
            f"'{path}' cannot be read: {error.strerror}. Check the path and your rights to it."
        ) from error


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_size, found.st_mtime_ns, found.st_ino)


def read_array(
    path: Path | str, array: npt.NDArray[Any], *, offset: int, stamp: Stamp, what: str
) -> None:
    """Fill a contiguous array from a file that has to be the one that was opened before."""
    with opened(path) as (file, before):
        refuse_changed(before, stamp, what=what)
        rest = _bytes_of(array)
        try:
            file.seek(offset)
            while rest and (read := file.readinto(rest)):
                rest = rest[read:]
            after = _stamp(os.fstat(file.fileno()))
        except OSError as error:
            raise DiskError(
                f"'{path}' cannot be read: {error.strerror}. Check the disk it is on."
            ) from error
        refuse_changed(after, stamp, what=what)


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    """Return a contiguous array's own bytes."""
    return array.reshape(-1).view(np.uint8).data


def sync_folder(path: Path) -> None:
    """Wait until a folder's names are on the disk; an OSError when that fails."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def made_folder(path: Path) -> None:
    """Make a folder for its owner alone, unless it is there, and see that its name is on the disk.

    So are the folders above it that are missing. A DiskError when that fails.
    """
    try:
        if path.is_dir():
            return
        above = [folder for folder in path.parents if not folder.exists()]
        for folder in (*reversed(above), path):
            folder.mkdir(mode=0o700, exist_ok=True)
            sync_folder(folder.parent)
    except OSError as error:
        raise DiskError(
            f"the folder '{path}' cannot be made: {error.strerror}. Free some space, correct the "
            "rights, or choose another."
        ) from error


def refuse_changed(found: Stamp, expected: Stamp, *, what: str) -> None:
    """Raise FileChangedError unless both stamps are of one state of one file."""
    if found == expected:
        return
    sizes = (
        f"it had {expected.size:,} bytes and has {found.size:,} now"
        if found.size != expected.size
        else "its size is the same, but it was written anew"
    )
    raise FileChangedError(
        f"{what} changed while it was in use: {sizes}. What was read of it would be of two "
        "versions. Wait until nobody writes to it, then start again."
    )


class WholeFile:
    """A file that stands under its name when all of it is written, and not before."""

    def __init__(self, path: Path, *, n_bytes: int) -> None:
        self.path = path
        self.n_bytes = n_bytes
        self._part = path.with_name(path.name + PART)
        with self._refusals():
            self._descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        self._open = False
        try:
            with self._refusals():
                self._take()
                os.ftruncate(self._descriptor, 0)
                if hasattr(os, "posix_fallocate") and n_bytes:
                    os.posix_fallocate(self._descriptor, 0, n_bytes)
                else:
                    os.ftruncate(self._descriptor, n_bytes)
        except BaseException:
            if self._open:
                self.discard()
            else:
                os.close(self._descriptor)
            raise

    def _take(self) -> None:
        """Lock the half-written file, so that no other process writes to it as well."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            named = self._part.stat().st_ino == os.fstat(self._descriptor).st_ino
        except (BlockingIOError, FileNotFoundError):
            named = False
        if not named:
            raise AnotherRunError(
                f"another process writes to '{self.path}' right now. Two at a time would mix "
                "their bytes. Wait for it, or choose another name."
            )
        found = os.fstat(self._descriptor)
        if found.st_uid != os.geteuid() or found.st_nlink > 1:
            raise DiskError(
                f"'{self._part}' was put there by somebody else, who could read what is written to "
                f"'{self.path}'. Choose a folder that only you may write to."
            )
        os.fchmod(self._descriptor, 0o600)
        self._open = True

    def write(self, data: bytes | npt.NDArray[Any], *, offset: int) -> None:
        """Write bytes, or a contiguous array's, at a place of the file."""
        rest = memoryview(data) if isinstance(data, bytes) else _bytes_of(data)
        with self._refusals():
            while rest:
                written = os.pwrite(self._descriptor, rest, offset)
                rest, offset = rest[written:], offset + written

    def read(self, array: npt.NDArray[Any], *, offset: int) -> None:
        """Fill a contiguous array from a place of the file that was written before."""
        rest = _bytes_of(array)
        with self._refusals():
            while rest and (read := os.preadv(self._descriptor, [rest], offset)):
                rest, offset = rest[read:], offset + read

    def shorten(self, n_bytes: int) -> None:
        """End the file here, where fewer bytes were needed than were asked for."""
        with self._refusals():
            os.ftruncate(self._descriptor, n_bytes)

    def finish(self) -> None:
        """Give the file its name, once its bytes are on the disk."""
        with self._refusals():
            os.fsync(self._descriptor)
            self._part.replace(self.path)
            self._open = False
            os.close(self._descriptor)
            sync_folder(self.path.parent)  # its name outlives a power cut, too

    def discard(self) -> None:
        """Leave nothing behind but what stood under the name before; nothing when finished."""
        if not self._open:
            return
        self._open = False
        with suppress(OSError):
            self._part.unlink()
        with suppress(OSError):
            os.close(self._descriptor)

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
