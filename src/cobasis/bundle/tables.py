"""Whole tables of numbers in one safetensors file: written at once, and read at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.bundle.files import WholeFile, read_array
from cobasis.bundle.tensors import Header, make_header, read_header


def write_tables(
    path: Path, tables: Mapping[str, npt.NDArray[Any]], *, metadata: Mapping[str, str]
) -> None:
    """Write whole tables into one safetensors file, or nothing.

    Parameters
    ----------
    path : Path
        Where it will stand; replaced if it is there.
    tables : mapping of str to ndarray
        By name, of float64, float32 or int64, which is kept; none empty.
    metadata : mapping of str to str
        What else the file says.

    Raises
    ------
    DiskError
        The disk is full, or may not be written to.

    Notes
    -----
    **Who sees what.** Whoever may read the folder.

    **Cost.** The file is as large as the tables; it waits until they are on the disk.
    """
    described = [(name, table.dtype, table.shape) for name, table in tables.items()]
    start, places = make_header(described, metadata=metadata)
    n_bytes = len(start) + sum(place.n_bytes for place in places.values())
    with WholeFile(path, n_bytes=n_bytes) as file:
        file.write(start, offset=0)
        for name, place in places.items():
            file.write(np.ascontiguousarray(tables[name]), offset=place.offset)


def read_tables(path: Path) -> tuple[dict[str, npt.NDArray[Any]], Header]:
    """Read every table of a safetensors file, whatever it holds.

    Parameters
    ----------
    path : Path
        Such as `write_tables` leaves.

    Returns
    -------
    dict of str to ndarray, Header
        The tables by name, in the file's order and dtypes, and what the file says of itself.

    Raises
    ------
    FileFormatError, FileChangedError, DiskError
        It is truncated, longer than it says or no such file, changes meanwhile, or cannot be
        read.

    Notes
    -----
    **Who sees what.** What is in the file.

    **Cost.** One read, and as much memory as the file has bytes.
    """
    header = read_header(path)
    tables: dict[str, npt.NDArray[Any]] = {}
    for name, place in header.places.items():
        tables[name] = np.empty(place.shape, place.dtype)
        read_array(path, tables[name], offset=place.offset, stamp=header.stamp, what=header.what)
    return tables, header
