"""One command at a time in a party's work folder, which starts without what a killed one left."""

from collections.abc import Iterator
from contextlib import contextmanager

from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, remove_tree
from cobasis.party_side.desk import MARKS, NOTES, PartyDesk


@contextmanager
def alone(desk: PartyDesk) -> Iterator[None]:
    """Keep other commands out of the work folder, and clear what a killed one left in it.

    The system lets go of the lock when a process dies, however it dies. Of what is in the folder,
    only notes and marks outlive a command, and both are sealed.
    """
    make_folder(desk.work)
    busy = (
        f"another command of party '{desk.name}' is at work in round '{desk.agreement.round_id}', "
        f"in '{desk.work}'. Two at a time would mix their files. Wait for it, then start again."
    )
    with Lock(desk.work, what=f"the work folder '{desk.work}'", busy=busy):
        for path in sorted(desk.work.iterdir()):
            if path.name not in {MARKS, NOTES}:
                remove_tree(path)
        yield
