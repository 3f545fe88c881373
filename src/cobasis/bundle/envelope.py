"""Bundles: what another side sent, opened as if an enemy had sent it.

The format, on one page: ``docs/reference/bundle-format.md``. ``enclosure.py`` writes it.
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

from cobasis.bundle.enclosure import LENGTH_BYTES, MAGIC, SIGNATURE_BYTES, STEP
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

MAX_IN_MEMORY = 2**16  # how much of a bundle is read that is opened in memory
_SEALING = 2**22  # more than sealing and manifest add to parts, in a thousandth

_PIECE = 2**20


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
    with _folder(into), nameless_file(into) as file:
        plain = cast("BinaryIO", file)
        digest = _unsealed(path, plain, unseal=unseal, into=into, max_bytes=max_bytes)
        manifest = _manifest(plain, signer=signer, expected=expected, what=what)
        _refuse_other_size(plain, manifest, max_bytes=max_bytes, what=what)
        _extract(plain, manifest, into=into, what=what)
    places = {part.name: into / part.name for part in manifest.parts}
    return Bundle(manifest=manifest, parts=places, digest=digest, path=path)


def open_in_memory(
    path: Path,
    *,
    unseal: Callable[[BinaryIO, BinaryIO], None],
    signer: Mapping[str, PublicIdentity],
    expected: Expected,
) -> tuple[Manifest, bytes, str]:
    """Open a small bundle of one part as `open_bundle` does, none of it reaching a disk.

    Its manifest, its part's bytes, and the sealed file's digest.
    """
    what, plain, limit = f"the bundle '{path.name}'", BytesIO(), MAX_IN_MEMORY
    digest = _unsealed(path, plain, unseal=unseal, into=path.parent, max_bytes=limit)
    manifest = _manifest(plain, signer=signer, expected=expected, what=what)
    _refuse_other_size(plain, manifest, max_bytes=limit, what=what)
    return manifest, b"".join(_pieces(plain, manifest.parts[0], what=what)), digest


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
    max_bytes: int,
) -> str:
    """Write the plain stream into `plain`, and return the digest of the sealed one."""
    what = f"the bundle '{path.name}'"
    n_bytes = look(path).n_bytes
    if n_bytes > max_bytes + max_bytes // 1000 + _SEALING:
        refuse(what, f"its {n_bytes:,} bytes are more than the {max_bytes:,} that are read")
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


def _signed(
    plain: BinaryIO, signers: Mapping[str, PublicIdentity], *, what: str
) -> tuple[Manifest, PublicIdentity | None, bool]:
    """Read the manifest: with the key of who sent it, if known, and whether they signed it."""
    start = plain.read(len(MAGIC) + LENGTH_BYTES)
    if not start.startswith(MAGIC):
        refuse(what, f"it does not begin with '{MAGIC.decode().strip()}'")
    length = int.from_bytes(start[len(MAGIC) :], "little")
    if not 0 < length <= MAX_MANIFEST:
        refuse(what, f"its manifest of {length:,} bytes is not 1 to {MAX_MANIFEST:,} bytes long")
    text, signature = plain.read(length), plain.read(SIGNATURE_BYTES)
    manifest = read_manifest(text, what=what)
    sender = signers.get(manifest.sender)
    good = sender is not None and verify(sender, signed_message(text), signature=signature)
    return manifest, sender, good


def _manifest(
    plain: BinaryIO, *, signer: Mapping[str, PublicIdentity], expected: Expected | None, what: str
) -> Manifest:
    """Read the manifest, believe it when its sender's signature is right, and check it."""
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
    (expected or Expected()).check(manifest, what=what)
    return manifest


def _refuse_other_size(plain: BinaryIO, manifest: Manifest, *, max_bytes: int, what: str) -> None:
    """Raise BundleError unless parts of the size that was said, and zeros to a step, follow."""
    at, size = plain.tell(), sum(part.n_bytes for part in manifest.parts)
    if size > max_bytes:
        refuse(what, f"its parts' {size:,} bytes are more than the {max_bytes:,} read")
    filling = -(at + size) % STEP
    found = plain.seek(0, os.SEEK_END)
    if found != (end := at + size + filling):
        refuse(what, f"it is {found:,} bytes long inside, and its manifest says {end:,}")
    plain.seek(at + size)
    if plain.read() != bytes(filling):  # else one upload could be many files
        refuse(what, "what fills its last step is not zeros")
    plain.seek(at)


def _extract(plain: BinaryIO, manifest: Manifest, *, into: Path, what: str) -> None:
    """Store every part; give them their names when all are right."""
    with ExitStack() as whole:
        files = []
        for part in manifest.parts:
            file, at = WholeFile(into / part.name, n_bytes=part.n_bytes), 0
            whole.callback(file.discard)
            files.append(file)
            for data in _pieces(plain, part, what=what):
                file.write(data, offset=at)
                at += len(data)
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


def _pieces(plain: BinaryIO, part: Part, *, what: str) -> Iterator[bytes]:
    """Yield one part's bytes and compare their digest."""
    digest, left = hashlib.sha256(), part.n_bytes
    while left:
        data = plain.read(min(left, _PIECE))
        digest.update(data)
        yield data
        left -= len(data)
    if digest.hexdigest() != part.sha256:
        what = f"the part {part.name} of {what}"
        refuse(what, "its digest is not the one that its manifest says")


_HEAD = len(MAGIC) + LENGTH_BYTES + MAX_MANIFEST + SIGNATURE_BYTES

_START = 2**16
_FORMAT = re.compile(r'"format": ?"cobasis/(\w+)/1"')
_ROUND = re.compile(r'^round_id *= *"', re.MULTILINE)
PLAIN = {
    "agreement": "an agreement",
    "approval": "an officer's approval",
    "identity": "a public identity",
    "news": "the analyst's news of a round",
    "removal": "a certificate of removal",
    "revocation": "a revocation of a key",
    "signature": "a signature of an agreement",
    "succession": "an earlier key's word for a newer one",
    "word": "a party's word on a model",
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
