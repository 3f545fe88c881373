"""Uploads as safetensors files: written in the agreed precision, read in parts, or by folder.

Any safetensors library reads one. The tables are `anchor_image`, `labels` (not for
representation) and, last, `rows`, which may come in any order; the metadata name the party, the
agreement and the anchor.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, ValidationError

from cobasis.bundle.manifest import Words
from cobasis.disk.tensors import Header, part_of, read_header, refuse
from cobasis.disk.whole import WholeFile
from cobasis.errors import MessageError, OptionError
from cobasis.features.outcome import ROLES, VALUE, record_type
from cobasis.linalg.arrays import Array
from cobasis.protocol.agreement import Digest, Precision
from cobasis.protocol.messages import Upload
from cobasis.strict_json import IF_ANY, Strict, findings
from cobasis.tensor_header import MAX_NAME, Place, make_header


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredTable:
    """A table of an upload on disk, or its labels; numbers are read when they are asked for."""

    header: Header  # of its file; every read refuses one that is no longer the same
    place: Place
    scale: float | None = None  # what one step of int8 means
    records: np.dtype[Any] | None = None  # of labels of several columns

    @property
    def shape(self) -> tuple[int, ...]:
        return self.place.shape if self.records is None else self.place.shape[:1]

    def __len__(self) -> int:
        return self.place.shape[0]

    def __getitem__(self, rows: slice) -> Array:
        """Read some rows: float64 as such, and as float32 whatever is smaller."""
        asked = slice(rows.start or 0, len(self) if rows.stop is None else rows.stop)
        array = self.header.read(part_of(self.place, asked, what=self.header.what))
        if self.records is not None:
            return array.view(self.records)[:, 0]
        if array.dtype == np.int8:
            # the product in double, and one rounding to float32: the step is no float32 itself
            return (array * np.float64(self.scale or 0)).astype(np.float32)
        return array.astype(np.float32) if array.dtype == np.float16 else array


@dataclass(frozen=True, kw_only=True, slots=True)
class Payload(Upload):
    rows: StoredTable = field(repr=False)  # type: ignore[assignment]  # slices are all it is
    labels: StoredTable | None = field(repr=False)  # type: ignore[assignment]  # asked for
    anchor_image: StoredTable = field(repr=False)  # type: ignore[assignment]

    @property
    def path(self) -> Path:
        return self.rows.header.path


# of labels of several columns: the value, and what an outcome has beside it
_Columns = Annotated[str, Field(pattern=f"^({VALUE}(,({'|'.join(ROLES)}))*)?$")]
_Scale = Annotated[float, Field(strict=False, gt=0, allow_inf_nan=False)]


class _About(Strict):
    """The metadata of an upload's file, which has nothing but words; it may have others, too."""

    model_config = ConfigDict(extra="ignore")

    format: Literal["cobasis/upload/1"]
    party: Annotated[Words, Field(min_length=1, max_length=MAX_NAME)]
    agreement_digest: Digest
    anchor_tag: Digest
    simulated: Literal["true", "false"]
    linked: Annotated[Digest | Literal[""], IF_ANY] = ""
    label_columns: Annotated[_Columns, IF_ANY] = ""
    int8_scale: Annotated[_Scale | None, IF_ANY] = None


def open_payload(path: Path) -> Payload:
    """Open an upload file; its header is read and checked, its numbers stay on disk."""
    header = read_header(path)
    try:
        about = _About.model_validate(header.metadata)
    except ValidationError as error:
        refuse(header.what, f"its metadata cannot stand: {'; '.join(findings(error))}")
    roles = about.label_columns.split(",")[1:]
    kind = record_type(dict.fromkeys(roles, "")) if about.label_columns else None
    _refuse_tables(header, scaled=about.int8_scale is not None, kind=kind)
    labels = header.places.get("labels")
    file = replace(header, places={}, metadata={})  # of 20,000 files what they say would be much
    return Payload(
        party=about.party,
        agreement_digest=bytes.fromhex(about.agreement_digest),
        anchor_tag=bytes.fromhex(about.anchor_tag),
        linked=bytes.fromhex(about.linked),
        simulated=about.simulated == "true",
        rows=StoredTable(place=header.places["rows"], scale=about.int8_scale, header=file),
        labels=StoredTable(place=labels, records=kind, header=file) if labels else None,
        anchor_image=StoredTable(place=header.places["anchor_image"], header=file),
    )


def _refuse_tables(header: Header, *, scaled: bool, kind: np.dtype[Any] | None) -> None:
    what, places = header.what, header.places
    if set(places) - {"labels"} != {"anchor_image", "rows"}:
        refuse(what, "it has other tables than anchor_image, rows and labels")
    image, rows, labels = places["anchor_image"], places["rows"], places.get("labels")
    tables = len(image.shape) == len(rows.shape) == 2  # noqa: PLR2004 -- a table has two dimensions
    typed = image.dtype.kind == "f" and rows.dtype.kind in "fi" and rows.dtype != np.int64
    typed &= (rows.dtype == np.int8) == scaled
    if not (tables and typed) or image.shape[1] != rows.shape[1]:
        refuse(
            what,
            f"its anchor image is {image.dtype} {image.shape} and its rows are {rows.dtype} "
            f"{rows.shape}; both are tables of floats, or the rows of int8 with an int8_scale, "
            "equally wide",
        )
    # one number for each row, or a record of float64
    shape = rows.shape[:1] if kind is None else (rows.shape[0], len(kind.names or ()))
    kinds = _LABELS.values() if kind is None else [_LABELS["float64"]]
    right = kind is None if labels is None else labels.shape == shape and labels.dtype in kinds
    if not right:
        found = "none" if labels is None else f"{labels.dtype} {labels.shape}"
        refuse(what, f"its labels are {found}, not {' or '.join(map(str, kinds))} {shape}")


STORED: dict[Precision, tuple[str, str]] = {
    "fp64": ("<f8", "<f8"),
    "fp32": ("<f4", "<f4"),
    "fp16": ("<f2", "<f2"),
    # the image fixes the change of basis, so an error in it turns every row of the party alike and
    # no mean over rows takes it out again; that of one row's rounding stays with the row
    "int8": ("i1", "<f2"),
}
"""How rows and anchor image stand in the file."""

STEPS = 127  # -128 stays free, so that the range is the same on both sides of 0
_LABELS = {"int64": np.dtype("<i8"), "float64": np.dtype("<f8")}


class UploadFile:
    """Where a party writes its upload: a file in the agreed precision, rounded, never clipped."""

    def __init__(
        self, path: str | Path, *, precision: Precision = "fp64", int8_range: float | None = None
    ) -> None:
        self.path, self._precision, self._int8_range = Path(path), precision, int8_range
        if self.path.suffix.lower() in {".csv", ".parquet", ".pq"}:
            raise OptionError(
                f"'{path}' has the name of a table, whose place an upload must not take. Choose "
                "another, such as north.safetensors."
            )
        usable = int8_range is None or 0 < int8_range < math.inf
        if (precision == "int8") != (int8_range is not None) or not usable:
            raise OptionError(
                f"int8_range={int8_range!r} goes with precision='int8' only, and is a number above "
                "0. Agree on both, or neither."
            )
        self._scale = None if int8_range is None else int8_range / STEPS

    @contextmanager
    def __call__(self, about: Upload) -> Iterator[dict[str, "_Table"]]:
        """Begin the file: whole when the block ends, and not there if something is raised in it."""
        self.what = f"the upload of party '{about.party}'"
        start, places = self._layout(about)
        last = places["rows"]
        with WholeFile(self.path, n_bytes=last.offset + last.n_bytes) as self.file:
            self.file.write(start)
            tables = {name: _Table(self, name, place) for name, place in places.items()}
            tables.pop("anchor_image")[0 : len(about.anchor_image)] = about.anchor_image
            yield tables

    def _layout(self, about: Upload) -> tuple[bytes, dict[str, Place]]:
        n_rows, (rows, image) = len(about.rows), map(np.dtype, STORED[self._precision])
        tables: list[tuple[str, np.dtype[Any], tuple[int, ...]]] = [
            ("anchor_image", image, about.anchor_image.shape)
        ]
        columns = () if about.labels is None else about.labels.dtype.names or ()
        if columns:
            tables.append(("labels", _LABELS["float64"], (n_rows, len(columns))))
        elif about.labels is not None:
            tables.append(("labels", _LABELS[about.labels.dtype.name], (n_rows,)))
        metadata = _About(
            format="cobasis/upload/1",
            party=about.party,
            agreement_digest=about.agreement_digest.hex(),
            anchor_tag=about.anchor_tag.hex(),
            simulated="true" if about.simulated else "false",
            linked=about.linked.hex(),
            label_columns=",".join(columns),
            int8_scale=self._scale,
        ).model_dump()
        told = {name: str(each) for name, each in metadata.items()}
        return make_header([*tables, ("rows", rows, about.rows.shape)], metadata=told)

    def rounded(self, name: str, table: Array, *, dtype: np.dtype[Any]) -> Array:
        if table.dtype.names:  # records of float64, one behind the other
            table = np.ascontiguousarray(table).view("<f8").reshape(len(table), -1)
        if table.dtype == dtype:  # rows that were read back are not rounded again
            return np.ascontiguousarray(table)
        if name == "rows" and self._scale is not None:
            # before the rounding: NaN fails this, too, and would be some whole number afterwards
            if not np.all(np.abs(table) <= self._int8_range):
                self._refuse_outside(f"the agreed int8_range of {self._int8_range:g}")
            # to the nearest step, halves to even: an error of half a step at most, and of mean 0;
            # astype alone cuts towards 0, which shrinks every row
            return np.rint(table / self._scale).astype(np.int8)
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused
            found = np.ascontiguousarray(table, dtype=dtype)
        if not np.all(np.isfinite(found)):
            self._refuse_outside(f"what {dtype} holds")
        return found

    def _refuse_outside(self, bounds: str) -> None:
        raise OptionError(
            f"the projected rows or the anchor image in {self.what} are not all within {bounds}, "
            "and are not clipped. Look for outliers and for units in the table; or agree on a "
            "larger range, or on precision='fp32'."
        )


class _Table:
    """A table of a file that is being written, in parts and in any order."""

    def __init__(self, upload: UploadFile, name: str, place: Place) -> None:
        self._upload, self._name, self._place = upload, name, place

    def __setitem__(self, place: slice, block: Array) -> None:
        part = part_of(self._place, place, what=self._upload.what)
        made = self._upload.rounded(self._name, block, dtype=part.dtype)
        self._upload.file.write(made, offset=part.offset)

    def __getitem__(self, place: slice) -> Array:
        """Read back rows that were written, as they stand in the file."""
        part = part_of(self._place, place, what=self._upload.what)
        block: Array = np.empty(part.shape, part.dtype)
        self._upload.file.read(block, offset=part.offset)
        return block


def check_precision(
    payload: Payload, *, precision: Precision, int8_range: float | None = None
) -> None:
    found = payload.rows.place.dtype, payload.anchor_image.place.dtype
    rows, image = map(np.dtype, STORED[precision])
    scale = None if int8_range is None else int8_range / STEPS
    if (*found, payload.rows.scale) == (rows, image, scale):
        return
    raise MessageError(
        f"party '{payload.party}' sent {found[0]} rows in steps of {payload.rows.scale} and an "
        f"anchor image of {found[1]}; with precision='{precision}' they are {rows} in steps of "
        f"{scale}, and {image}. Ask it to prepare its upload with this agreement."
    )
