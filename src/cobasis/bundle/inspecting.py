"""What a bundle says of itself, without taking out what is in it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

from cobasis.bundle.enclosing import LENGTH_BYTES, MAGIC, SIGNATURE_BYTES
from cobasis.bundle.manifest import MAX_MANIFEST, Manifest, read_manifest, signed_message
from cobasis.bundle.sealing import Seal, look
from cobasis.disk.files import opened
from cobasis.errors import BundleError
from cobasis.protocol.enrolment import PublicIdentity, verify

_HEAD = len(MAGIC) + LENGTH_BYTES + MAX_MANIFEST + SIGNATURE_BYTES

_START = 2**16
_FORMAT = re.compile(r'"format": ?"cobasis/(\w+)/1"')
_ROUND = re.compile(r'^round_id *= *"', re.MULTILINE)
PlainKind = Literal["agreement", "identity", "news", "removal", "signature"]
PLAIN: dict[PlainKind, str] = {
    "agreement": "an agreement",
    "identity": "a public identity",
    "news": "the analyst's news of a round",
    "removal": "a certificate of removal",
    "signature": "a signature of an agreement",
}
"""Our files that are not sealed, in words."""

SignatureState = Literal["good", "wrong", "not enrolled", "not checked"]


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """What a bundle says of itself."""

    seal: Seal
    manifest: Manifest | None  # None without the key
    signature: SignatureState  # only what is "good" is to be believed


def inspect_bundle(
    path: Path,
    *,
    unseal: Callable[[BinaryIO, BinaryIO], None] | None = None,
    signers: Mapping[str, PublicIdentity] | None = None,
) -> Inspected:
    """Look at a bundle: from outside, or with a key also at its manifest."""
    seal = look(path)
    if unseal is None:
        return Inspected(seal=seal, manifest=None, signature="not checked")
    head = _Head()
    with opened(path) as (file, _):
        unseal(cast("BinaryIO", file), cast("BinaryIO", head))
    what = f"the bundle '{path.name}'"
    start = len(MAGIC) + LENGTH_BYTES
    length = int.from_bytes(head.data[len(MAGIC) : start], "little")
    if not head.data.startswith(MAGIC) or not 0 < length <= MAX_MANIFEST:
        raise BundleError(f"{what} is sealed, but holds no bundle. Ask its sender what it is.")
    text = bytes(head.data[start : start + length])
    signature = bytes(head.data[start + length : start + length + SIGNATURE_BYTES])
    manifest = read_manifest(text, what=what)
    state = _state(manifest.sender, text, signature, signers)
    return Inspected(seal=seal, manifest=manifest, signature=state)


def _state(
    sender: str,
    text: bytes,
    signature: bytes,
    signers: Mapping[str, PublicIdentity] | None,
) -> SignatureState:
    if signers is None:
        return "not checked"
    if sender not in signers:
        return "not enrolled"
    return "good" if verify(signers[sender], signed_message(text), signature=signature) else "wrong"


def plain_kind(path: Path) -> PlainKind | None:
    """Return what a file of ours is that was never sealed; None where it is none of those."""
    with opened(path) as (stream, _):
        start = stream.read(_START).decode("utf-8", errors="replace")
    if start.startswith("{") and (told := _FORMAT.search(start)):
        return cast("PlainKind", told[1]) if told[1] in PLAIN else None
    return "agreement" if _ROUND.search(start) else None


class _Head:
    """A stream that keeps its beginning, and forgets the rest."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes) -> int:
        if len(self.data) < _HEAD:
            self.data += data[: _HEAD - len(self.data)]
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""
