"""Uploads as files, in the precision that the agreement names, and a folder of them opened."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.images import View
from cobasis.bundle.payload import FORMAT, Payload, open_payload
from cobasis.disk.calls import READABLE, explained
from cobasis.disk.tensors import Place, is_name, make_header, part_of
from cobasis.disk.whole import WholeFile
from cobasis.errors import (
    DtypeError,
    DuplicatePartyError,
    MessageError,
    OptionError,
    ShapeError,
    StepError,
)
from cobasis.linalg.arrays import Matrix
from cobasis.protocol.agreement import Precision
from cobasis.protocol.messages import Upload, UploadHeader

STORED: dict[Precision, tuple[str, str]] = {
    "fp64": ("<f8", "<f8"),
    "fp32": ("<f4", "<f4"),
    "fp16": ("<f2", "<f2"),
    # the image fixes the change of basis, so an error in it turns every row of the party alike and
    # no mean over rows takes it out again; that of one row's rounding stays with the row
    "int8": ("i1", "<f2"),
}
"""How rows and anchor image stand in the file."""

_STEPS = 127  # -128 stays free, so that the range is the same on both sides of 0
_TABLES = (".csv", ".parquet", ".pq")
_LABELS = {"int64": "<i8", "float64": "<f8"}


def int8_scale(int8_range: float | None) -> float | None:
    """Return what one step of int8 means where values lie within ``+-int8_range``."""
    if int8_range is not None and not 0 < int8_range < math.inf:
        raise OptionError(f"int8_range={int8_range!r} is not a number above 0. Agree on one.")
    return None if int8_range is None else int8_range / _STEPS


class UploadFile:
    """Where a party writes its upload: a file in the agreed precision, rounded, never clipped."""

    def __init__(
        self, path: str | Path, *, precision: Precision = "fp64", int8_range: float | None = None
    ) -> None:
        self.path, self._precision, self._int8_range = Path(path), precision, int8_range
        if self.path.suffix.lower() in _TABLES:
            raise OptionError(
                f"'{path}' has the name of a table, whose place an upload must not take. Choose "
                "another, such as north.safetensors."
            )
        if (precision == "int8") != (int8_range is not None):
            raise OptionError(
                "int8_range goes with precision='int8', and only with it. Agree on both, or "
                "neither."
            )
        self._scale = int8_scale(int8_range)

    @contextmanager
    def __call__(self, header: UploadHeader) -> Iterator[Self]:
        """Begin the file: whole when the block ends, and not there if something is raised in it."""
        self._name = f"the upload of party '{header.party}'"
        start, self._places = self._layout(header)
        self._missing = set(self._places) - {"rows"}
        self._written = np.zeros(header.n_rows, dtype=np.bool_)
        last = self._places["rows"]
        with WholeFile(self.path, n_bytes=last.offset + last.n_bytes) as self._file:
            self._file.write(start, offset=0)
            yield self
            self._refuse_incomplete()

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
        self._file.write(self._rounded("rows", block, place), offset=place.offset)
        self._written[start:stop] = True

    def read_rows(self, start: int, stop: int) -> Matrix:
        """Read back rows that were written, to put them into another order."""
        place = part_of(self._places["rows"], slice(start, stop), what=self._name)
        block: Matrix = np.empty(place.shape, place.dtype)
        self._file.read(block, offset=place.offset)
        return block

    def _layout(self, header: UploadHeader) -> tuple[bytes, dict[str, Place]]:
        """Return the file's first bytes and where its tables go; refuse what no reader takes."""
        n_rows, width, height = header.n_rows, header.n_components, header.n_anchor_rows
        if min(n_rows, width, height) < 1 or not is_name(header.party):
            raise ShapeError(
                f"an upload of party {header.party!r} with {n_rows} rows, {width} components and "
                f"{height} anchor rows cannot be written. Each number has to be 1 or more, and the "
                "name 1 to 100 printable characters."
            )
        rows, image = map(np.dtype, STORED[self._precision])
        labels = [("labels", np.dtype(_LABELS[header.labels]), (n_rows,))] if header.labels else []
        metadata = {
            "format": FORMAT,
            "party": header.party,
            "agreement_digest": header.agreement_digest.hex(),
            "anchor_tag": header.anchor_tag.hex(),
            "simulated": "true" if header.simulated else "false",
        }
        if self._scale is not None:
            metadata["int8_scale"] = repr(self._scale)
        tables = [
            ("anchor_image", image, (height, width)),
            *labels,
            ("rows", rows, (n_rows, width)),
        ]
        return make_header(tables, metadata=metadata)

    def _write(self, name: str, table: npt.NDArray[Any]) -> None:
        """Write one whole table."""
        if name not in self._places:
            raise StepError(f"{self._name} was announced without {name}. Give its header labels=.")
        place = self._places[name]
        self._file.write(self._rounded(name, table, place), offset=place.offset)
        self._missing.discard(name)

    def _rounded(self, name: str, table: npt.NDArray[Any], place: Place) -> npt.NDArray[Any]:
        """Return a table as the file holds it."""
        if table.shape != place.shape:
            raise ShapeError(
                f"{name} of {self._name} have shape {table.shape}, announced was {place.shape}. "
                "Give all of it."
            )
        if table.dtype == place.dtype:  # rows that were read back are not rounded again
            return np.ascontiguousarray(table)
        if table.dtype.kind != "f" or name == "labels":
            raise DtypeError(
                f"{name} of {self._name} are {table.dtype}, announced was {place.dtype}. Convert "
                "them yourself."
            )
        if name == "rows" and self._scale is not None:
            # before the rounding: NaN fails this, too, and would be some whole number afterwards
            if not np.all(np.abs(table) <= self._int8_range):
                self._refuse_outside(f"the agreed int8_range of {self._int8_range:g}")
            # to the nearest step, halves to even: an error of half a step at most, and of mean 0;
            # astype alone cuts towards 0, which shrinks every row
            return np.rint(table / self._scale).astype(np.int8)
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused
            found = np.ascontiguousarray(table, dtype=place.dtype)
        if not np.all(np.isfinite(found)):
            self._refuse_outside(f"what {place.dtype} holds")
        return found

    def _refuse_outside(self, bounds: str) -> None:
        raise OptionError(
            f"the projected rows or the anchor image in {self._name} are not all within {bounds}, "
            "and are not clipped. Look for outliers and for units in the table; or agree on a "
            "larger range, or on precision='fp32'."
        )

    def _refuse_incomplete(self) -> None:
        """Raise StepError unless all was written."""
        rows = int(self._written.size - np.count_nonzero(self._written))
        if rows or self._missing:
            lacking = [*sorted(self._missing), *([f"{rows:,} of its rows"] if rows else [])]
            raise StepError(
                f"{self._name} is not complete: {' and '.join(lacking)} were never written, so no "
                "file was made. Write all of it before the block ends."
            )


def check_precision(
    payload: Payload, *, precision: Precision, int8_range: float | None = None
) -> None:
    """Raise MessageError unless an upload stands in the agreed precision."""
    found = payload.rows_place.dtype, payload.image_place.dtype
    rows, image = map(np.dtype, STORED[precision])
    scale = int8_scale(int8_range)
    if (*found, payload.int8_scale) == (rows, image, scale):
        return
    raise MessageError(
        f"party '{payload.party}' sent {found[0]} rows in steps of {payload.int8_scale} and an "
        f"anchor image of {found[1]}; with precision='{precision}' they are {rows} in steps of "
        f"{scale}, and {image}. Ask it to prepare its upload with this agreement."
    )


SUFFIX = ".safetensors"
_SHARED = ("agreement_digest", "anchor_tag", "image_place", "labels_place", "rows_place")


def write_upload(
    upload: Upload,
    path: Path,
    *,
    precision: Precision | None = None,
    int8_range: float | None = None,
) -> None:
    """Write an upload to a file; in the precision that its rows have, if none is named."""
    as_they_are = {np.dtype(rows): each for each, (rows, _) in STORED.items()}[upload.rows.dtype]
    labels = upload.labels
    header = UploadHeader(
        party=upload.party,
        agreement_digest=upload.agreement_digest,
        anchor_tag=upload.anchor_tag,
        simulated=upload.simulated,
        n_rows=upload.rows.shape[0],
        n_components=upload.rows.shape[1],
        n_anchor_rows=upload.anchor_image.shape[0],
        labels=None if labels is None else labels.dtype.name,
    )
    file = UploadFile(path, precision=precision or as_they_are, int8_range=int8_range)
    with file(header) as writer:
        writer.write_anchor_image(upload.anchor_image)
        if labels is not None:
            writer.write_labels(labels)
        writer.write_rows(0, upload.rows)


class UploadFolder(View[Payload]):
    """The uploads in a folder, in the order of the parties' names, looked at once, here."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        found: dict[str, Payload] = {}
        alike: dict[object, Any] = {}  # of 20,000 headers most say the same: it is kept once
        with explained(f"the folder '{path}' cannot be read", advice=READABLE):
            files = [each for each in self.path.iterdir() if each.suffix == SUFFIX]
        for file in sorted(each for each in files if not each.name.startswith(".")):
            payload = open_payload(file)
            if payload.party in found:
                raise DuplicatePartyError(
                    f"'{found[payload.party].path}' and '{payload.path}' are both uploads of party "
                    f"'{payload.party}': one is a duplicate or an impostor's. Remove it from the "
                    "folder."
                )
            said = {word: getattr(payload, word) for word in _SHARED}
            once = {word: alike.setdefault(each, each) for word, each in said.items()}
            found[payload.party] = replace(payload, **once)
        payloads = dict(sorted(found.items()))
        super().__init__(payloads, read=payloads.__getitem__)  # their numbers stay on disk
