"""A bundle written: measured, signed, compressed and sealed in one stream, whole or not there."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cobasis.bundle.frames import PIECE, compressed
from cobasis.bundle.manifest import (
    FORMAT,
    MAX_RATIO,
    PARTS,
    SLACK,
    Draft,
    Manifest,
    Part,
    make_manifest,
    signed_message,
)
from cobasis.bundle.seal import seal
from cobasis.disk.whole import WholeFile, opened
from cobasis.errors import FileChangedError, OptionError, SecretError
from cobasis.protocol.enrolment import PublicIdentity

MAGIC = FORMAT.encode() + b"\n"
LENGTH_BYTES, SIGNATURE_BYTES = 4, 64

_CHUNK, _TAG, _PER_RECIPIENT, _HEADER = 2**16, 16, 200, 4096
"""Of age: what it adds to every chunk, for every recipient and once, or more."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """A bundle that was written."""

    path: Path
    digest: str  # of the sealed file; receipts name it
    manifest: Manifest


def write_bundle(
    path: Path,
    *,
    draft: Draft,
    parts: Mapping[str, Path | bytes],
    sign: Callable[[bytes], bytes],
    recipients: Sequence[PublicIdentity],
    created: datetime | None = None,
    simulation: bool = False,
) -> Written:
    """Write a bundle: sign a manifest of the parts, compress them, and seal it all."""
    if draft.simulated and not simulation:
        raise SecretError(
            f"this {draft.kind} of '{draft.sender}' was drawn from a seed, so nothing in it is "
            "secret. No bundle carries it into a real round. Make it without rng= or a seed."
        )
    known = PARTS.get(draft.kind, {})
    if set(parts) - set(known):
        raise OptionError(
            f"a bundle of kind '{draft.kind}' has other parts than {', '.join(sorted(parts))}. Its "
            f"parts are {', '.join(known)}."
        )
    measured = tuple(_measure(name, content) for name, content in parts.items())
    names = tuple(each.name for each in recipients)
    if len(set(names)) < len(names):
        raise OptionError(
            f"the recipients {', '.join(names)} name somebody twice. Give each of them once."
        )
    manifest = make_manifest(
        draft, parts=measured, recipients=names, created=created or datetime.now(UTC)
    )
    text = manifest.encoded()
    signature = sign(signed_message(text))
    if len(signature) != SIGNATURE_BYTES:
        raise OptionError(
            f"a signature has {SIGNATURE_BYTES} bytes, not {len(signature)}. Give Identity.sign."
        )
    start = MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text + signature
    plain = len(start) + sum(part.stored_bytes for part in measured)
    most = plain + (plain // _CHUNK + 1) * _TAG + len(names) * _PER_RECIPIENT + _HEADER
    with WholeFile(path, n_bytes=most) as file:
        target = _Target(file)
        source = _Source(_container(start, manifest=manifest, parts=parts))
        seal(source, target, recipients=[each.recipient for each in recipients])  # type: ignore[arg-type]
        file.shorten(target.at)
    return Written(path=path, digest=target.digest.hexdigest(), manifest=manifest)


def _pieces(name: str, content: Path | bytes) -> Iterator[bytes]:
    """Yield a part's bytes; a file has to be the same one at its end."""
    if isinstance(content, bytes):
        for at in range(0, len(content), PIECE):
            yield content[at : at + PIECE]
        return
    with opened(content) as (file, stamp):
        left = stamp.size
        while left and (piece := file.read(min(left, PIECE))):
            left -= len(piece)
            yield piece
        if left:
            _refuse_changed(name)


def _measure(name: str, content: Path | bytes) -> Part:
    """Return what the manifest says of a part."""
    n_bytes = len(content) if isinstance(content, bytes) else _size(content)
    if not n_bytes:
        raise OptionError(f"the part {name} is empty. Give what it is to hold.")
    digest = hashlib.sha256()
    stored = sum(map(len, _frame(name, content, n_bytes=n_bytes, digest=digest)))
    if n_bytes > MAX_RATIO * stored + SLACK:
        raise OptionError(
            f"the part {name} has {n_bytes:,} bytes that compress to {stored:,}: nearly all are "
            f"alike. Readers take {MAX_RATIO} times as many at most. Look for columns of zeros."
        )
    return Part(name=name, n_bytes=n_bytes, sha256=digest.hexdigest(), stored_bytes=stored)


def _size(path: Path) -> int:
    with opened(path) as (_, stamp):
        return stamp.size


def _frame(
    name: str, content: Path | bytes, *, n_bytes: int, digest: "hashlib._Hash"
) -> Iterator[bytes]:
    """Yield a part's frame while its plain bytes are counted and hashed."""
    seen = 0

    def watched() -> Iterator[bytes]:
        nonlocal seen
        for piece in _pieces(name, content):
            seen += len(piece)
            if seen > n_bytes:
                _refuse_changed(name)
            digest.update(piece)
            yield piece
        if seen != n_bytes:
            _refuse_changed(name)

    yield from compressed(watched(), n_bytes=n_bytes)


def _container(
    start: bytes, *, manifest: Manifest, parts: Mapping[str, Path | bytes]
) -> Iterator[bytes]:
    """Yield what is sealed; every part has to be what was measured."""
    yield start
    for part in manifest.parts:
        digest = hashlib.sha256()
        stored = 0
        for piece in _frame(part.name, parts[part.name], n_bytes=part.n_bytes, digest=digest):
            stored += len(piece)
            yield piece
        if digest.hexdigest() != part.sha256 or stored != part.stored_bytes:
            _refuse_changed(part.name)


def _refuse_changed(name: str) -> None:
    raise FileChangedError(
        f"the part {name} changed while the bundle was written, so none was made. Wait until "
        "nobody writes to it, then start again."
    )


class _Source:
    """An iterator of bytes as a stream to read from."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def read(self, n_bytes: int) -> bytes:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._rest = memoryview(piece)
        taken, self._rest = self._rest[:n_bytes], self._rest[n_bytes:]
        return bytes(taken)


class _Target:
    """A file as a stream to write to, whose bytes are counted and hashed."""

    def __init__(self, file: WholeFile) -> None:
        self._file = file
        self.at = 0
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self._file.write(data, offset=self.at)
        self.digest.update(data)
        self.at += len(data)
        return len(data)
