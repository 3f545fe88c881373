"""Safetensors files, in parts and whole; a header is read as if an enemy had sent it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cobasis.disk.whole import Stamp, WholeFile, bytes_of, opened, refuse_changed
from cobasis.errors import FileFormatError, ShapeError
from cobasis.tensor_header import MAX_NAME, PREFIX, Place, make_header, parse_header, places_in

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    path: Path
    places: Mapping[str, Place]
    metadata: Mapping[str, str]  # as it stands in the file: anybody may have written anything
    stamp: Stamp
    what: str  # what to call the file in an error, with the party's name where it gives one

    def read(self, place: Place) -> npt.NDArray[Any]:
        """Read a table, or a part of one, from the file, which has to be the one it was."""
        array = np.empty(place.shape, place.dtype)
        with opened(self.path) as (file, before):
            refuse_changed(before, self.stamp, what=self.what)
            rest = bytes_of(array)
            file.seek(place.offset)
            while rest and (read := file.readinto(rest)):
                rest = rest[read:]
            # again: whoever wrote while this read may have changed what was not yet read
            refuse_changed(Stamp.of(os.fstat(file.fileno())), self.stamp, what=self.what)
        return array


def read_header(path: Path, *, max_bytes: int = MAX_HEADER) -> Header:
    with opened(path) as (file, stamp):
        length = int.from_bytes(file.read(PREFIX), "little")
        what = f"the file '{path.name}'"
        if not 1 < length <= min(max_bytes, stamp.size - PREFIX):
            refuse(what, f"its {stamp.size:,} bytes hold no header of {length:,} bytes")
        text = file.read(length)
    try:
        described, metadata = parse_header(text)
        party = metadata.get("party", "")
        if 0 < len(party) <= MAX_NAME and party.isprintable():  # so it can be shown on a terminal
            what = f"the file '{path.name}' of party '{party}'"
        places = places_in(described, begin=PREFIX + length, size=stamp.size, dtypes=DTYPES)
    except ValueError as error:
        refuse(what, str(error))
    return Header(path=path, places=places, metadata=metadata, stamp=stamp, what=what)


def write_tables(
    path: Path, tables: Mapping[str, npt.NDArray[Any]], *, metadata: Mapping[str, str]
) -> None:
    described = [(name, table.dtype, table.shape) for name, table in tables.items()]
    start, places = make_header(described, metadata=metadata)
    n_bytes = len(start) + sum(place.n_bytes for place in places.values())
    with WholeFile(path, n_bytes=n_bytes) as file:
        file.write(start)
        for name, place in places.items():
            file.write(np.ascontiguousarray(tables[name]), offset=place.offset)


def read_tables(
    path: Path, *, max_header: int = MAX_HEADER
) -> tuple[dict[str, npt.NDArray[Any]], Header]:
    header = read_header(path, max_bytes=max_header)
    return {name: header.read(place) for name, place in header.places.items()}, header


def part_of(place: Place, rows: slice, *, what: str) -> Place:
    start, stop = rows.start, rows.stop
    if not 0 <= start < stop <= place.shape[0]:
        raise ShapeError(
            f"{what} has rows 0 to {place.shape[0]}, not {start} to {stop}. Ask for some of those."
        )
    row = place.n_bytes // place.shape[0]
    shape = (stop - start, *place.shape[1:])
    return replace(place, shape=shape, offset=place.offset + start * row)


def refuse(what: str, reason: str) -> NoReturn:
    raise FileFormatError(f"{what} cannot be used: {reason}. Have it written, or sent, once more.")
