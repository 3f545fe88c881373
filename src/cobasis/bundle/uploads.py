"""Uploads as files, in the precision that the agreement names, and a folder of them opened."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cobasis.algorithms.images import View
from cobasis.bundle.payload import Payload, PayloadHeader, PayloadWriter, open_payload
from cobasis.disk.calls import READABLE, explained
from cobasis.errors import DuplicatePartyError, MessageError, OptionError
from cobasis.protocol.agreement_fields import Precision
from cobasis.protocol.messages import Upload, UploadHeader

STORED = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "int8": "int8"}
"""How the rows stand in the file; the anchor image is float16 at the least."""

_STEPS = 127
_TABLES = (".csv", ".parquet", ".pq")

_Rounded = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


def int8_scale(int8_range: float) -> float:
    """Return what one step of int8 means where values lie within ``+-int8_range``."""
    if not 0 < int8_range < math.inf:
        raise OptionError(f"int8_range={int8_range!r} is not a number above 0. Agree on one.")
    return int8_range / _STEPS


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

    def __call__(self, header: UploadHeader) -> PayloadWriter:
        """Begin the file."""
        stored: Precision = self._precision
        scale = None if self._int8_range is None else int8_scale(self._int8_range)
        told = PayloadHeader(**vars(header), dtype=STORED[stored], int8_scale=scale)
        if stored == "fp64":
            return PayloadWriter(self.path, header=told)
        rounded = _rounding(stored, int8_range=self._int8_range, party=header.party)
        return _RoundingWriter(self.path, header=told, rounded=rounded)


class _RoundingWriter(PayloadWriter):
    """Rounds what comes as float64, and takes as it is what was read back."""

    def __init__(self, path: Path, *, header: PayloadHeader, rounded: _Rounded) -> None:
        super().__init__(path, header=header)
        self._rounded, self._party = rounded, header.party
        self._image = "float16" if header.dtype == "int8" else header.dtype

    def write_anchor_image(self, image: npt.NDArray[Any]) -> None:
        super().write_anchor_image(_as_floats(image, self._image, self._party))

    def write_rows(self, start: int, block: npt.NDArray[Any]) -> None:
        super().write_rows(start, self._rounded(block) if block.dtype == np.float64 else block)


def check_precision(
    payload: Payload, *, precision: Precision, int8_range: float | None = None
) -> None:
    """Raise MessageError unless an upload stands in the agreed precision."""
    rows, image = payload.rows_place.dtype, payload.image_place.dtype
    wanted = np.dtype(STORED[precision]), np.dtype(_image_dtype(precision))
    scale = None if int8_range is None else int8_scale(int8_range)
    if (rows, image) == wanted and payload.int8_scale == scale:
        return
    raise MessageError(
        f"party '{payload.party}' sent {rows} rows in steps of {payload.int8_scale} and an anchor "
        f"image of {image}; with precision='{precision}' they are {wanted[0]} in steps of {scale}, "
        f"and {wanted[1]}. Ask it to prepare its upload with this agreement."
    )


def _image_dtype(precision: Precision) -> str:
    return "float16" if precision == "int8" else STORED[precision]


def _rounding(precision: Precision, *, int8_range: float | None, party: str) -> _Rounded:
    """Return what rounds a block of rows."""
    if int8_range is None:
        return lambda block: _as_floats(block, STORED[precision], party)

    def steps(block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if not np.all(np.abs(block) <= int8_range):
            _refuse(party, f"the agreed int8_range of {int8_range:g}")
        return np.rint(block / int8_scale(int8_range)).astype(np.int8)

    return steps


def _as_floats(block: npt.NDArray[Any], dtype: str, party: str) -> npt.NDArray[Any]:
    with np.errstate(over="ignore"):
        found = block.astype(dtype)
    if not np.all(np.isfinite(found)):
        _refuse(party, f"what {dtype} holds")
    return found


def _refuse(party: str, bounds: str) -> NoReturn:
    raise OptionError(
        f"the projected rows or the anchor image of party '{party}' are not all within {bounds}, "
        "and are not clipped. Look for outliers and for units in the table; or agree on a larger "
        "range, or on precision='fp32'."
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
    as_they_are = {dtype: each for each, dtype in STORED.items()}[upload.rows.dtype.name]
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
    file = UploadFile(path, precision=precision or as_they_are, int8_range=int8_range)  # type: ignore[arg-type]
    with file(header) as writer:
        writer.write_anchor_image(upload.anchor_image)
        if labels is not None:
            writer.write_labels(labels)
        writer.write_rows(0, upload.rows)


class UploadFolder(View[Payload]):
    """The uploads in a folder, by party name, in the names' order.

    What is in the folder is looked at once, here; a file that is changed later is refused when
    it is read.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        found: dict[str, Payload] = {}
        alike: dict[object, Any] = {}  # of 20,000 headers most say the same: it is kept once
        for name in _file_names(self.path):
            payload = open_payload(self.path / name)
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

    def __repr__(self) -> str:
        """Say where, and how many."""
        return f"<UploadFolder '{self.path}' of {len(self)} parties>"


def _file_names(folder: Path) -> list[str]:
    """Return the names of a folder's files that are whole, hidden ones not counted."""
    with explained(f"the folder '{folder}' cannot be read", advice=READABLE):
        names = [path.name for path in folder.iterdir()]
    return sorted(name for name in names if name.endswith(SUFFIX) and not name.startswith("."))
