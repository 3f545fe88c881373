"""Marks: what a finished pass over a party's rows gave, kept until its upload is whole.

A mark is private: principal directions say much about the rows. Its file can be read by its
owner only, belongs to one state of one table and one agreement, and goes when the work is done.
A party with a key of its own seals it as well, since a killed process leaves it behind.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import load, save

from cobasis.errors import DiskError, SealError
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
        path = self._path(name)
        part = self._part(name)
        kept = self._seal(save({name: array.copy(order="C")}, metadata=self._bound_to))
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.unlink(missing_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(kept)
                file.flush()
                os.fsync(descriptor)
            part.replace(path)
        except OSError as error:
            raise DiskError(
                f"the work folder '{self._folder}' cannot be written: {error.strerror}. The pass "
                "over the rows would be lost when it is interrupted. Free some space, or choose "
                "another folder with work=."
            ) from error

    def __delitem__(self, name: str) -> None:
        """Delete a mark; KeyError when there is none."""
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise KeyError(name) from None

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
            for path in (self._path(name), self._part(name)):
                path.unlink(missing_ok=True)
        with suppress(OSError):
            self._folder.rmdir()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{SUFFIX}"

    def _part(self, name: str) -> Path:
        return self._folder / f"{name}{SUFFIX}.part"


def _metadata(data: bytes) -> object:
    """Return what whole safetensors bytes say beside their arrays."""
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]).get("__metadata__")
