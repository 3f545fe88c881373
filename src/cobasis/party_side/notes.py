"""What a party notes for its own later commands of a round; sealed for itself."""

import json

from cobasis.disk.files import opened
from cobasis.disk.whole import write_whole
from cobasis.errors import VaultError
from cobasis.party_side.desk import NOTES, PartyDesk


def note(desk: PartyDesk, **facts: str) -> None:
    """Add facts to a round's notes, in place of those of the same names."""
    text = json.dumps({**notes(desk), **facts}, sort_keys=True)
    write_whole(desk.work / NOTES, desk.identity.seal_for_self(text.encode()))


def notes(desk: PartyDesk) -> dict[str, str]:
    """Return a round's notes; none before the first."""
    path = desk.work / NOTES
    if not path.exists():
        return {}
    with opened(path) as (file, _):
        sealed = file.readall()
    try:
        found: dict[str, str] = json.loads(desk.identity.unseal_own(sealed))
    except ValueError as error:
        raise VaultError(
            f"the notes '{path}' of party '{desk.name}' cannot be used: they are damaged or were "
            "made with another key. Put the home folder back from a copy, or delete this file."
        ) from error
    return found
