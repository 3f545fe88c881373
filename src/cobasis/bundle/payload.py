"""What an upload is on disk: one safetensors file per party, read in parts.

Any safetensors library reads it. The tables are `anchor_image`, `labels` (not for
representation) and, last, `rows`, which may come in any order; the metadata name the party, the
agreement and the anchor.
"""

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.disk.tensors import (
    Header,
    Place,
    is_name,
    part_of,
    read_header,
    refuse,
)
from cobasis.disk.whole import Stamp, read_array
from cobasis.linalg.arrays import Matrix
from cobasis.protocol.messages import Labels

FORMAT = "cobasis/upload/1"

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

    @property
    def _what(self) -> str:
        return f"the file '{self.path.name}' of party '{self.party}'"

    def _read(self, place: Place) -> npt.NDArray[Any]:
        array = np.empty(place.shape, place.dtype)
        read_array(self.path, array, offset=place.offset, stamp=self.stamp, what=self._what)
        if array.dtype == np.int8:
            # the product in double, and one rounding to float32: the step is no float32 itself
            return (array * np.float64(self.int8_scale or 0)).astype(np.float32)
        return array.astype(np.float32) if array.dtype == np.float16 else array


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
