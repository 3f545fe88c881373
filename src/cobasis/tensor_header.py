"""The header of a safetensors file, which models and uploads have.

Eight bytes with its length come first. It says of every tensor its type, shape and place, in strict
JSON; then come the numbers, row by row and without holes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cobasis.strict_json import json_object

PREFIX, MAX_NAME = 8, 100
_ALIGNMENT, _METADATA = 8, "__metadata__"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    dtype: np.dtype[Any]  # little-endian
    shape: tuple[int, ...]  # none of them 0
    offset: int  # from the file's beginning

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def make_header(
    tensors: Sequence[tuple[str, np.dtype[Any], tuple[int, ...]]], *, metadata: Mapping[str, str]
) -> tuple[bytes, dict[str, Place]]:
    described: dict[str, Any] = {_METADATA: dict(metadata)}
    places, end = {}, 0
    for name, dtype, shape in tensors:
        places[name] = Place(dtype=dtype, shape=shape, offset=end)
        start, end = end, end + places[name].n_bytes
        word = f"{dtype.kind.upper()}{8 * dtype.itemsize}"
        described[name] = {"dtype": word, "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(described, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    begin = PREFIX + len(text)
    places = {name: replace(each, offset=begin + each.offset) for name, each in places.items()}
    return len(text).to_bytes(PREFIX, "little") + text, places


def parse_header(text: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a header says of its tensors, and its metadata; ValueError where it is none."""
    try:
        described = json_object(text)
    except ValueError as error:
        raise ValueError(f"its header is {error}") from None
    metadata = described.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError("its metadata are not words by name")
    return described, metadata


def places_in(
    described: Mapping[str, Any], *, begin: int, size: int, dtypes: Mapping[str, np.dtype[Any]]
) -> dict[str, Place]:
    """Return where the tensors of a file of this size stand; ValueError where they do not."""
    places = {
        name: _place(name, entry, begin=begin, dtypes=dtypes) for name, entry in described.items()
    }
    end = begin
    for place in sorted(places.values(), key=lambda each: each.offset):
        if place.offset != end:
            raise ValueError("its tables overlap or leave holes")
        end += place.n_bytes
    if end != size:
        cut = "truncated" if end > size else "longer than it says"
        raise ValueError(f"it is {cut}: {size:,} bytes where its header asks for {end:,}")
    return places


def _place(name: str, entry: object, *, begin: int, dtypes: Mapping[str, np.dtype[Any]]) -> Place:
    match entry:
        case {"dtype": str(word), "shape": list(shape), "data_offsets": [start, stop]}:
            whole = all(type(number) is int and number >= 0 for number in [*shape, start, stop])
            if word in dtypes and whole and shape and 0 not in shape:
                place = Place(dtype=dtypes[word], shape=tuple(shape), offset=begin + start)
                if place.n_bytes == stop - start:
                    return place
    kinds = ", ".join(str(each) for each in dtypes.values())
    raise ValueError(f"its table {name[:MAX_NAME]!r} is described wrongly or is not of {kinds}")
