"""An upload in the precision that the agreement names: rounded block by block, never clipped."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from cobasis.bundle.payload import Payload, PayloadHeader, PayloadWriter, open_payload
from cobasis.errors import MessageError, OptionError
from cobasis.protocol.agreement_fields import Precision

STORED = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "int8": "int8"}
"""How the rows stand in the file; the anchor image is float16 at the least."""

_STEPS = 127
_BLOCK_BYTES = 2**23


def int8_scale(int8_range: float) -> float:
    """Return what one step of int8 means where values lie within ``+-int8_range``."""
    if not 0 < int8_range < math.inf:
        raise OptionError(f"int8_range={int8_range!r} is not a number above 0. Agree on one.")
    return int8_range / _STEPS


def in_precision(
    path: Path, *, to: Path, precision: Precision, int8_range: float | None = None
) -> Path:
    """Rewrite an upload in the agreed precision."""
    payload = open_payload(path)
    if (precision == "int8") != (int8_range is not None):
        raise OptionError(
            "int8_range goes with precision='int8', and only with it. Agree on both, or neither."
        )
    if payload.rows_place.dtype == np.dtype(STORED[precision]):
        return path
    labels = payload.labels()
    header = PayloadHeader(
        party=payload.party,
        agreement_digest=payload.agreement_digest,
        anchor_tag=payload.anchor_tag,
        simulated=payload.simulated,
        n_rows=payload.n_rows,
        n_components=payload.n_components,
        n_anchor_rows=payload.n_anchor_rows,
        dtype=STORED[precision],
        labels=None if labels is None else labels.dtype.name,
        int8_scale=None if int8_range is None else int8_scale(int8_range),
    )
    rounded = _rounding(precision, int8_range=int8_range, party=payload.party)
    per_block = max(1, _BLOCK_BYTES // (8 * payload.n_components))
    with PayloadWriter(to, header=header) as writer:
        image = payload.anchor_image()
        writer.write_anchor_image(_as_floats(image, _image_dtype(precision), payload.party))
        if labels is not None:
            writer.write_labels(labels)
        for start in range(0, payload.n_rows, per_block):
            stop = min(start + per_block, payload.n_rows)
            writer.write_rows(start, rounded(payload.row_block(start, stop)))
    return to


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


def _rounding(
    precision: Precision, *, int8_range: float | None, party: str
) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
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
