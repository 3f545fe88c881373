"""Aligned rows on disk: a folder of partitions and the manifest that says what is in them.

Each partition is one safetensors file that fits in memory many times over, and a random
sample of all parties' rows. The manifest is written last: a folder without one is unfinished.
Partitions are read, never mapped: mapped pages count as memory of the process.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cobasis.disk.files import Stamp
from cobasis.disk.tensors import Header, read_tables
from cobasis.disk.whole import write_whole
from cobasis.errors import CobasisError, PartitionError
from cobasis.linalg.arrays import Matrix

Rows: TypeAlias = Matrix
"""Aligned rows: float64, or float32 where the folder says so."""

Labels: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64]

FORMAT = "cobasis/aligned/1"
MANIFEST = "manifest.json"

_AGAIN = f"Delete it and {MANIFEST}, and run write_aligned() again: the other partitions are kept."


@dataclass(frozen=True, kw_only=True)
class Partition:
    """One file of a folder of aligned rows.

    Attributes
    ----------
    name : str
        Of the file.
    n_rows : int
        Rows in it.
    sha256 : str
        Of its rows and labels, in hexadecimal.
    """

    name: str
    n_rows: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class AlignedRows:
    """Aligned rows of all parties, on disk.

    Attributes
    ----------
    path : Path
        The folder.
    run : str
        Digest of what they were made from: uploads and changes of basis.
    parties : mapping of str to int
        How many rows each party gave.
    n_components : int
        Columns.
    dtype : str
        ``"float32"`` or ``"float64"``.
    label_dtype : str or None
        ``"int64"`` for classes, ``"float64"`` for numbers, None without labels.
    class_counts : mapping of int to int
        Rows of each class; empty unless labels are classes.
    simulated : bool
        Whether some upload was drawn from a seed.
    partitions : tuple of Partition
        In order of their names.
    """

    path: Path
    run: str
    parties: Mapping[str, int] = field(repr=False)
    n_components: int
    dtype: str
    label_dtype: str | None
    class_counts: Mapping[int, int] = field(repr=False)
    simulated: bool
    partitions: tuple[Partition, ...] = field(repr=False)
    _checked: dict[int, Stamp] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_rows(self) -> int:
        """Rows of all parties."""
        return sum(each.n_rows for each in self.partitions)

    def read(self, index: int) -> tuple[Rows, Labels | None]:
        """Read one partition into memory."""
        expected = self.partitions[index]
        file = self.path / expected.name
        tensors, header = read_partition(file)
        wanted: dict[str, tuple[str, tuple[int, ...]]]
        wanted = {"rows": (self.dtype, (expected.n_rows, self.n_components))}
        if self.label_dtype is not None:
            wanted["labels"] = (self.label_dtype, (expected.n_rows,))
        found = {name: (str(each.dtype), each.shape) for name, each in tensors.items()}
        if found != wanted:
            raise PartitionError(
                f"partition '{file}' holds {found}, its manifest says {wanted}. {_AGAIN}"
            )
        if self._checked.get(index) != header.stamp:
            if digest_of(tensors) != expected.sha256:
                raise PartitionError(
                    f"partition '{file}' is not what was written: its SHA-256 differs from the "
                    f"manifest's. It was changed, or the disk is failing. {_AGAIN}"
                )
            self._checked[index] = header.stamp
        return tensors["rows"], tensors.get("labels")


def read_partition(file: Path) -> tuple[dict[str, Any], Header]:
    """Read every tensor of a file, whatever it holds."""
    try:
        return read_tables(file)
    except CobasisError as error:
        raise PartitionError(
            f"partition '{file}' cannot be read. {error.args[0]} {_AGAIN}"
        ) from error


def digest_of(tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return the SHA-256, in hexadecimal, of the tensors' bytes in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(tensors[name].data)
    return digest.hexdigest()


def write_manifest(aligned: AlignedRows) -> None:
    """Write the manifest, whole or not at all."""
    content = {key: value for key, value in asdict(aligned).items() if key[0] != "_"}
    text = json.dumps({"format": FORMAT, **content, "path": None}, indent=1)
    write_whole(aligned.path / MANIFEST, text.encode())


def open_aligned(path: str | Path) -> AlignedRows:
    """Open a folder that `write_aligned` has finished."""
    folder = Path(path)
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except OSError as error:
        raise PartitionError(
            f"{folder} has no {MANIFEST} that can be read, so its partitions are unfinished or "
            "it is another folder. Run write_aligned() again: finished partitions are kept."
        ) from error
    try:
        return _from_manifest(folder, json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PartitionError(
            f"{folder / MANIFEST} is no manifest of aligned rows ({FORMAT}). Delete it, and run "
            "write_aligned() again: finished partitions are kept."
        ) from error


def _from_manifest(folder: Path, content: dict[str, Any]) -> AlignedRows:
    """Build the object from the manifest's JSON, whose keys of classes are text."""
    if content.pop("format") != FORMAT:
        raise KeyError(FORMAT)
    content["path"] = folder
    content["class_counts"] = {int(key): n for key, n in content["class_counts"].items()}
    content["partitions"] = tuple(Partition(**each) for each in content["partitions"])
    return AlignedRows(**content)
