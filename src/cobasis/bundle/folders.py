"""Folders: everybody's uploads, and what a run keeps: the target, and the fits that were made.

Fits stand in shards of some megabytes, `fits-00000.safetensors` and on. Each file is there whole or
not at all, so that a run that was killed at any moment goes on where the last one ends.
"""

import json
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from cobasis.algorithms.base import Fits
from cobasis.algorithms.fits import Fit, Target
from cobasis.algorithms.images import View
from cobasis.bundle.uploads import Payload, open_payload
from cobasis.disk.calls import READABLE, explained
from cobasis.disk.lock import Lock
from cobasis.disk.tensors import read_header, read_tables, write_tables
from cobasis.disk.whole import make_folder
from cobasis.errors import DiskError, DuplicatePartyError, FileFormatError, StepError

SHARD_BYTES = 8 * 2**20
"""How much is gathered before it goes to disk: what a kill can lose, at most."""

_MAX_HEADER = 2**26  # files of one's own; the target's names everybody who shaped it
_NUMBERS = np.dtype("<f8")
_TARGET, _SHARDS = "target.safetensors", "fits-*.safetensors"
_TENSOR = "fit of "  # before a party's name: a name may be any text, the format's own words too

SUFFIX = ".safetensors"


class UploadFolder(View[Payload]):
    """The uploads in a folder, in the order of the parties' names, looked at once, here."""

    def __init__(self, path: Path) -> None:
        found: dict[str, Payload] = {}
        with explained(f"the folder '{path}' cannot be read", advice=READABLE):
            files = [each for each in path.iterdir() if each.suffix == SUFFIX]
        for file in sorted(each for each in files if not each.name.startswith(".")):
            payload = open_payload(file)
            if payload.party in found:
                raise DuplicatePartyError(
                    f"'{found[payload.party].path}' and '{payload.path}' are both uploads of party "
                    f"'{payload.party}': one is a duplicate or an impostor's. Remove it from the "
                    "folder."
                )
            found[payload.party] = payload
        payloads = dict(sorted(found.items()))
        super().__init__(payloads, read=payloads.__getitem__)  # their numbers stay on disk


class FitFolder(Fits):
    """Fits on disk, by party name, and their target; what is in it is never fitted again.

    Fits are added inside a ``with`` block, by one process at a time; at its end, or when
    something is raised in it, Ctrl-C included, what was gathered is written. They are read
    inside and outside.
    """

    data: dict[str, Any]  # fits that are gathered, and the places of others

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._gathered: list[str] = []
        self._gathered_bytes = 0
        self._lock: ExitStack | None = None
        self._load()

    def keep(self, target: Target) -> None:
        self._require_open()
        facts = {name: getattr(target, name) for name in ("shaped_by", "iterations", "converged")}
        told = {"facts": json.dumps(facts)}
        write_tables(self.path / _TARGET, {"rows": target.rows}, metadata=told)
        super().keep(target)

    def _load(self) -> None:
        """Look at what is in the folder, again when it has been locked."""
        self.data, self.target = {}, None
        for shard in sorted(self.path.glob(_SHARDS)):
            self._index(shard)
        # there is none where it is damaged; a DiskError is not damage
        with suppress(FileFormatError, KeyError, TypeError, ValueError):
            if (path := self.path / _TARGET).exists():
                tables, header = read_tables(path, max_header=_MAX_HEADER)
                told = json.loads(header.metadata["facts"])
                shaped_by = tuple(told.pop("shaped_by"))
                self.target = Target(rows=tables["rows"], shaped_by=shaped_by, **told)

    def flush(self) -> None:
        """Write what was gathered; afterwards a kill loses none of it."""
        if not self._gathered:
            return
        numbers = (int(each.stem.partition("-")[2]) for each in self.path.glob(_SHARDS))
        number = 1 + max(numbers, default=-1)
        fits: dict[str, Fit] = {_TENSOR + party: self.data[party] for party in self._gathered}
        tables = {name: np.asarray(x.change_of_basis, _NUMBERS) for name, x in fits.items()}
        determinations = [fit.determination for fit in fits.values()]
        path = self.path / f"fits-{number:05d}.safetensors"
        write_tables(path, tables, metadata={"determination": json.dumps(determinations)})
        self._index(path)
        self._gathered, self._gathered_bytes = [], 0

    def __enter__(self) -> Self:
        """Take the folder for this process; a second one that writes to it is refused."""
        make_folder(self.path)
        with ExitStack() as lock:
            lock.enter_context(Lock(self.path / "lock", what=f"'{self.path}'"))
            self._load()
            self._lock = lock.pop_all()
        return self

    def __exit__(self, *raised: object) -> None:
        lock, self._lock = self._lock, None
        with lock or nullcontext():
            self.flush()

    def __setitem__(self, party: str, fit: Fit) -> None:
        """Add one party's fit; it goes to disk with those that come after it."""
        self._require_open()
        self.data[party] = fit
        self._gathered.append(party)
        self._gathered_bytes += fit.change_of_basis.nbytes
        if self._gathered_bytes >= SHARD_BYTES:
            self.flush()

    def _require_open(self) -> None:
        if self._lock is None:
            raise StepError(
                f"'{self.path}' is not open. Add fits inside `with FitFolder(...) as fits:`."
            )

    def __getitem__(self, party: str) -> Fit:
        found = self.data[party]
        if isinstance(found, Fit):
            return found
        header, place, determination = found
        named = replace(header, what=f"the fit of party '{party}' in '{header.path}'")
        return Fit(change_of_basis=named.read(place), determination=determination)

    def _index(self, path: Path) -> None:
        try:
            header = read_header(path, max_bytes=_MAX_HEADER)
            told = json.loads(header.metadata["determination"])
            fits = list(zip(header.places.items(), told, strict=True))
        except (FileFormatError, KeyError, TypeError, ValueError):
            raise DiskError(
                f"'{path}' is damaged: this is not what cobasis wrote there. Check the disk, "
                "delete the folder, and start again; a damaged file of fits may also be deleted "
                "alone."
            ) from None
        for (name, place), each in fits:
            self.data[name.removeprefix(_TENSOR)] = header, place, each
