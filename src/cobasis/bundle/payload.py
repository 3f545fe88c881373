"""What an upload is on disk: one safetensors file per party, read and written in parts.

Any safetensors library reads it. The tables are `anchor_image`, `labels` (not for
representation) and, last, `rows`, which may come in any order; the metadata name the party, the
agreement and the anchor.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cobasis.disk.tensors import (
    Header,
    Place,
    is_name,
    make_header,
    part_of,
    read_header,
    refuse,
    widened,
)
from cobasis.disk.whole import Stamp, WholeFile, read_array
from cobasis.errors import DtypeError, OptionError, ShapeError, StepError
from cobasis.linalg.arrays import Matrix
from cobasis.protocol.messages import Labels, UploadHeader

FORMAT = "cobasis/upload/1"

_TYPES = {each.name: each for each in map(np.dtype, ("<f8", "<f4", "<f2", "<i8", "i1"))}
_ROWS = ("float64", "float32", "float16", "int8")


@dataclass(frozen=True, kw_only=True)
class PayloadHeader(UploadHeader):
    """What is known of an upload's file before its first row is there."""

    dtype: str = "float64"  # of rows and anchor image, which is float16 where rows are int8
    int8_scale: float | None = None  # what one step means, where the rows are int8


class PayloadWriter:
    """An upload written to disk in parts, in any order; whole at the end, or not there.

    Use it in a ``with`` block. When that ends every row must have been written; when
    something is raised inside, Ctrl-C included, nothing is left.
    """

    def __init__(self, path: Path, *, header: PayloadHeader) -> None:
        self.path = path
        self._name = f"the upload of party '{header.party}'"
        start, self._places = _layout(header)
        self._missing = {name for name in self._places if name != "rows"}
        self._written = np.zeros(header.n_rows, dtype=np.bool_)
        last = self._places["rows"]
        self._file = WholeFile(path, n_bytes=last.offset + last.n_bytes)
        try:
            self._file.write(start, offset=0)
        except BaseException:
            self._file.discard()
            raise

    def write_anchor_image(self, image: npt.NDArray[Any]) -> None:
        """Write ``A F_i``, of shape (n_anchor_rows, n_components)."""
        self._write("anchor_image", image)

    def write_labels(self, labels: npt.NDArray[Any]) -> None:
        """Write all labels, of shape (n_rows,), in the order of the rows."""
        self._write("labels", labels)

    def write_rows(self, start: int, block: npt.NDArray[Any]) -> None:
        """Write rows `start` to ``start + len(block)``; again, if need be."""
        stop = start + len(block)
        place = part_of(self._places["rows"], slice(start, stop), what=self._name)
        self._file.write(
            _as_stored(block, place, name=f"rows of {self._name}"), offset=place.offset
        )
        self._written[start:stop] = True

    def read_rows(self, start: int, stop: int) -> Matrix:
        """Read back rows that were written, to put them into another order."""
        place = part_of(self._places["rows"], slice(start, stop), what=self._name)
        block: Matrix = np.empty(place.shape, place.dtype)
        self._file.read(block, offset=place.offset)
        return block

    def __enter__(self) -> Self:
        """Write inside a with block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Give the file its name when all of it is written; leave nothing otherwise."""
        try:
            if kind is None:
                self._refuse_incomplete()
                self._file.finish()
        finally:
            self._file.discard()  # nothing to discard when it is finished

    def _write(self, name: str, table: npt.NDArray[Any]) -> None:
        """Write one whole table."""
        if name not in self._places:
            raise StepError(f"{self._name} was announced without {name}. Give its header labels=.")
        place = self._places[name]
        self._file.write(
            _as_stored(table, place, name=f"{name} of {self._name}"), offset=place.offset
        )
        self._missing.discard(name)

    def _refuse_incomplete(self) -> None:
        """Raise StepError unless all was written."""
        rows = int(self._written.size - np.count_nonzero(self._written))
        if rows or self._missing:
            lacking = [*sorted(self._missing), *([f"{rows:,} of its rows"] if rows else [])]
            raise StepError(
                f"{self._name} is not complete: {' and '.join(lacking)} were never written, so no "
                "file was made. Write all of it before the block ends."
            )


def _layout(header: PayloadHeader) -> tuple[bytes, dict[str, Place]]:
    """Return the file's first bytes and where its tables go; refuse what no reader takes."""
    shapes = (header.n_rows, header.n_components, header.n_anchor_rows)
    if min(shapes) < 1 or not is_name(header.party):
        raise ShapeError(
            f"an upload of party {header.party!r} with {shapes[0]} rows, {shapes[1]} components "
            f"and {shapes[2]} anchor rows cannot be written. Each number has to be 1 or more, and "
            "the name 1 to 100 printable characters."
        )
    if header.dtype not in _ROWS or header.labels not in {None, "int64", "float64"}:
        raise OptionError(
            f"dtype={header.dtype!r} with labels={header.labels!r} is not known. Choose one of "
            f"{', '.join(_ROWS)}, and int64, float64 or None for labels."
        )
    if (header.dtype == "int8") != (header.int8_scale is not None):
        raise OptionError(
            "int8_scale goes with dtype='int8', and only with it. Give both, or neither."
        )
    stored = _TYPES[header.dtype]
    image = _TYPES["float16" if header.dtype == "int8" else header.dtype]
    tables: list[tuple[str, np.dtype[Any], tuple[int, ...]]]
    tables = [("anchor_image", image, (header.n_anchor_rows, header.n_components))]
    tables += [("labels", _TYPES[header.labels], (header.n_rows,))] if header.labels else []
    tables += [("rows", stored, (header.n_rows, header.n_components))]
    metadata = {
        "format": FORMAT,
        "party": header.party,
        "agreement_digest": header.agreement_digest.hex(),
        "anchor_tag": header.anchor_tag.hex(),
        "simulated": "true" if header.simulated else "false",
    }
    if header.int8_scale is not None:
        metadata["int8_scale"] = repr(header.int8_scale)
    return make_header(tables, metadata=metadata)


def _as_stored(table: npt.NDArray[Any], place: Place, *, name: str) -> npt.NDArray[Any]:
    """Return a table in the file's dtype and order; nothing but floats to floats is rounded."""
    if table.shape != place.shape:
        raise ShapeError(
            f"{name} have shape {table.shape}, announced was {place.shape}. Give all of it."
        )
    if not np.can_cast(table.dtype, place.dtype, casting="same_kind"):
        raise DtypeError(
            f"{name} are {table.dtype}, announced was {place.dtype}. Convert them yourself."
        )
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(table, dtype=place.dtype)
    except FloatingPointError:
        raise DtypeError(
            f"{name} hold numbers above {place.dtype}'s range. Write the upload with "
            "dtype='float64'."
        ) from None


__all__ = ["Payload", "PayloadHeader", "PayloadWriter", "open_payload"]

MAX_IMAGE_BYTES = 2**30
MAX_COMPONENTS = 2**14
"""What a file may ask of the memory of whoever reads one anchor image, or one row."""

_FLOATS = {np.dtype("<f8"), np.dtype("<f4"), np.dtype("<f2")}
_STORED = {*_FLOATS, np.dtype("i1")}
_WIDE = {np.dtype("<f8"), np.dtype("<f4")}
_LABELS = {np.dtype("<i8"), np.dtype("<f8")}
_DIGEST = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload:
    """An upload on disk: its header was checked, its numbers are read when they are asked for."""

    path: Path  # every read refuses it when it is no longer the file that was opened
    party: str  # who says it is theirs
    agreement_digest: bytes = field(repr=False)
    anchor_tag: bytes = field(repr=False)
    simulated: bool
    stamp: Stamp = field(repr=False)
    image_place: Place = field(repr=False)
    labels_place: Place | None = field(repr=False)
    rows_place: Place = field(repr=False)
    int8_scale: float | None = None  # what one step of int8 rows means; None for floats

    @property
    def n_rows(self) -> int:
        """How many rows the party sent."""
        return self.rows_place.shape[0]

    @property
    def n_components(self) -> int:
        """How many columns they have."""
        return self.rows_place.shape[1]

    @property
    def n_anchor_rows(self) -> int:
        """How many rows the anchor has."""
        return self.image_place.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the rows as they are read: float64 as such, and float32 for all that is smaller."""
        stored = self.rows_place.dtype
        return stored if stored in _WIDE else np.dtype("<f4")

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Rows and columns of the anchor image."""
        return self.image_place.shape

    @property
    def n_labels(self) -> int | None:
        """How many labels there are; None without any."""
        return None if self.labels_place is None else self.labels_place.shape[0]

    def read_image(self) -> Matrix:
        """Read ``A F_i``: float64 or float32, as float32 where the file has float16."""
        return self._read(self.image_place)

    def labels(self) -> Labels | None:
        """Read all labels; None where the file has none."""
        return None if self.labels_place is None else self._read(self.labels_place)

    def label_block(self, start: int, stop: int) -> Labels | None:
        """Read the labels of rows `start` to `stop`."""
        if self.labels_place is None:
            return None
        return self._read(part_of(self.labels_place, slice(start, stop), what=self._what))

    def row_block(self, start: int, stop: int) -> Matrix:
        """Read rows `start` to `stop`, in `dtype`."""
        return self._read(part_of(self.rows_place, slice(start, stop), what=self._what))

    def row_blocks(self, n_rows_per_block: int) -> Iterator[Matrix]:
        """Read all rows, some at a time."""
        for start in range(0, self.n_rows, n_rows_per_block):
            yield self.row_block(start, min(start + n_rows_per_block, self.n_rows))

    @property
    def _what(self) -> str:
        return f"the file '{self.path.name}' of party '{self.party}'"

    def _read(self, place: Place) -> npt.NDArray[Any]:
        array = np.empty(place.shape, place.dtype)
        read_array(self.path, array, offset=place.offset, stamp=self.stamp, what=self._what)
        return widened(array, scale=self.int8_scale)


def open_payload(path: Path) -> Payload:
    """Open an upload file; its header is read and checked, its numbers stay on disk."""
    header = read_header(path)
    what, told = header.what, header.metadata
    if told.get("format") != FORMAT:
        refuse(what, f"its format is {told.get('format', 'not given')[:50]!r}, not {FORMAT!r}")
    party, simulated = told.get("party", ""), told.get("simulated", "")
    agreement, tag = told.get("agreement_digest", ""), told.get("anchor_tag", "")
    named = is_name(party) and simulated in {"true", "false"}
    if not (named and _DIGEST.fullmatch(agreement) and _DIGEST.fullmatch(tag)):
        refuse(what, "it does not say, or wrongly, of which party, agreement and anchor it is")
    _refuse_tables(header)
    return Payload(
        path=path,
        party=party,
        agreement_digest=bytes.fromhex(agreement),
        anchor_tag=bytes.fromhex(tag),
        simulated=simulated == "true",
        stamp=header.stamp,
        image_place=header.places["anchor_image"],
        labels_place=header.places.get("labels"),
        rows_place=header.places["rows"],
        int8_scale=_scale(header),
    )


def _scale(header: Header) -> float | None:
    """Return what one step of int8 rows means; there is one exactly where they are int8."""
    told = header.metadata.get("int8_scale")
    if header.places["rows"].dtype != np.int8 and told is None:
        return None
    try:
        scale = float(told or "")
    except ValueError:
        scale = math.nan
    if header.places["rows"].dtype != np.int8 or not 0 < scale < math.inf:
        refuse(header.what, "its rows are not int8 with an int8_scale, nor floats without one")
    return scale


def _refuse_tables(header: Header) -> None:
    """Raise FileFormatError unless the tables are an upload's, and of a readable size."""
    what, places = header.what, header.places
    if set(places) - {"labels"} != {"anchor_image", "rows"}:
        refuse(what, "it has other tables than anchor_image, rows and labels")
    image, rows, labels = places["anchor_image"], places["rows"], places.get("labels")
    tables = len(image.shape) == len(rows.shape) == 2  # noqa: PLR2004 -- a table has two dimensions
    typed = image.dtype in _FLOATS and rows.dtype in _STORED
    if not tables or not typed or image.shape[1] != rows.shape[1]:
        refuse(
            what,
            f"its anchor image is {image.dtype} {image.shape} and its rows are {rows.dtype} "
            f"{rows.shape}; both are tables of floats, or the rows of int8, equally wide",
        )
    if labels and labels.shape != rows.shape[:1]:
        refuse(what, f"it has {rows.shape[0]:,} rows and labels of shape {labels.shape}")
    if labels and labels.dtype not in _LABELS:
        refuse(what, f"its labels are {labels.dtype}, not int64 or float64")
    if image.n_bytes > MAX_IMAGE_BYTES or rows.shape[1] > MAX_COMPONENTS:
        refuse(
            what,
            f"an anchor image of {image.n_bytes:,} bytes and {rows.shape[1]:,} components are "
            f"more than the {MAX_IMAGE_BYTES:,} and {MAX_COMPONENTS:,} that are read",
        )
