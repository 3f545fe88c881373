"""A vault's records on disk: each is one file, sealed as a whole, written whole or not at all.

A sealed record is ``cobasis/vault/1`` and a line feed, an HMAC-SHA256 over all that follows, the
length of a JSON object (four bytes, little-endian), that object, and the arrays as safetensors.
"""

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from cobasis.bundle.files import made_folder, opened
from cobasis.bundle.whole import write_whole
from cobasis.errors import DiskError, VaultError
from cobasis.linalg.hidden import Hidden

Cipher = Callable[[bytes], bytes]
"""Seals for the party's own key, or opens what was sealed so and raises ValueError if it cannot."""

SUFFIX = ".age"
_FAMILY, _FORMAT = b"cobasis/vault/", b"cobasis/vault/1\n"
_MAC, _LENGTH = 32, 4


@dataclass(frozen=True, kw_only=True, repr=False)
class Record(Hidden):
    """What one file holds.

    Attributes
    ----------
    about : mapping of str to JSON values
        All that is no array.
    arrays : mapping of str to ndarray
        Numbers, keys and a model's bytes.

    Notes
    -----
    **Who sees what.** The party alone.

    **Cost.** None.
    """

    about: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]


class Records(Hidden):
    """The records in a folder, by name.

    Parameters
    ----------
    folder : Path
        Made when the first record is written, for its owner only.
    party : str
        Whose they are.
    seal, unseal : callable
        To and from the party's own key. `unseal` raises ValueError for what was not sealed
        for it.
    key : bytes of length 32
        Known to this vault alone. A party's recipient is public, so anybody could seal a record
        for it; nobody else can make one with the right HMAC.

    Notes
    -----
    **Who sees what.** Whoever reads the disk sees how many records there are, how large, and when
    they were written. Names of rounds and parties are sealed, too.

    **Cost.** A record is in memory as a whole, three times over while it is sealed.
    """

    def __init__(
        self, folder: Path, *, party: str, seal: Cipher, unseal: Cipher, key: bytes
    ) -> None:
        self.folder = folder
        self.party = party
        self._seal, self._unseal, self._key = seal, unseal, key

    def put(self, name: str, record: Record) -> None:
        """Write a record; whole, or not at all.

        Parameters
        ----------
        name : str
            Where it stands in the folder, with ``/`` between parts.
        record : Record
            Takes the place of the one of that name.

        Raises
        ------
        DiskError
            The disk is full or may not be written to. The old record still stands.

        Notes
        -----
        **Who sees what.** The party alone: the file is sealed and has mode 0600.

        **Cost.** One file, on the disk before it has its name.
        """
        path = self.path(name)
        made_folder(path.parent)
        write_whole(path, self._seal(self._packed(name, record)))

    def get(self, name: str) -> Record | None:
        """Read a record, None where there is none.

        Parameters
        ----------
        name : str
            As for `put`.

        Returns
        -------
        Record or None
            As it was put.

        Raises
        ------
        VaultError
            The file is damaged, of another version, or another party's.
        DiskError
            It cannot be read.

        Notes
        -----
        **Who sees what.** The party alone; an error holds the file's name, nothing from it.

        **Cost.** The file's size, twice.
        """
        path = self.path(name)
        if not path.exists():
            return None
        with opened(path) as (file, _):
            try:
                sealed = file.readall()
            except OSError as error:
                msg = f"'{path}' cannot be read: {error.strerror}. Check the disk it is on."
                raise DiskError(msg) from error
        try:
            plain = self._unseal(sealed)
        except ValueError as error:
            reason = "it is damaged, or was sealed for another party's key"
            raise VaultError(self._sentence(path, reason)) from error
        return self._unpacked(name, plain)

    def names(self, under: str) -> tuple[str, ...]:
        """Return the names of the records in a folder of the vault, sorted."""
        found = (self.folder / under).glob(f"*{SUFFIX}")
        return tuple(sorted(f"{under}/{path.name.removesuffix(SUFFIX)}" for path in found))

    def path(self, name: str) -> Path:
        """Return where a record stands."""
        return self.folder / f"{name}{SUFFIX}"

    def refuse(self, name: str, reason: str) -> NoReturn:
        """Raise VaultError about a record."""
        raise VaultError(self._sentence(self.path(name), reason))

    def _packed(self, name: str, record: Record) -> bytes:
        """Return a record's bytes, bound to its place."""
        told = {"party": self.party, "record": name, "about": dict(record.about)}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
        arrays = {each: array.copy(order="C") for each, array in record.arrays.items()}
        body = len(text).to_bytes(_LENGTH, "little") + text + save(arrays)
        return _FORMAT + self._mac(body) + body

    def _unpacked(self, name: str, plain: bytes) -> Record:
        """Read a record's bytes back, if this vault wrote them for that place."""
        if not plain.startswith(_FORMAT):
            other = plain.startswith(_FAMILY)
            self.refuse(name, "another version wrote it" if other else "it is no record")
        begin = len(_FORMAT) + _MAC
        body = plain[begin:]
        if not hmac.compare_digest(plain[len(_FORMAT) : begin], self._mac(body)):
            self.refuse(name, "it was not written with this vault's key")
        end = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
        try:
            told, arrays = json.loads(body[_LENGTH:end]), load(body[end:])
        except (ValueError, SafetensorError):
            self.refuse(name, "it cannot be read")
        if told["party"] != self.party:
            self.refuse(name, f"it is party '{told['party']}'s")
        if told["record"] != name:
            self.refuse(name, "it stands in the place of another")
        return Record(about=told["about"], arrays=arrays)

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, "sha256")

    def _sentence(self, path: Path, reason: str) -> str:
        return (
            f"the record '{path.name}' in the vault of party '{self.party}' cannot be used: "
            f"{reason}. Check that the key is this party's; if it is, put the whole vault back "
            "from a copy."
        )
