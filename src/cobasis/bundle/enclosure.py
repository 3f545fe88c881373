"""A bundle written: measured, signed, compressed and sealed in one stream, whole or not there."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO, FileIO
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import zstandard

from cobasis.bundle.manifest import FORMAT, Manifest, make_manifest, signed_message
from cobasis.bundle.seal import encrypt
from cobasis.disk.whole import WholeFile, opened
from cobasis.errors import FileChangedError, SecretError
from cobasis.protocol.enrolment import PublicIdentity

MAGIC = FORMAT.encode() + b"\n"
LENGTH_BYTES, SIGNATURE_BYTES = 4, 64

_LEVEL, _PIECE = 3, 2**20
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
    draft: Mapping[str, Any],
    parts: Mapping[str, Path | bytes],
    sign: Callable[[bytes], bytes],
    recipients: Sequence[PublicIdentity],
    created: datetime | None = None,
) -> Written:
    """Write a bundle: sign a manifest of the parts, compress them, and seal it all.

    The draft has those fields of the manifest that its maker says; the others are measured here.
    """
    if draft.get("simulated"):
        raise SecretError(
            f"this {draft['kind']} of '{draft['sender']}' was drawn from a seed, so nothing in it "
            "is secret. No bundle carries it into a real round. Make it without rng= or a seed."
        )
    frames = [_Frame(name, content) for name, content in parts.items()]
    for frame in frames:
        for _ in frame:
            pass
    manifest = make_manifest(
        draft,
        parts=tuple(frame.part for frame in frames),
        recipients=tuple(each.name for each in recipients),
        created=created or datetime.now(UTC),
    )
    text = manifest.encoded()
    start = MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text + sign(signed_message(text))
    plain = len(start) + sum(part.stored_bytes for part in manifest.parts)
    most = plain + (plain // _CHUNK + 1) * _TAG + len(recipients) * _PER_RECIPIENT + _HEADER
    with WholeFile(path, n_bytes=most) as file:
        target = _Target(file)
        # every part is compressed twice: what is signed stands before what it is over, and a
        # second pass costs less than the parts' plain bytes a second time on the disk
        source = _Source(chain([start], *map(_unchanged, frames)))
        encrypt(source, target, recipients=[each.recipient for each in recipients])  # type: ignore[arg-type]
        file.shorten(target.at)
    return Written(path=path, digest=target.digest.hexdigest(), manifest=manifest)


class _Frame:
    """One part as one zstd frame that declares its size, and what the manifest says of it."""

    def __init__(self, name: str, content: Path | bytes) -> None:
        self.name, self._content = name, content
        self.part: dict[str, object] = {}  # once all of it was read

    def __iter__(self) -> Iterator[bytes]:
        content, digest, stored = self._content, hashlib.sha256(), 0
        with ExitStack() as block:
            if isinstance(content, bytes):
                file: BytesIO | FileIO = BytesIO(content)
            else:
                file, _ = block.enter_context(opened(content))
            n_bytes = file.seek(0, os.SEEK_END)
            file.seek(0)
            packer = zstandard.ZstdCompressor(level=_LEVEL).compressobj(size=n_bytes)
            try:
                while piece := file.read(_PIECE):
                    digest.update(piece)
                    stored += len(frame := packer.compress(piece))
                    yield frame
                stored += len(frame := packer.flush())
            except zstandard.ZstdError:  # it grew or shrank while it was read
                self.refuse_changed()
            yield frame
        self.part = {
            "name": self.name,
            "n_bytes": n_bytes,
            "sha256": digest.hexdigest(),
            "stored_bytes": stored,
        }

    def refuse_changed(self) -> NoReturn:
        raise FileChangedError(
            f"the part {self.name} changed while the bundle was written, so none was made. Wait "
            "until nobody writes to it, then start again."
        )


def _unchanged(frame: _Frame) -> Iterator[bytes]:
    """Yield a part's frame once more; it has to be what was measured."""
    measured = frame.part
    yield from frame
    if frame.part != measured:
        frame.refuse_changed()


class _Source:
    """An iterator of bytes as a stream to read from."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
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
