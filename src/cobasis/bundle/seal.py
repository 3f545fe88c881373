"""The outermost layer: age, to one or more X25519 recipients, as the age tool writes it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import pyrage

from cobasis.disk.whole import opened
from cobasis.errors import IdentityError, SealError

MAX_AGE_HEADER = 2**18  # bytes of an age header that are read: room for some 2,500 recipients

_MAGIC = b"age-encryption.org/v1\n"
_END = b"\n--- "
_DAMAGED = (
    "its seal is damaged, or the file is truncated or longer than it was. Have it copied, or "
    "sent, once more."
)


@contextmanager
def _witnessed(source: BinaryIO, target: BinaryIO) -> Iterator[tuple[object, object]]:
    """Give the library two streams, and raise what their reading or writing raised, if anything.

    The library tells it as text of an error of its own, or, where writing the last bytes fails, not
    at all. To flush the target is left to whoever owns it.
    """
    raised: list[BaseException] = []

    def noted(act: Callable[..., Any]) -> Callable[..., Any]:
        def acted(*told: object) -> Any:  # noqa: ANN401 -- what a stream gives
            try:
                return act(*told)
            except BaseException as error:
                raised.append(error)
                raise

        return acted

    writes = SimpleNamespace(write=noted(target.write), flush=lambda: None)
    try:
        yield SimpleNamespace(read=noted(source.read)), writes
    finally:
        if raised:
            raise raised[0] from None


def recipient_of(name: str, text: str) -> "pyrage.x25519.Recipient":
    try:
        return pyrage.x25519.Recipient.from_str(text)
    except pyrage.RecipientError:
        raise IdentityError(
            f"nobody can seal for '{name}': the 'age1...' of its public identity was changed, or "
            "not copied whole. Ask for its .pub again, and the author for a new agreement."
        ) from None


def encrypt(source: BinaryIO, target: BinaryIO, *, recipients: Mapping[str, str]) -> None:
    keys = [recipient_of(*each) for each in recipients.items()]
    with _witnessed(source, target) as streams:
        pyrage.encrypt_io(*streams, keys)


def decrypt(
    source: BinaryIO, target: BinaryIO, *, identities: "Sequence[pyrage.x25519.Identity]"
) -> None:
    with _witnessed(source, target) as streams:
        try:
            pyrage.decrypt_io(*streams, identities)
        except (pyrage.DecryptError, OSError) as error:
            other = "it is sealed for another key, as what you sent or what is for another party "
            other += "is, or its seal is damaged. Take the file that is for you; if this is, ask "
            other += "its sender to seal it for your enrolled public identity."
            reason = other if "No matching keys" in str(error) else _DAMAGED
            raise SealError(f"what was sealed cannot be opened: {reason}") from None


def look(path: Path) -> int:
    """Return for how many a file is sealed, which it says without a key; SealError for others."""
    with opened(path) as (file, _):
        start = file.read(MAX_AGE_HEADER)
    end = start.find(_END)
    if not start.startswith(_MAGIC):
        raise SealError(
            f"the file '{path.name}' is not sealed: it does not begin with "
            f"'{_MAGIC.decode().strip()}'. If it was sent to you like this, anybody could read it "
            "on its way: delete it, and tell its sender. If it was sealed, have it sent once more."
        )
    if end < 0:
        raise SealError(f"the file '{path.name}' cannot be opened: {_DAMAGED}")
    return start.count(b"\n-> X25519 ", 0, end)
