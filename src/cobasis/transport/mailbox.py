"""First contact: where somebody's key, and then the agreement, pass before anybody is enrolled.

An author invites a party with a code that holds a token, over a channel of their own. The server
is the analyst's, who must never come to have the secret sealed to a key of its own: so it knows a
token's hash only, and what passes is vouched for by HMAC under the token itself.
"""

import hashlib
import hmac
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cobasis.bundle.agreement_file import line_in
from cobasis.disk.whole import make_folder, read_whole, settle_names, write_whole
from cobasis.errors import CobasisError, RequestError, SignatureError
from cobasis.protocol.agreement import Digest, Moment, moment_of
from cobasis.protocol.enrolment import OneLine
from cobasis.transport.inbox import STATEMENTS
from cobasis.transport.wire import SMALL_BYTES

Slot = Literal["key", "agreement"]
SLOTS: dict[Slot, int] = {"key": SMALL_BYTES, "agreement": 2**20}
"""What passes, and how large it may be."""

INVITES = ".invites"
MAC_BYTES = 32
_A_MINUTE, _SECONDS = 10, 60


class Invites(OneLine):
    form = "cobasis/invites/1"
    what = "list of invitations"
    ask = "Ask the agreement's author for the .invites file that 'cobasis agreement new' writes."

    hashes: Annotated[list[Digest], Field(min_length=1, max_length=1000)]
    until: Moment


def address_of(token: bytes) -> str:
    return hashlib.sha256(token).hexdigest()


def vouched(token: bytes, data: bytes, *, slot: Slot) -> bytes:
    """Return data behind its HMAC, which only the two who have the token can make."""
    return _mac(token, slot, data) + data


def data_in(token: bytes, told: bytes, *, slot: Slot) -> bytes:
    """Return what `vouched` was given; SignatureError where somebody else made it."""
    mac, data = told[:MAC_BYTES], told[MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(token, slot, data)):
        raise SignatureError(
            f"the {slot} that lies at the server for this invitation was not put there by whoever "
            "has its code. Nothing of it is used. Tell the others, and begin again with new codes."
        )
    return data


def _mac(token: bytes, slot: Slot, data: bytes) -> bytes:
    return hmac.digest(token, b"cobasis/invite/1\0" + slot.encode() + b"\0" + data, "sha256")


class Mailbox:
    """Where the server keeps what passes: each slot is written once, and then only read."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._mail = folder, folder / STATEMENTS / "mail"
        self._times: dict[str, list[float]] = {}

    def place(self, address: str, slot: str) -> Path:
        """Return where something stands, or will; one RequestError for whoever is not invited."""
        now = datetime.now(UTC)
        for path in self._folder.glob(f"*{INVITES}"):
            with suppress(CobasisError):
                found = line_in(path, Invites)
                if slot in SLOTS and address in found.hashes and now <= moment_of(found.until):
                    return self._mail / f"{address}.{slot}"
        raise RequestError(
            "no such invitation is open here. A code holds for 14 days, and the analyst's server "
            "has to have the author's .invites file. The author makes new codes with --invite.",
            status=404,
        )

    def put(self, address: str, slot: Slot, *, data: bytes) -> None:
        place = self.place(address, slot)
        if place.exists():
            if read_whole(place) == data:
                settle_names(self._mail)  # whoever gave it its name may have died before that
                return
            raise RequestError(f"this invitation's {slot} is there, and is another.", status=409)
        make_folder(self._mail)
        write_whole(place, data)

    def refuse_haste(self, address: str) -> None:
        now = time.monotonic()
        last = [each for each in self._times.get(address, []) if now - each < _SECONDS]
        self._times[address] = [*last, now][-_A_MINUTE - 1 :]
        if len(last) >= _A_MINUTE:
            raise RequestError("that was ten times in a minute. Wait for one.", status=429)
