"""Bundles: what another side sent, opened as if an enemy had sent it.

The format, on one page: ``docs/reference/bundle-format.md``. ``enclosure.py`` writes it.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn, cast

from cobasis.bundle.enclosure import (
    LENGTH_BYTES,
    MAGIC,
    SIGNATURE_BYTES,
    Written,
    write_bundle,
)
from cobasis.bundle.frames import decompress
from cobasis.bundle.manifest import (
    MAX_MANIFEST,
    Draft,
    Expected,
    Manifest,
    Part,
    read_manifest,
    signed_message,
)
from cobasis.bundle.seal import Seal, look
from cobasis.disk.calls import WRITABLE, explained
from cobasis.disk.whole import (
    Stamp,
    WholeFile,
    make_folder,
    nameless_file,
    opened,
    refuse_changed,
    remove_tree,
    stamp_of,
)
from cobasis.errors import BundleError, DiskError, SealError, SignatureError
from cobasis.protocol.enrolment import PublicIdentity, verify

__all__ = [
    "Bundle",
    "Draft",
    "Expected",
    "Limits",
    "Manifest",
    "Part",
    "Seal",
    "Written",
    "look",
    "open_bundle",
    "write_bundle",
]

_SEALING = 2**22
"""More than sealing, manifest and frames add to parts that do not compress, in a thousandth."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much of a bundle is read before it is refused."""

    n_bytes: int = 2**34  # all parts together, as they stand in the folder


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A bundle that was opened: its signature, its sizes and its digests are right."""

    manifest: Manifest
    parts: Mapping[str, Path] = field(repr=False)  # where they stand now, by name
    digest: str  # SHA-256 of the sealed file
    path: Path

    def discard(self) -> None:
        """Delete the opened parts; the sealed file stays."""
        for part in self.parts.values():
            with suppress(DiskError):
                remove_tree(part)


def open_bundle(
    path: Path,
    *,
    unseal: Callable[[BinaryIO, BinaryIO], None],
    signer: PublicIdentity | Mapping[str, PublicIdentity],
    into: Path,
    expected: Expected | None = None,
    limits: Limits | None = None,
) -> Bundle:
    """Open a bundle: unseal it, check its signature and its manifest, and store its parts.

    When anything is raised, Ctrl-C included, no part of it stands in `into`. The plain stream
    lies in a file without a name meanwhile, which no crash leaves behind.
    """
    what = f"the bundle '{path.name}'"
    limits = limits or Limits()
    n_bytes = look(path).n_bytes
    if n_bytes > limits.n_bytes + limits.n_bytes // 1000 + _SEALING:
        _refuse(what, f"its {n_bytes:,} bytes are more than the {limits.n_bytes:,} that are read")
    with _folder(into), nameless_file(into) as plain:
        digest = _unsealed(path, cast("BinaryIO", plain), unseal=unseal, into=into, what=what)
        manifest = _manifest(cast("BinaryIO", plain), signer=signer, what=what)
        (expected or Expected()).check(manifest, what=what)
        total = sum(part.n_bytes for part in manifest.parts)
        if total > limits.n_bytes:
            _refuse(what, f"its parts' {total:,} bytes are more than the {limits.n_bytes:,} read")
        _refuse_length(cast("BinaryIO", plain), manifest, what=what)
        _extract(cast("BinaryIO", plain), manifest, into=into, what=what)
    places = {part.name: into / part.name for part in manifest.parts}
    return Bundle(manifest=manifest, parts=places, digest=digest, path=path)


@contextmanager
def _folder(into: Path) -> Iterator[None]:
    """Make the folder, take it away again after a refusal, and say what a full disk means."""
    made = not into.exists()
    try:
        with _explained(into):
            make_folder(into)
            yield
    except BaseException:
        if made:
            with suppress(DiskError):
                remove_tree(into)
        raise


def _explained(into: Path) -> AbstractContextManager[None]:
    return explained(
        f"a bundle cannot be opened into '{into}'",
        advice=f"Nothing of it is left there. {WRITABLE}",
    )


class _Sealed:
    """A file's bytes, hashed as they are read."""

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, n_bytes: int = -1) -> bytes:
        data: bytes = self._file.read(n_bytes)
        self.digest.update(data)
        return data


def _unsealed(
    path: Path,
    plain: BinaryIO,
    *,
    unseal: Callable[[BinaryIO, BinaryIO], None],
    into: Path,
    what: str,
) -> str:
    """Write the plain stream into `plain`, and return the digest of the sealed one."""
    with opened(path) as (file, stamp):
        source = _Sealed(file)
        with _explained(into):
            unseal(cast("BinaryIO", source), plain)
        if source.read(1):
            raise SealError(f"{what} is longer than its seal. Have it copied, or sent, once more.")
        refuse_changed(Stamp.of(os.fstat(file.fileno())), stamp, what=what)
    refuse_changed(stamp_of(path), stamp, what=what)
    plain.seek(0)
    return source.digest.hexdigest()


def _manifest(
    plain: BinaryIO, *, signer: PublicIdentity | Mapping[str, PublicIdentity], what: str
) -> Manifest:
    """Read the manifest, and believe it when its sender's signature is right."""
    start = plain.read(len(MAGIC) + LENGTH_BYTES)
    if not start.startswith(MAGIC):
        _refuse(what, f"it does not begin with '{MAGIC.decode().strip()}'")
    length = int.from_bytes(start[len(MAGIC) :], "little")
    if not 0 < length <= MAX_MANIFEST:
        _refuse(what, f"its manifest of {length:,} bytes is not 1 to {MAX_MANIFEST:,} bytes long")
    text, signature = plain.read(length), plain.read(SIGNATURE_BYTES)
    manifest = read_manifest(text, what=what)
    known = {signer.name: signer} if isinstance(signer, PublicIdentity) else signer
    sender = known.get(manifest.sender)
    if sender is None:
        raise SignatureError(
            f"{what} says that it is from '{manifest.sender}', who is not among the enrolled keys "
            "that it may be from, or whose key was revoked. Compare fingerprints with its sender."
        )
    if not verify(sender, signed_message(text), signature=signature):
        raise SignatureError(
            f"{what} says that it is from '{manifest.sender}', and is not signed with the key "
            f"that is enrolled for them ({sender.fingerprint}). Ask them, over another channel, "
            "whether they sent it and whether their key is a new one."
        )
    return manifest


def _refuse_length(plain: BinaryIO, manifest: Manifest, *, what: str) -> None:
    """Raise BundleError unless the stream is as long as header and parts together."""
    at = plain.tell()
    expected = at + sum(part.stored_bytes for part in manifest.parts)
    found = plain.seek(0, os.SEEK_END)
    if found != expected:
        _refuse(what, f"it is {found:,} bytes long inside, and its manifest says {expected:,}")
    plain.seek(at)


def _extract(plain: BinaryIO, manifest: Manifest, *, into: Path, what: str) -> None:
    """Store every part; give them their names when all are right."""
    with ExitStack() as whole:
        files = []
        for part in manifest.parts:
            file = WholeFile(into / part.name, n_bytes=part.n_bytes)
            whole.callback(file.discard)
            files.append(file)
            _store(plain, file, part=part, what=f"the part {part.name} of {what}")
        done: list[Path] = []
        try:
            for file in files:
                file.finish()
                done.append(file.path)
        except BaseException:
            for path in done:
                remove_tree(path)
            raise


def _store(plain: BinaryIO, file: WholeFile, *, part: Part, what: str) -> None:
    """Write one part's bytes and compare their digest."""
    digest, at = hashlib.sha256(), 0

    def write(data: bytes) -> None:
        nonlocal at
        digest.update(data)
        file.write(data, offset=at)
        at += len(data)

    decompress(plain, write, stored_bytes=part.stored_bytes, n_bytes=part.n_bytes, what=what)
    if digest.hexdigest() != part.sha256:
        _refuse(what, "its digest is not the one that its manifest says")


def _refuse(what: str, reason: str) -> NoReturn:
    raise BundleError(f"{what} cannot be used: {reason}. Ask its sender for a new one.")


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
