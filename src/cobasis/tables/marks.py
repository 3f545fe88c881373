"""Marks: what a finished pass over a party's rows gave, kept until its upload is whole.

A mark is private: principal directions say much about the rows. Its file can be read by its
owner only, belongs to one state of one table and one agreement, and goes when the work is done.
A party with a key of its own seals it as well, since a killed process leaves it behind.
"""

import json
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load, save

from cobasis.disk.whole import PART, make_folder, remove_tree, write_whole
from cobasis.errors import SealError
from cobasis.linalg.arrays import Matrix

SUFFIX = ".mark"


class Marks(MutableMapping[str, Matrix]):
    """Arrays by name in a folder, as long as what they were made from is still the same.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder = Path(parent, "work")
    ...     Marks(folder, bound_to={"table": "1"})["directions"] = np.eye(2)
    ...     list(Marks(folder, bound_to={"table": "1"})), list(Marks(folder, bound_to={}))
    (['directions'], [])
    """

    def __init__(
        self,
        folder: Path,
        *,
        bound_to: Mapping[str, str],
        seal: Callable[[bytes], bytes] = bytes,
        unseal: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._folder = folder
        self._bound_to = dict(bound_to)
        self._seal, self._unseal = seal, unseal

    def __getitem__(self, name: str) -> Matrix:
        """Read a mark; KeyError when there is none of that name that fits."""
        try:
            data = self._unseal(self._path(name).read_bytes())
            found = load(data)
        except (OSError, SafetensorError, SealError):
            raise KeyError(name) from None
        if name not in found or _metadata(data) != self._bound_to:
            raise KeyError(name)
        return found[name]

    def __setitem__(self, name: str, array: Matrix) -> None:
        """Write a mark; whole, or not at all."""
        kept = self._seal(save({name: array.copy(order="C")}, metadata=self._bound_to))
        make_folder(self._folder)
        write_whole(self._path(name), kept)

    def __delitem__(self, name: str) -> None:
        """Delete a mark; KeyError when there is none."""
        if not self._path(name).exists():
            raise KeyError(name)
        remove_tree(self._path(name))

    def __iter__(self) -> Iterator[str]:
        """Give the names of the marks that fit."""
        names = sorted(path.stem for path in self._folder.glob(f"*{SUFFIX}"))
        return iter([name for name in names if name in self])

    def __len__(self) -> int:
        """Count the marks that fit."""
        return len(list(iter(self)))

    def clear(self) -> None:
        """Delete the marks that fit, finished or half-written, and the folder if it is empty.

        The folder may be shared: what is bound to something else, or no mark, stays.
        """
        for name in self:
            for end in ("", PART):
                remove_tree(self._folder / f"{name}{SUFFIX}{end}")
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            remove_tree(self._folder)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{SUFFIX}"


def _metadata(data: bytes) -> object:
    """Return what whole safetensors bytes say beside their arrays."""
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]).get("__metadata__")
