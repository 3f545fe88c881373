"""Safetensors files, in parts and whole; a header is read as if an enemy had sent it.

The format: eight bytes with the header's length, a JSON object that says of every tensor its
type, shape and place, then the numbers, row by row and without holes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cobasis.disk.whole import Stamp, WholeFile, opened, read_array
from cobasis.errors import FileFormatError, ShapeError
from cobasis.strict_json import json_object

DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "U64": np.dtype("<u8"),
    "I8": np.dtype("i1"),
}
"""The only types that cobasis puts into a file, or reads from one."""

MAX_HEADER = 64 * 1024  # bytes; an upload's header has less than a thousand

MAX_NAME = 100
_PREFIX, _ALIGNMENT, _METADATA = 8, 8, "__metadata__"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a tensor stands in its file."""

    dtype: np.dtype[Any]  # little-endian
    shape: tuple[int, ...]  # none of them 0
    offset: int  # from the file's beginning

    @property
    def n_bytes(self) -> int:
        """How many bytes it takes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """What a file says of itself, checked."""

    places: Mapping[str, Place]
    metadata: Mapping[str, str]  # as it stands in the file: anybody may have written anything
    stamp: Stamp
    what: str  # what to call the file in an error, with the party's name where it gives one


def make_header(
    tensors: Sequence[tuple[str, np.dtype[Any], tuple[int, ...]]], *, metadata: Mapping[str, str]
) -> tuple[bytes, dict[str, Place]]:
    """Return a header's bytes, and where each tensor goes."""
    words = {dtype: word for word, dtype in DTYPES.items()}
    described: dict[str, Any] = {_METADATA: dict(metadata)}
    places, end = {}, 0
    for name, dtype, shape in tensors:
        places[name] = Place(dtype=dtype, shape=shape, offset=end)
        start, end = end, end + places[name].n_bytes
        offsets = [start, end]
        described[name] = {"dtype": words[dtype], "shape": list(shape), "data_offsets": offsets}
    text = json.dumps(described, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    begin = _PREFIX + len(text)
    places = {name: replace(each, offset=begin + each.offset) for name, each in places.items()}
    return len(text).to_bytes(_PREFIX, "little") + text, places


def read_header(path: Path, *, max_bytes: int = MAX_HEADER) -> Header:
    """Read a file's header and check it against the file's size."""
    with opened(path) as (file, stamp):
        length = int.from_bytes(file.read(_PREFIX), "little")
        what = f"the file '{path.name}'"
        if not 1 < length <= min(max_bytes, stamp.size - _PREFIX):
            refuse(what, f"its {stamp.size:,} bytes hold no header of {length:,} bytes")
        text = file.read(length)
    try:
        described = json_object(text)
    except ValueError as error:
        refuse(what, f"its header is {error}")
    metadata = described.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        refuse(what, "its metadata are not words by name")
    if is_name(metadata.get("party", "")):
        what = f"the file '{path.name}' of party '{metadata['party']}'"
    begin = _PREFIX + length
    places = {name: _place(name, entry, begin, what) for name, entry in described.items()}
    end = begin
    for place in sorted(places.values(), key=lambda each: each.offset):
        if place.offset != end:
            refuse(what, "its tables overlap or leave holes")
        end += place.n_bytes
    if end != stamp.size:
        cut = "truncated" if end > stamp.size else "longer than it says"
        refuse(what, f"it is {cut}: {stamp.size:,} bytes where its header asks for {end:,}")
    return Header(places=places, metadata=metadata, stamp=stamp, what=what)


def write_tables(
    path: Path, tables: Mapping[str, npt.NDArray[Any]], *, metadata: Mapping[str, str]
) -> None:
    """Write whole tables into one safetensors file, or nothing."""
    described = [(name, table.dtype, table.shape) for name, table in tables.items()]
    start, places = make_header(described, metadata=metadata)
    n_bytes = len(start) + sum(place.n_bytes for place in places.values())
    with WholeFile(path, n_bytes=n_bytes) as file:
        file.write(start, offset=0)
        for name, place in places.items():
            file.write(np.ascontiguousarray(tables[name]), offset=place.offset)


def read_tables(
    path: Path, *, max_header: int = MAX_HEADER
) -> tuple[dict[str, npt.NDArray[Any]], Header]:
    """Read every table of a safetensors file, whatever it holds."""
    header = read_header(path, max_bytes=max_header)
    tables: dict[str, npt.NDArray[Any]] = {}
    for name, place in header.places.items():
        tables[name] = np.empty(place.shape, place.dtype)
        read_array(path, tables[name], offset=place.offset, stamp=header.stamp, what=header.what)
    return tables, header


def part_of(place: Place, rows: slice, *, what: str) -> Place:
    """Return where rows `start` to `stop` of a tensor stand."""
    start, stop = rows.start, rows.stop
    if not 0 <= start < stop <= place.shape[0]:
        raise ShapeError(
            f"{what} has rows 0 to {place.shape[0]}, not {start} to {stop}. Ask for some of those."
        )
    row = place.n_bytes // place.shape[0]
    shape = (stop - start, *place.shape[1:])
    return replace(place, shape=shape, offset=place.offset + start * row)


def is_name(name: str) -> bool:
    """Whether text can be a party's name, and be shown on a terminal."""
    return 0 < len(name) <= MAX_NAME and name.isprintable()


def refuse(what: str, reason: str) -> NoReturn:
    """Raise FileFormatError."""
    raise FileFormatError(f"{what} cannot be used: {reason}. Have it written, or sent, once more.")


def _place(name: str, entry: object, begin: int, what: str) -> Place:
    match entry:
        case {"dtype": str(word), "shape": list(shape), "data_offsets": [start, stop]}:
            whole = all(type(number) is int and number >= 0 for number in [*shape, start, stop])
            if word in DTYPES and whole and shape and 0 not in shape:
                place = Place(dtype=DTYPES[word], shape=tuple(shape), offset=begin + start)
                if place.n_bytes == stop - start:
                    return place
    refuse(
        what,
        f"its table {name[:MAX_NAME]!r} is described wrongly or is not of float64, float32, "
        "float16, int64 or int8 numbers",
    )
