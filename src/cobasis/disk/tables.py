"""Whole tables of numbers in one safetensors file: written at once, and read at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.disk.files import WholeFile, read_array
from cobasis.disk.tensors import Header, make_header, read_header


def write_tables(
    path: Path, tables: Mapping[str, npt.NDArray[Any]], *, metadata: Mapping[str, str]
) -> None:
    """Write whole tables into one safetensors file, or nothing."""
    described = [(name, table.dtype, table.shape) for name, table in tables.items()]
    start, places = make_header(described, metadata=metadata)
    n_bytes = len(start) + sum(place.n_bytes for place in places.values())
    with WholeFile(path, n_bytes=n_bytes) as file:
        file.write(start, offset=0)
        for name, place in places.items():
            file.write(np.ascontiguousarray(tables[name]), offset=place.offset)


def read_tables(path: Path) -> tuple[dict[str, npt.NDArray[Any]], Header]:
    """Read every table of a safetensors file, whatever it holds."""
    header = read_header(path)
    tables: dict[str, npt.NDArray[Any]] = {}
    for name, place in header.places.items():
        tables[name] = np.empty(place.shape, place.dtype)
        read_array(path, tables[name], offset=place.offset, stamp=header.stamp, what=header.what)
    return tables, header
