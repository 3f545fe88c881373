"""An upload written to disk in parts, in whatever order its rows come."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cobasis.disk.tensors import Place, is_name, make_header, part_of
from cobasis.disk.whole import WholeFile
from cobasis.errors import DtypeError, OptionError, ShapeError, StepError
from cobasis.linalg.arrays import Matrix
from cobasis.protocol.messages import UploadHeader

FORMAT = "cobasis/upload/1"

_STORED = {each.name: each for each in map(np.dtype, ("<f8", "<f4", "<f2", "<i8", "i1"))}
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
    stored = _STORED[header.dtype]
    image = _STORED["float16" if header.dtype == "int8" else header.dtype]
    tables: list[tuple[str, np.dtype[Any], tuple[int, ...]]]
    tables = [("anchor_image", image, (header.n_anchor_rows, header.n_components))]
    tables += [("labels", _STORED[header.labels], (header.n_rows,))] if header.labels else []
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
