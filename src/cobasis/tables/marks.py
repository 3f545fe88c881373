"""Marks: what a finished pass over a party's rows gave, kept until its upload is whole.

A mark is private: principal directions say much about the rows. Its file can be read by its
owner only, belongs to one state of one table and one agreement, and goes when the work is done.
"""

import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from cobasis.errors import DiskError
from cobasis.linalg.arrays import Matrix

SUFFIX = ".mark"


class Marks(MutableMapping[str, Matrix]):
    """Arrays by name in a folder, as long as what they were made from is still the same.

    Parameters
    ----------
    folder : Path
        Made when the first mark is set, for its owner only.
    bound_to : mapping of str to str
        What the marks were made from: table, size, time, agreement, party. A mark that is bound
        to something else counts as absent, and is written over.

    Notes
    -----
    **Who sees what.** The party alone: files have mode 0600, the folder 0700.

    **Cost.** One small file per mark, on the disk before it has its name.

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

    def __init__(self, folder: Path, *, bound_to: Mapping[str, str]) -> None:
        self._folder = folder
        self._bound_to = dict(bound_to)

    def __getitem__(self, name: str) -> Matrix:
        """Read a mark; KeyError when there is none of that name that fits."""
        path = self._path(name)
        try:
            with safe_open(path, framework="numpy") as file:
                if file.metadata() == self._bound_to:
                    found: Matrix = file.get_tensor(name)
                    return found
        except (OSError, SafetensorError):
            pass
        raise KeyError(name)

    def __setitem__(self, name: str, array: Matrix) -> None:
        """Write a mark; whole, or not at all."""
        path = self._path(name)
        part = self._part(name)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.unlink(missing_ok=True)
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(save({name: array.copy(order="C")}, metadata=self._bound_to))
                file.flush()
                os.fsync(descriptor)
            part.replace(path)
        except OSError as error:
            msg = (
                f"the work folder '{self._folder}' cannot be written: {error.strerror}. The pass "
                "over the rows would be lost when it is interrupted. Free some space, or choose "
                "another folder with work=."
            )
            raise DiskError(msg) from error

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
