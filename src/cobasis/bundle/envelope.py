"""Bundles: what another side sent, opened as if an enemy had sent it.

The format, on one page: ``docs/reference/bundle-format.md``. ``enclosure.py`` writes it. One part
is one zstd frame. The library's one-call ``decompress`` ignores a limit when the frame declares its
size, and its readers do not tell where a frame ends. So a frame is walked block by block, each of
which makes 128 KiB at most, whatever it claims.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO, FileIO
from pathlib import Path
from typing import BinaryIO, Literal, cast

import zstandard

from cobasis.bundle.enclosure import LENGTH_BYTES, MAGIC, SIGNATURE_BYTES
from cobasis.bundle.manifest import (
    MAX_MANIFEST,
    Expected,
    Manifest,
    Part,
    read_manifest,
    refuse,
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
from cobasis.errors import DiskError, SealError, SignatureError
from cobasis.protocol.enrolment import PublicIdentity, verify

MAX_BYTES = 2**34
"""How much of a bundle is read before it is refused: all parts together, in the folder."""

MAX_WINDOW = 2**23
"""What a zstd frame may ask of the memory of whoever reads it."""

_ZSTD = b"\x28\xb5\x2f\xfd"
_MAX_BLOCK, _CHECKSUM = 2**17, 4
_RLE, _RESERVED = 1, 3
_UNUSED = 0b11000
"""Bits of a frame's descriptor that every writer leaves zero, and readers may overlook."""

_SEALING = 2**22
"""More than sealing, manifest and frames add to parts that do not compress, in a thousandth."""


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A bundle that was opened: its signature, its sizes and its digests are right."""

    manifest: Manifest
    parts: Mapping[str, Path] = field(repr=False)  # where they stand now, by name
    digest: str  # SHA-256 of the sealed file
    path: Path

    @property
    def what(self) -> str:
        """What to call it in an error."""
        return f"the bundle '{self.path.name}' of '{self.manifest.sender}'"

    def discard(self) -> None:
        """Delete the opened parts; the sealed file stays."""
        for part in self.parts.values():
            with suppress(DiskError):
                remove_tree(part)


def open_bundle(
    path: Path,
    *,
    unseal: Callable[[BinaryIO, BinaryIO], None],
    signer: Mapping[str, PublicIdentity],
    into: Path,
    expected: Expected | None = None,
    max_bytes: int = MAX_BYTES,
) -> Bundle:
    """Open a bundle: unseal it, check its signature and its manifest, and store its parts.

    When anything is raised, Ctrl-C included, no part of it stands in `into`. The plain stream
    lies in a file without a name meanwhile, which no crash leaves behind.
    """
    what = f"the bundle '{path.name}'"
    n_bytes = look(path).n_bytes
    if n_bytes > max_bytes + max_bytes // 1000 + _SEALING:
        refuse(what, f"its {n_bytes:,} bytes are more than the {max_bytes:,} that are read")
    with _folder(into), nameless_file(into) as file:
        plain = cast("BinaryIO", file)
        digest = _unsealed(path, plain, unseal=unseal, into=into, what=what)
        manifest = _manifest(plain, signer=signer, what=what)
        (expected or Expected()).check(manifest, what=what)
        total = sum(part.n_bytes for part in manifest.parts)
        if total > max_bytes:
            refuse(what, f"its parts' {total:,} bytes are more than the {max_bytes:,} read")
        _extract(plain, manifest, into=into, what=what)
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


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in what a key says, which sees a stream."""
    try:
        yield
    except SealError as error:
        told = str(error.args[0]).replace("what was sealed", f"'{path.name}'", 1)
        raise SealError(told) from None


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
        with _explained(into), _named(path):
            unseal(cast("BinaryIO", source), plain)
        if source.read(1):
            raise SealError(f"{what} is longer than its seal. Have it copied, or sent, once more.")
        refuse_changed(Stamp.of(os.fstat(file.fileno())), stamp, what=what)
    refuse_changed(stamp_of(path), stamp, what=what)
    plain.seek(0)
    return source.digest.hexdigest()


def _header(plain: BinaryIO, *, what: str) -> tuple[bytes, bytes]:
    """Read the manifest's text and its signature from the beginning of a plain stream."""
    start = plain.read(len(MAGIC) + LENGTH_BYTES)
    if not start.startswith(MAGIC):
        refuse(what, f"it does not begin with '{MAGIC.decode().strip()}'")
    length = int.from_bytes(start[len(MAGIC) :], "little")
    if not 0 < length <= MAX_MANIFEST:
        refuse(what, f"its manifest of {length:,} bytes is not 1 to {MAX_MANIFEST:,} bytes long")
    return plain.read(length), plain.read(SIGNATURE_BYTES)


def _signed(
    plain: BinaryIO, signers: Mapping[str, PublicIdentity], *, what: str
) -> tuple[Manifest, PublicIdentity | None, bool]:
    """Read the manifest: with the key of who sent it, if known, and whether they signed it."""
    text, signature = _header(plain, what=what)
    manifest = read_manifest(text, what=what)
    sender = signers.get(manifest.sender)
    good = sender is not None and verify(sender, signed_message(text), signature=signature)
    return manifest, sender, good


def _manifest(plain: BinaryIO, *, signer: Mapping[str, PublicIdentity], what: str) -> Manifest:
    """Read the manifest, and believe it when its sender's signature is right."""
    manifest, sender, good = _signed(plain, signer, what=what)
    if sender is None:
        raise SignatureError(
            f"{what} says that it is from '{manifest.sender}', who is not among the enrolled keys "
            "that it may be from, or whose key was revoked. Compare fingerprints with its sender."
        )
    if not good:
        raise SignatureError(
            f"{what} says that it is from '{manifest.sender}', and is not signed with the key "
            f"that is enrolled for them ({sender.fingerprint}). Ask them, over another channel, "
            "whether they sent it and whether their key is a new one."
        )
    return manifest


def _extract(plain: BinaryIO, manifest: Manifest, *, into: Path, what: str) -> None:
    """Store every part; give them their names when all are right."""
    at = plain.tell()
    expected, found = at + sum(part.stored_bytes for part in manifest.parts), plain.seek(0, 2)
    if found != expected:
        refuse(what, f"it is {found:,} bytes long inside, and its manifest says {expected:,}")
    plain.seek(at)
    with ExitStack() as whole:
        files = []
        for part in manifest.parts:
            file = WholeFile(into / part.name, n_bytes=part.n_bytes)
            whole.callback(file.discard)
            files.append(file)
            _store(plain, file, part=part, what=f"the part {part.name} of {what}")
        # no part has a name before the last one's digest was right; a kill between two names leaves
        # some of them in a folder that the next opening, or the command's next start, clears
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
        refuse(what, "its digest is not the one that its manifest says")


def decompress(
    source: BinaryIO, write: Callable[[bytes], None], *, stored_bytes: int, n_bytes: int, what: str
) -> None:
    """Decompress one frame of known size, and nothing behind it."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()
    made = 0
    try:
        for piece in _blocks(source, stored_bytes=stored_bytes, n_bytes=n_bytes, what=what):
            plain = unpacker.decompress(piece)
            made += len(plain)
            if made > n_bytes:
                refuse(what, f"it holds more than the {n_bytes:,} bytes that it declares")
            write(plain)
    except zstandard.ZstdError:
        refuse(what, "it is no zstd frame, or damaged")
    if made != n_bytes or not unpacker.eof:
        refuse(what, f"it holds {made:,} bytes instead of {n_bytes:,}")


def _blocks(source: BinaryIO, *, stored_bytes: int, n_bytes: int, what: str) -> Iterator[bytes]:
    """Yield exactly one frame: its header, then block by block."""
    left = stored_bytes

    def take(count: int) -> bytes:
        nonlocal left
        data = source.read(count) if count <= left else b""
        if len(data) != count:
            refuse(what, "it is truncated")
        left -= count
        return data

    start = take(5)
    if not start.startswith(_ZSTD) or start[4] & _UNUSED:
        refuse(what, "it is no zstd frame")
    start += take(zstandard.frame_header_size(start) - len(start))
    says = zstandard.get_frame_parameters(start)
    if says.content_size != n_bytes or says.dict_id:
        refuse(what, f"its frame does not declare {n_bytes:,} bytes, or needs a dictionary")
    yield start
    last = False
    while not last:
        head = take(3)
        told = int.from_bytes(head, "little")
        last, kind, size = bool(told & 1), told >> 1 & 3, told >> 3
        if kind == _RESERVED or size > _MAX_BLOCK:
            refuse(what, "one of its blocks is none")
        yield head + take(1 if kind == _RLE else size)
    if says.has_checksum:
        yield take(_CHECKSUM)
    if left:
        refuse(what, f"{left:,} bytes stand behind its frame")


_HEAD = len(MAGIC) + LENGTH_BYTES + MAX_MANIFEST + SIGNATURE_BYTES

_START = 2**16
_FORMAT = re.compile(r'"format": ?"cobasis/(\w+)/1"')
_ROUND = re.compile(r'^round_id *= *"', re.MULTILINE)
PLAIN = {
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
    with opened(path) as (file, _), _named(path):
        unseal(cast("BinaryIO", file), head)
    head.seek(0)
    manifest, sender, good = _signed(head, signers or {}, what=f"the bundle '{path.name}'")
    state: SignatureState = "not checked" if signers is None else "not enrolled"
    if sender is not None:
        state = "good" if good else "wrong"
    return Inspected(seal=seal, manifest=manifest, signature=state)


def plain_kind(path: Path) -> str | None:
    """Return what a file of ours is that was never sealed; None where it is none of those."""
    with opened(path) as (stream, _):
        start = stream.read(_START).decode("utf-8", errors="replace")
    if start.startswith("{") and (told := _FORMAT.search(start)):
        return told[1] if told[1] in PLAIN else None
    return "agreement" if _ROUND.search(start) else None


class _Head(BytesIO):
    """A stream that keeps its beginning, and forgets the rest."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        super().write(data[: max(0, _HEAD - self.tell())])
        return len(data)
