"""One command at a time in a party's work folder, which starts without what a killed one left."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from cobasis.disk.files import made_folder
from cobasis.disk.whole import remove_tree
from cobasis.errors import AnotherRunError, DiskError
from cobasis.party_side.desk import MARKS, NOTES, PartyDesk


@contextmanager
def alone(desk: PartyDesk) -> Iterator[None]:
    """Keep other commands out of the work folder, and clear what a killed one left in it.

    The system lets go of the lock when a process dies, however it dies. Of what is in the folder,
    only notes and marks outlive a command, and both are sealed.
    """
    made_folder(desk.work)
    try:
        descriptor = os.open(desk.work, os.O_RDONLY)
    except OSError as error:
        raise DiskError(
            f"the work folder '{desk.work}' cannot be opened: {error.strerror}. Check the disk and "
            "your rights to it, then start again."
        ) from error
    try:
        _take(desk, descriptor)
        for path in sorted(desk.work.iterdir()):
            if path.name not in {MARKS, NOTES}:
                remove_tree(path)
        yield
    finally:
        os.close(descriptor)


def _take(desk: PartyDesk, descriptor: int) -> None:
    """Lock the folder; AnotherRunError at once where somebody has it, or has just deleted it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = desk.work.stat().st_ino == os.fstat(descriptor).st_ino
    except (BlockingIOError, FileNotFoundError):
        named = False
    if not named:
        raise AnotherRunError(
            f"another command of party '{desk.name}' is at work in round "
            f"'{desk.agreement.round_id}', in '{desk.work}'. Two at a time would mix their files. "
            "Wait for it, then start again."
        )
