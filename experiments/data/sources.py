"""Evaluation data in its original formats, from the folder that COBASIS_DATA names."""

import gzip
import hashlib
import lzma
import os
from dataclasses import dataclass
from pathlib import Path

import polars as pl

KNOWN = pl.read_csv(Path(__file__).with_name("sources.csv"))


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file: where it lies under COBASIS_DATA, its digest, and where it comes from."""

    path: str
    sha256: str
    origin: str


def source(path: str) -> Source:
    return Source(**KNOWN.row(by_predicate=pl.col("path") == path, named=True))


class MissingDataError(FileNotFoundError):
    """An evaluation file that is not there, or is not the one that was measured."""


def read_verified(source: Source) -> bytes:
    """Return the content of a file, unpacked, after checking its SHA-256."""
    path = path_verified(source)
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)
    return unpack(path.read_bytes())


def table(source: Source, separator: str = ",") -> list[dict[str, str]]:
    """Return the lines of a file with a head, as they are written."""
    content = read_verified(source)
    return pl.read_csv(
        content, separator=separator, infer_schema=False, empty_string_is_null=False
    ).to_dicts()


def path_verified(source: Source) -> Path:
    """Return where a file lies, after checking its SHA-256, for what opens files itself."""
    folder = os.environ.get("COBASIS_DATA")
    path = Path(folder or ".") / source.path
    if folder is None or not path.is_file():
        msg = (
            f"{source.path} is not in the folder that COBASIS_DATA names ({folder or 'not set'}). "
            f"Get {source.origin}, and put it there under that name."
        )
        raise MissingDataError(msg)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != source.sha256:
        msg = (
            f"{path} has SHA-256 {found}, expected {source.sha256}: it is another version, and "
            f"figures would not compare. Get {source.origin}."
        )
        raise MissingDataError(msg)
    return path
