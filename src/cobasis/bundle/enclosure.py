"""A bundle written: measured, signed and sealed in one stream, whole or not there."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

from cobasis.bundle.manifest import FORMAT, make_manifest, signed_message
from cobasis.bundle.seal import encrypt
from cobasis.disk.whole import WholeFile, opened
from cobasis.errors import FileChangedError, SecretError
from cobasis.protocol.agreement import moment_text
from cobasis.protocol.enrolment import PublicIdentity

MAGIC = FORMAT.encode() + b"\n"
LENGTH_BYTES, SIGNATURE_BYTES = 4, 64

STEP = 4096
"""A container is so many bytes long, or a multiple: nothing is compressed and its end is filled, so
that its size tells the shapes of what is in it and nothing of the numbers."""

_PIECE = 2**20


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
