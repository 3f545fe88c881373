"""Files read exactly, written, copied and moved as a whole; folders made, and both removed.

A file is written under the name ``NAME.part`` and gets its own by a rename, which is one moment: a
process that dies before it leaves the old file and a part, one that dies after it the new file. The
order is sync the file, rename, sync the folder. Without the first, a power cut can leave the name
on a file whose bytes never reached the disk; without the last, the name itself can be lost after
somebody was told that the file is there.

Nothing is memory-mapped: a mapped page counts as this process's memory, and a file that
shrinks under a mapping kills the process instead of raising an error.
"""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import lru_cache
from io import FileIO
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from cobasis.disk import calls
from cobasis.disk.calls import READABLE, WRITABLE, explained
from cobasis.disk.lock import Lock
from cobasis.errors import DiskError, FileChangedError

PART = ".part"  # ends the name of a file that is still being written

_PIECE, _MEGABYTE = 2**20, 10**6


class Stamp(NamedTuple):
    """What tells whether a file is still the one that was opened."""

    size: int
    modified_ns: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


@contextmanager
def opened(path: Path | str) -> Iterator[tuple[FileIO, Stamp]]:
    """Open a regular file for reading; an OSError on the way, or inside, is a DiskError."""
    with explained(f"'{path}' cannot be read", advice=READABLE):
        # a pipe that somebody put there is opened without waiting for its other end, then refused
        descriptor = calls.open_file(Path(path), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise DiskError(f"'{path}' cannot be read: it is no file. Give the path of a file.")
            yield FileIO(descriptor, "r", closefd=False), Stamp.of(found)
        finally:
            os.close(descriptor)


def file_digest(path: Path) -> str:
    with opened(path) as (file, _):
        return hashlib.file_digest(file, "sha256").hexdigest()


def known_digest(path: Path) -> str:
    """Return a file's SHA-256, reckoned anew only where the file has changed."""
    return _digest(path, stamp_of(path))


@lru_cache(maxsize=1000)
def _digest(path: Path, _: Stamp) -> str:
    return file_digest(path)


def read_whole(path: Path) -> bytes:
    with opened(path) as (file, _):
        return file.readall() or b""


def stamp_of(path: Path) -> Stamp:
    with explained(f"'{path}' cannot be read", advice=READABLE):
        return Stamp.of(path.stat())


def bytes_of(array: npt.NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def refuse_changed(found: Stamp, expected: Stamp, *, what: str) -> None:
    if found != expected:
        raise FileChangedError(
            f"{what} changed while it was in use, so what was read of it would be of two versions. "
            "Wait until nobody writes to it, then start again."
        )


class WholeFile(AbstractContextManager["WholeFile"]):
    """A file that stands under its name when all of it is written, and not before."""

    def __init__(self, path: Path, *, n_bytes: int, mode: int = 0o600) -> None:
        self.path, self.n_bytes = path, n_bytes
        self.at, self.digest = 0, hashlib.sha256()  # of what was written one behind the other
        self._part = path.with_name(path.name + PART)
        # on the part, which is what two writers would mix; a part that a kill left has no lock
        self._lock, self._undo = Lock(self._part, what=f"'{path}'"), ExitStack()
        self._undo.callback(self._lock.release)
        found = os.fstat(self._lock.descriptor)
        if found.st_uid != os.geteuid() or found.st_nlink > 1:
            self.discard()
            raise DiskError(
                f"'{self._part}' was put there by somebody else, who could read what is written to "
                f"'{path}'. Choose a folder that only you may write to."
            )
        # before the lock goes: after it, the part may be another writer's
        self._undo.callback(calls.remove, self._part)
        try:
            with self._refusals():
                os.fchmod(self._lock.descriptor, mode)
                # bytes of a killed writer go first: reserving keeps what is there
                calls.do(os.ftruncate, self._lock.descriptor, 0, path=self._part)
                calls.reserve(self._lock.descriptor, n_bytes, path=self._part)
        except BaseException:
            self.discard()
            raise

    def write(self, data: bytes | npt.NDArray[Any], *, offset: int | None = None) -> int:
        """Write bytes, or a contiguous array's, at a place; without one, behind those before."""
        rest, at = memoryview(data) if isinstance(data, bytes) else bytes_of(data), offset
        if at is None:
            self.digest.update(rest)
            at, self.at = self.at, self.at + len(rest)
        with self._refusals():
            calls.write(self._lock.descriptor, rest, offset=at, path=self._part)
        return len(rest)

    def read(self, array: npt.NDArray[Any], *, offset: int) -> None:
        rest = bytes_of(array)
        with self._refusals():
            while rest and (read := os.preadv(self._lock.descriptor, [rest], offset)):
                rest, offset = rest[read:], offset + read

    def shorten(self, n_bytes: int) -> None:
        """End the file here, where fewer bytes were needed than were asked for."""
        with self._refusals():
            calls.do(os.ftruncate, self._lock.descriptor, n_bytes, path=self._part)

    def finish(self) -> None:
        """Give the file its name, once its bytes are on the disk."""
        with self._refusals():
            calls.do(os.fsync, self._lock.descriptor, path=self._part)
            calls.do(os.replace, self._part, self.path, path=self.path)
            self._undo.pop_all()  # from here on there is no part to discard
            self._lock.release()
            calls.sync_folder(self.path.parent)  # its name outlives a power cut, too

    def discard(self) -> None:
        """Leave nothing behind but what stood under the name before; nothing when finished."""
        with suppress(OSError):
            self._undo.close()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.discard()

    def _refusals(self) -> AbstractContextManager[None]:
        return explained(
            f"'{self.path}' cannot be written ({self.n_bytes:,} bytes are needed)",
            advice=f"Nothing half-written is left under that name. {WRITABLE}",
        )


def write_whole(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    with WholeFile(path, n_bytes=len(data), mode=mode) as file:
        file.write(data)


def copy_whole(source: Path, target: Path) -> str:
    """Copy a file as it is read, all of it or nothing; return the SHA-256 of the copy."""
    with opened(source) as (file, stamp), WholeFile(target, n_bytes=stamp.size) as whole:
        while piece := file.read(_PIECE):
            whole.write(piece)
        whole.shorten(whole.at)
    return whole.digest.hexdigest()


def move_whole(source: Path, target: Path) -> None:
    """Give a file or folder another name on the same disk, and wait until the name is there."""
    with explained(f"'{source}' cannot be moved to '{target}'", advice=WRITABLE):
        calls.do(os.replace, source, target, path=target)
        # the rename alone may be lost in a power cut: then the source stands there again
        calls.sync_folder(target.parent)


def settle_names(folder: Path) -> None:
    with explained(f"'{folder}' cannot be written", advice=WRITABLE):
        calls.sync_folder(folder)


def make_folder(path: Path) -> None:
    """Make a folder and those above it, for their owner alone, and put their names on the disk."""
    with explained(f"the folder '{path}' cannot be made", advice=f"{WRITABLE} Or choose another."):
        if path.is_dir():
            return
        above = [folder for folder in path.parents if not folder.exists()]
        for folder in (*reversed(above), path):  # a name is worth nothing in a folder without one
            # for its owner alone; no parents, and none that is there already is refused
            calls.do(Path.mkdir, folder, 0o700, False, True, path=folder)  # noqa: FBT003
            calls.sync_folder(folder.parent)


def remove_tree(path: Path) -> None:
    """Delete a file or a folder, if it is there, and wait until its name is gone."""
    private = "It may hold private numbers; delete it yourself, then start again."
    with explained(f"'{path}' cannot be deleted", advice=private):
        _remove_all(path)
        if path.parent.is_dir():
            calls.sync_folder(path.parent)


def remove_left(folder: Path, *ends: str) -> None:
    """Delete what a process that died left half-written below a folder, whose lock is held."""
    with explained(f"the folder '{folder}' cannot be read", advice=READABLE):
        left = [path for end in (PART, *ends) for path in folder.rglob(f"*{end}")]
    for path in left:
        remove_tree(path)


def _remove_all(path: Path) -> None:
    """Delete what is in a folder before the folder; of a link only the link."""
    # from the inside out: a kill leaves a folder with less in it, which the next call deletes
    if path.is_dir() and not path.is_symlink():
        for inner in sorted(path.iterdir()):
            _remove_all(inner)
    with suppress(FileNotFoundError):
        calls.remove(path)


def require_room(folder: Path, n_bytes: int, *, what: str) -> None:
    free = shutil.disk_usage(folder).free
    if free < n_bytes:
        raise DiskError(
            f"{what} writes about {n_bytes / _MEGABYTE:,.0f} MB to '{folder}', whose disk has "
            f"{free / _MEGABYTE:,.0f} MB left. Make room there, or move the agreement's "
            "folder to a larger disk, and start again."
        )


def nameless_file(folder: Path) -> AbstractContextManager[IO[bytes]]:
    """Open a file without a name, which no crash leaves behind."""
    return tempfile.TemporaryFile(dir=folder)
