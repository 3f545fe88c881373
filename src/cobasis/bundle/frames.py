"""One part as one zstd frame: compressed and decompressed in pieces, with every size known.

The library's one-call ``decompress`` ignores a limit when the frame declares its size, and its
readers do not tell where a frame ends. So a frame is walked block by block, each of which
makes 128 KiB at most, whatever it claims.
"""

from collections.abc import Callable, Iterator
from typing import BinaryIO, NoReturn

import zstandard

from cobasis.errors import BundleError

PIECE = 2**20
"""Bytes that are read, compressed and hashed at a time."""

MAX_WINDOW = 2**23
"""What a frame may ask of the memory of whoever reads it."""

_MAGIC = b"\x28\xb5\x2f\xfd"
_LEVEL, _MAX_BLOCK, _CHECKSUM = 3, 2**17, 4
_RLE, _RESERVED = 1, 3
_UNUSED = 0b11000
"""Bits of a frame's descriptor that every writer leaves zero, and readers may overlook."""


def compressed(pieces: Iterator[bytes], *, n_bytes: int) -> Iterator[bytes]:
    """Yield one zstd frame that declares its size."""
    packer = zstandard.ZstdCompressor(level=_LEVEL).compressobj(size=n_bytes)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def decompress(
    source: BinaryIO, write: Callable[[bytes], None], *, stored_bytes: int, n_bytes: int, what: str
) -> None:
    """Decompress one frame of known size, and nothing behind it."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()
    made = 0
    try:
        for piece in _pieces(source, stored_bytes=stored_bytes, n_bytes=n_bytes, what=what):
            plain = unpacker.decompress(piece)
            made += len(plain)
            if made > n_bytes:
                _refuse(what, f"it holds more than the {n_bytes:,} bytes that it declares")
            write(plain)
    except zstandard.ZstdError:
        _refuse(what, "it is no zstd frame, or damaged")
    if made != n_bytes or not unpacker.eof:
        _refuse(what, f"it holds {made:,} bytes instead of {n_bytes:,}")


def _pieces(source: BinaryIO, *, stored_bytes: int, n_bytes: int, what: str) -> Iterator[bytes]:
    """Yield exactly one frame: its header, then block by block."""
    left = stored_bytes

    def take(count: int) -> bytes:
        nonlocal left
        data = source.read(count) if count <= left else b""
        if len(data) != count:
            _refuse(what, "it is truncated")
        left -= count
        return data

    start = take(5)
    if not start.startswith(_MAGIC) or start[4] & _UNUSED:
        _refuse(what, "it is no zstd frame")
    start += take(zstandard.frame_header_size(start) - len(start))
    says = zstandard.get_frame_parameters(start)
    if says.content_size != n_bytes or says.dict_id:
        _refuse(what, f"its frame does not declare {n_bytes:,} bytes, or needs a dictionary")
    yield start
    last = False
    while not last:
        head = take(3)
        told = int.from_bytes(head, "little")
        last, kind, size = bool(told & 1), told >> 1 & 3, told >> 3
        if kind == _RESERVED or size > _MAX_BLOCK:
            _refuse(what, "one of its blocks is none")
        yield head + take(1 if kind == _RLE else size)
    if says.has_checksum:
        yield take(_CHECKSUM)
    if left:
        _refuse(what, f"{left:,} bytes stand behind its frame")


def _refuse(what: str, reason: str) -> NoReturn:
    raise BundleError(f"{what} cannot be used: {reason}. Ask its sender for a new one.")
