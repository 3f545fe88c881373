"""The system's calls that change a disk; each tells a hook once it is done.

Nothing outside this package makes them. So the hook sees every moment at which a process that dies
leaves something else behind, and tests end it after each. An OSError passes through: whoever
called says what it means.
"""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

on_call: Callable[[str, Path], None] | None = None
"""Is told the call's name and whose it was; None, always, but in tests."""


def _told(call: str, path: Path) -> None:
    if on_call is not None:
        on_call(call, path)


def make(folder: Path) -> None:
    """Make a folder for its owner alone."""
    folder.mkdir(mode=0o700, exist_ok=True)
    _told("make", folder)


def lock(descriptor: int, *, path: Path, wait: bool) -> None:
    """Lock an open file or folder; BlockingIOError where another process has it and none waits."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    _told("lock", path)


def reserve(descriptor: int, n_bytes: int, *, path: Path) -> None:
    """Make a file as long as it will be, on disks that can say now that they are too full."""
    if hasattr(os, "posix_fallocate") and n_bytes:
        os.posix_fallocate(descriptor, 0, n_bytes)
    else:
        os.ftruncate(descriptor, n_bytes)
    _told("reserve", path)


def shorten(descriptor: int, n_bytes: int, *, path: Path) -> None:
    """End a file here."""
    os.ftruncate(descriptor, n_bytes)
    _told("shorten", path)


def write(descriptor: int, data: bytes | memoryview, *, offset: int, path: Path) -> None:
    """Write all of some bytes at a place."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written
        _told("write", path)


def sync(descriptor: int, *, path: Path) -> None:
    """Wait until a file's bytes are on the disk."""
    os.fsync(descriptor)
    _told("sync", path)


def sync_folder(path: Path) -> None:
    """Wait until a folder's names are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync(descriptor, path=path)
    finally:
        os.close(descriptor)


def rename(source: Path, target: Path) -> None:
    """Give a file or a folder another name, at one moment."""
    source.replace(target)
    _told("rename", target)


def remove(path: Path) -> None:
    """Delete a file's name, or an empty folder."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
    _told("remove", path)
