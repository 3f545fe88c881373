"""Bundles: written in one stream, whole or not there, and opened as if an enemy had sent them.

The format, on one page: ``docs/reference/bundle-format.md``.
"""

import hashlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from cobasis.bundle.manifest import (
    FORMAT,
    MAX_MANIFEST,
    Expected,
    Manifest,
    Part,
    make_manifest,
    read_manifest,
    refuse,
    signed_message,
)
from cobasis.bundle.seal import encrypt, look
from cobasis.disk.calls import WRITABLE, explained
from cobasis.disk.whole import (
    Stamp,
    WholeFile,
    make_folder,
    nameless_file,
    opened,
    refuse_changed,
    stamp_of,
)
from cobasis.errors import DiskError, FileChangedError, SealError, SecretError, SignatureError
from cobasis.protocol.agreement import moment_text
from cobasis.protocol.enrolment import PublicIdentity, verify

MAGIC = FORMAT.encode() + b"\n"
LENGTH_BYTES, SIGNATURE_BYTES = 4, 64

STEP = 4096
"""A container is so many bytes long, or a multiple: nothing is compressed and its end is filled, so
that its size tells the shapes of what is in it and nothing of the numbers."""

MAX_BYTES = 2**34
"""How much of a bundle is read before it is refused: all parts together, in the folder."""

MAX_IN_MEMORY = 2**16  # how much of a bundle is read that is opened in memory
_SEALING = 2**22  # more than sealing and manifest add to parts, in a thousandth

_PIECE = 2**20

Unseal = Callable[[BinaryIO, BinaryIO], None]
"""Writes into the second stream what a key opens of the first."""


def write_bundle(
    path: Path,
    *,
    draft: Mapping[str, Any],
    parts: Mapping[str, Path | bytes],
    sign: Callable[[bytes], bytes],
    recipients: Sequence[PublicIdentity],
    created: datetime | None = None,
) -> str:
    """Write a bundle, its signed manifest sealed with its parts; return the file's SHA-256.

    The draft has those fields of the manifest that its maker says; the others are measured here.
    """
    if draft.get("simulated"):
        raise SecretError(
            f"this {draft['kind']} of '{draft['sender']}' was drawn from a seed, so nothing in it "
            "is secret. No bundle carries it into a real round. Make it without rng= or a seed."
        )
    contents = [_Content(name, content) for name, content in parts.items()]
    for content in contents:
        deque(content, maxlen=0)
    manifest = make_manifest(
        **draft,
        parts=tuple(content.part for content in contents),
        recipients=tuple(each.name for each in recipients),
        created=moment_text(created or datetime.now(UTC)),
    )
    text = manifest.encoded()
    start = MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text + sign(signed_message(text))
    plain = len(start) + sum(part.n_bytes for part in manifest.parts)
    filling = bytes(-plain % STEP)
    plain += len(filling)
    # age adds 16 bytes to every 64 kB, and less than 200 for every recipient
    most = plain + plain // 4000 + 200 * len(recipients) + STEP
    with WholeFile(path, n_bytes=most) as file:
        # every part is read twice: what is signed stands before what it is over
        source = _Source(chain([start], *contents, [filling]))
        keys = {each.name: each.recipient for each in recipients}
        encrypt(source, file, recipients=keys)  # type: ignore[arg-type]
        file.shorten(file.at)
    return file.digest.hexdigest()


class _Content:
    """The bytes of one part, the same each time, and what the manifest says of them."""

    def __init__(self, name: str, content: Path | bytes) -> None:
        self._name, self._content = name, content
        self.part: dict[str, object] = {}  # once all of it was read

    def __iter__(self) -> Iterator[bytes]:
        content, digest, n_bytes = self._content, hashlib.sha256(), 0
        with (
            nullcontext((BytesIO(content), None)) if isinstance(content, bytes) else opened(content)
        ) as (file, _):
            while piece := file.read(_PIECE):
                digest.update(piece)
                n_bytes += len(piece)
                yield piece
        found = {"name": self._name, "n_bytes": n_bytes, "sha256": digest.hexdigest()}
        if self.part not in ({}, found):
            raise FileChangedError(
                f"the part {self._name} changed while the bundle was written, so none was made. "
                "Wait until nobody writes to it, then start again."
            )
        self.part = found


class _Source:
    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def read(self, n_bytes: int) -> bytes:
        # none is empty but the last, which may be
        self._rest = self._rest or memoryview(next(self._pieces, b""))
        taken, self._rest = self._rest[:n_bytes], self._rest[n_bytes:]
        return bytes(taken)


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A bundle that was opened: its signature, its sizes and its digests are right."""

    manifest: Manifest
    parts: Mapping[str, Path] = field(repr=False)  # where they stand now, by name
    digest: str  # SHA-256 of the sealed file
    path: Path

    @property
    def what(self) -> str:
        return f"the bundle '{self.path.name}' of '{self.manifest.sender}'"


def open_bundle(
    path: Path,
    *,
    unseal: Unseal,
    signer: Mapping[str, PublicIdentity],
    into: Path,
    expected: Expected | None = None,
    max_bytes: int = MAX_BYTES,
) -> Bundle:
    """Open a bundle: unseal it, check its signature and its manifest, and store its parts.

    Whoever opens it deletes the folder, also after a refusal. The plain stream lies in a file
    without a name meanwhile, which no crash leaves behind.
    """
    with explained(f"a bundle cannot be opened into '{into}'", advice=WRITABLE):
        make_folder(into)
        with nameless_file(into) as plain:
            read = _Read(path, cast("BinaryIO", plain), max_bytes=max_bytes)
            digest = read.unsealed(unseal)
            manifest = read.manifest(signer, expected=expected or Expected())
            for part in manifest.parts:
                with WholeFile(into / part.name, n_bytes=part.n_bytes) as file:
                    for data in read.pieces(part):
                        file.write(data)
    places = {part.name: into / part.name for part in manifest.parts}
    return Bundle(manifest=manifest, parts=places, digest=digest, path=path)


def open_in_memory(
    path: Path, *, unseal: Unseal, signer: Mapping[str, PublicIdentity], expected: Expected
) -> tuple[Manifest, bytes, str]:
    """Open a small bundle of one part as `open_bundle` does, none of it reaching a disk.

    Its manifest, its part's bytes, and the sealed file's digest.
    """
    read = _Read(path, BytesIO(), max_bytes=MAX_IN_MEMORY)
    digest = read.unsealed(unseal)
    manifest = read.manifest(signer, expected=expected)
    return manifest, b"".join(read.pieces(manifest.parts[0])), digest


class _Read:
    def __init__(self, path: Path, plain: BinaryIO, *, max_bytes: int) -> None:
        self.path, self.plain, self._most = path, plain, max_bytes
        self.what = f"the bundle '{path.name}'"

    def unsealed(self, unseal: Unseal) -> str:
        """Fill the plain stream, and return the digest of the sealed file."""
        look(self.path)
        with opened(self.path) as (file, stamp):
            n_bytes, most = stamp.size, self._most
            if n_bytes > most + most // 1000 + _SEALING:
                refuse(self.what, f"its {n_bytes:,} bytes are more than the {most:,} that are read")
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            with explained(f"{self.what} cannot be opened", advice=WRITABLE):
                self.unseal_with(unseal, cast("BinaryIO", file))
            if file.read(1):
                raise SealError(
                    f"{self.what} is longer than its seal. Have it copied, or sent, once more."
                )
            refuse_changed(Stamp.of(os.fstat(file.fileno())), stamp, what=self.what)
        refuse_changed(stamp_of(self.path), stamp, what=self.what)
        return digest

    def unseal_with(self, unseal: Unseal, file: BinaryIO) -> None:
        try:
            unseal(file, self.plain)
        except SealError as error:  # of a key, which sees a stream
            raise SealError(f"{self.what}: {error.args[0]}") from None
        self.plain.seek(0)

    def signed(
        self, signers: Mapping[str, PublicIdentity]
    ) -> tuple[Manifest, PublicIdentity | None, bool]:
        """Read the manifest: with the key of who sent it, if known, and whether they signed it."""
        start = self.plain.read(len(MAGIC) + LENGTH_BYTES)
        if not start.startswith(MAGIC):
            refuse(self.what, f"it does not begin with '{MAGIC.decode().strip()}'")
        length = int.from_bytes(start[len(MAGIC) :], "little")
        if not 0 < length <= MAX_MANIFEST:
            most = f"1 to {MAX_MANIFEST:,} bytes long"
            refuse(self.what, f"its manifest of {length:,} bytes is not {most}")
        text, signature = self.plain.read(length), self.plain.read(SIGNATURE_BYTES)
        manifest = read_manifest(text, what=self.what)
        sender = signers.get(manifest.sender)
        good = sender is not None and verify(sender, signed_message(text), signature=signature)
        return manifest, sender, good

    def manifest(self, signer: Mapping[str, PublicIdentity], *, expected: Expected) -> Manifest:
        """Read the manifest, believe it when its sender signed it, and hold sizes against it."""
        manifest, _, good = self.signed(signer)
        if not good:
            raise SignatureError(
                f"{self.what} says that it is from '{manifest.sender}', and carries no good "
                "signature by an enrolled key of that name: it was changed, its sender is not who "
                "may send it, or that key was revoked. Compare fingerprints with its sender over "
                "another channel, and ask whether they sent it."
            )
        expected.check(manifest, what=self.what)
        at, size = self.plain.tell(), sum(part.n_bytes for part in manifest.parts)
        if size > self._most:
            refuse(self.what, f"its parts' {size:,} bytes are more than the {self._most:,} read")
        filling = -(at + size) % STEP
        found = self.plain.seek(0, os.SEEK_END)
        if found != (end := at + size + filling):
            refuse(self.what, f"it is {found:,} bytes long inside, and its manifest says {end:,}")
        self.plain.seek(at + size)
        if self.plain.read() != bytes(filling):  # else one upload could be many files
            refuse(self.what, "what fills its last step is not zeros")
        self.plain.seek(at)
        return manifest

    def pieces(self, part: Part) -> Iterator[bytes]:
        """Yield one part's bytes and compare their digest."""
        digest, left = hashlib.sha256(), part.n_bytes
        while left:
            data = self.plain.read(min(left, _PIECE))
            digest.update(data)
            yield data
            left -= len(data)
        if digest.hexdigest() != part.sha256:
            what = f"the part {part.name} of {self.what}"
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


def open_manifest(
    path: Path, *, unseal: Unseal, signers: Mapping[str, PublicIdentity] | None = None
) -> tuple[Manifest, SignatureState]:
    """Open no more of a bundle than its manifest; only one whose signature is good is believed."""
    look(path)
    read = _Read(path, _Head(), max_bytes=0)
    with opened(path) as (file, _):
        read.unseal_with(unseal, cast("BinaryIO", file))
    manifest, sender, good = read.signed(signers or {})
    if sender is None:
        return manifest, "not checked" if signers is None else "not enrolled"
    return manifest, "good" if good else "wrong"


def plain_kind(path: Path) -> str | None:
    """Return what a file of ours is that was never sealed; None of others, and where none is."""
    start = ""
    with suppress(DiskError), opened(path) as (stream, _):
        start = stream.read(_START).decode("utf-8", errors="replace")
    if start.startswith("{") and (told := _FORMAT.search(start)):
        return told[1] if told[1] in PLAIN else None
    return "agreement" if _ROUND.search(start) else None


class _Head(BytesIO):
    """A stream that keeps its beginning, and forgets the rest."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        super().write(data[: max(0, _HEAD - self.tell())])
        return len(data)
