"""A lock on a file or a folder; the system frees it when the process that has it dies.

It is a flock on the thing itself, not a file beside it: nothing is left that a kill would make
stale, and nobody has to guess whether the process that wrote a number into it still lives.
"""

import os
import stat
from contextlib import AbstractContextManager
from pathlib import Path

from cobasis.disk import calls
from cobasis.errors import AnotherRunError, DiskError


class Lock(AbstractContextManager["Lock"]):
    """A file or folder that this process alone has; a file that is not there is made.

    Where another process has it, this raises AnotherRunError, or waits.
    """

    def __init__(self, path: Path, *, what: str, wait: bool = False) -> None:
        self.path, self._what = path, what
        with self._refusals():
            while not self._taken(wait=wait):
                if not wait:
                    raise AnotherRunError(
                        f"another process writes to {what} right now. Two at a time would mix "
                        "their work. Wait for it, then start again, or choose another place."
                    )

    def _taken(self, *, wait: bool) -> bool:
        """Open and lock; False where another has it, or renamed or deleted it meanwhile."""
        # a pipe that somebody put there is opened without waiting for its other end, then refused
        own = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | getattr(os, "O_NONBLOCK", 0)
        flags = os.O_RDONLY if self.path.is_dir() else own
        self.descriptor = calls.open_file(self.path, flags)
        taken = False
        try:
            found = os.fstat(self.descriptor)
            if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
                raise DiskError(
                    f"'{self.path}' cannot be written: it is no file. Choose another name."
                )
            calls.lock(self.descriptor, path=self.path, wait=wait)
            # who had it before may have given the file its final name, or deleted the folder: then
            # this lock is on something that nobody else will open any more, and is worth nothing
            taken = self.path.stat().st_ino == found.st_ino
        except (BlockingIOError, FileNotFoundError):
            return False
        finally:
            if not taken:
                self.release()
        return taken

    @property
    def n_bytes(self) -> int:
        return os.fstat(self.descriptor).st_size

    def write(self, data: bytes, *, offset: int) -> None:
        with self._refusals():
            calls.write(self.descriptor, data, offset=offset, path=self.path)

    def settle(self) -> None:
        with self._refusals():
            calls.do(os.fsync, self.descriptor, path=self.path)

    def shorten(self, n_bytes: int) -> None:
        """End the file here, and sync it."""
        with self._refusals():
            calls.do(os.ftruncate, self.descriptor, n_bytes, path=self.path)
        self.settle()

    def _refusals(self) -> AbstractContextManager[None]:
        return calls.explained(f"{self._what} cannot be written", advice=calls.WRITABLE)

    def release(self) -> None:
        os.close(self.descriptor)

    def __exit__(self, *raised: object) -> None:
        self.release()
