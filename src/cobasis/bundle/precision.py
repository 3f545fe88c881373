"""An upload's file in the precision that the agreement names: rounded, never clipped."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cobasis.bundle.payload import Payload, PayloadHeader, PayloadWriter
from cobasis.errors import MessageError, OptionError
from cobasis.protocol.agreement_fields import Precision
from cobasis.protocol.messages import UploadHeader

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
