"""The system's calls that change a disk, each made through one place where tests can stop it.

Nothing outside this package makes them. So whoever numbers them here knows every moment at which a
process that dies leaves something else behind, and every call that a full disk can refuse. An
OSError passes through: whoever called says with `explained` what it means.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cobasis.errors import DiskError

READABLE = "Check the path, the disk it is on, and your rights to it."
WRITABLE = "Free some space, or check your rights to it, then start again."

_R = TypeVar("_R")

on_call: Callable[[Callable[..., Any], tuple[Any, ...], Path], Any] | None = None
"""Makes each call instead: is given it, what it is told, and whose it is. None but in tests."""


@contextmanager
def explained(what: str, *, advice: str) -> Iterator[None]:
    """Raise a DiskError that says what failed and what to do, where the system refuses a call."""
    try:
        yield
    except OSError as error:
        raise DiskError(f"{what}: {error.strerror or error}. {advice}") from error


def do(call: Callable[..., _R], *told: object, path: Path) -> _R:
    """Make a call, unless a test makes it, or lets it fail, or ends the process around it."""
    if on_call is None:
        return call(*told)
    made: _R = on_call(call, told, path)
    return made


def open_file(path: Path, flags: int) -> int:
    """Open a file, or a folder; a new one is for its owner alone."""
    return do(os.open, path, flags, 0o600, path=path)


def lock(descriptor: int, *, path: Path, wait: bool) -> None:
    """Lock an open file or folder; BlockingIOError where another process has it and none waits."""
    do(fcntl.flock, descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), path=path)


def reserve(descriptor: int, n_bytes: int, *, path: Path) -> None:
    """Make a file as long as it will be, on disks that can say now that they are too full."""
    if hasattr(os, "posix_fallocate") and n_bytes:
        do(os.posix_fallocate, descriptor, 0, n_bytes, path=path)
    else:
        do(os.ftruncate, descriptor, n_bytes, path=path)


def write(descriptor: int, data: bytes | memoryview, *, offset: int, path: Path) -> None:
    rest = memoryview(data)
    while rest:
        written = do(os.pwrite, descriptor, rest, offset, path=path)
        rest, offset = rest[written:], offset + written


def sync_folder(path: Path) -> None:
    """Wait until a folder's names are on the disk."""
    descriptor = open_file(path, os.O_RDONLY)
    try:
        do(os.fsync, descriptor, path=path)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Delete a file's name, or an empty folder."""
    folder = path.is_dir() and not path.is_symlink()
    do(os.rmdir if folder else os.unlink, path, path=path)
