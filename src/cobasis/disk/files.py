"""Files that are read exactly or not at all; ``whole.py`` writes them.

Nothing is memory-mapped: a mapped page counts as this process's memory, and a file that
shrinks under a mapping kills the process instead of raising an error.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cobasis.disk import calls
from cobasis.errors import DiskError, FileChangedError


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
        descriptor = calls.open_file(Path(path), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
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


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    with opened(path) as (file, _):
        return hashlib.file_digest(file, "sha256").hexdigest()


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
        rest = bytes_of(array)
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


def bytes_of(array: npt.NDArray[Any]) -> memoryview:
    """Return a contiguous array's own bytes."""
    return array.reshape(-1).view(np.uint8).data


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
