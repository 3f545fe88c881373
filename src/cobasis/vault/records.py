"""A vault's records on disk: each is one file, sealed as a whole, written whole or not at all.

A sealed record is ``cobasis/vault/1`` and a line feed, an HMAC-SHA256 over all that follows, the
length of a JSON object (four bytes, little-endian), that object, and the arrays as safetensors.
"""

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, move_whole, read_whole, remove_left, write_whole
from cobasis.errors import VaultError
from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import KEY_BYTES, require_key
from cobasis.strict_json import canonical_json, json_object

Cipher = Callable[[bytes], bytes]
"""Seals for the party's own key, or opens what was sealed so and raises ValueError if it cannot."""

Given = Mapping[str, npt.NDArray[Any] | bytes]
"""What a record is made of; bytes are an array of them when it is read."""

SUFFIX = ".age"
_KEY, _GONE = "vault", ".gone"
_FORMAT, _MAC, _LENGTH = b"cobasis/vault/1\n", 32, 4


@dataclass(frozen=True, kw_only=True, repr=False)
class Record(Hidden):
    about: Mapping[str, Any]  # all that is no array
    arrays: Mapping[str, npt.NDArray[Any]]


def seal_anew(folder: Path, *, seal: Cipher, unseal: Cipher) -> None:
    """Seal every record of a vault with a newer key, which opens what was sealed before, too.

    A kill leaves some under the one key and some under the other, and both are read.
    """
    for path in sorted(folder.rglob(f"*{SUFFIX}")):
        with Lock(folder, what=f"the vault '{folder}'", wait=True):
            write_whole(path, seal(unseal(read_whole(path))))


class Records(Hidden):
    def __init__(self, folder: Path, *, party: str, seal: Cipher, unseal: Cipher) -> None:
        self.folder, self.party = folder, party
        self._seal, self._unseal = seal, unseal
        self._mac_key = bytes(KEY_BYTES)  # of the key's own record; sealing is what protects that
        make_folder(folder)
        with self.alone():
            self._key = self._vault_key()
            remove_left(folder, _GONE)
        self._mac_key = self.derived(b"records")

    def derived(self, use: bytes) -> bytes:
        return hmac.digest(self._key, b"cobasis/vault/1/" + use, "sha256")

    def alone(self) -> Lock:
        return Lock(self.folder, what=f"the vault '{self.folder}'", wait=True)

    def put(
        self, name: str, *, arrays: Given | None = None, about: Mapping[str, Any] | None = None
    ) -> None:
        text = canonical_json({"party": self.party, "record": name, "about": dict(about or {})})
        whole = {
            each: np.frombuffer(given, dtype=np.uint8)
            if isinstance(given, bytes)
            else given.copy("C")
            for each, given in (arrays or {}).items()
        }
        body = len(text).to_bytes(_LENGTH, "little") + text + save(whole)
        path = self.path(name)
        make_folder(path.parent)
        # Sealed before a byte reaches the disk: of a write that a kill cuts short, nothing plain
        # is left, and the old record keeps its name until the new one is whole and synced.
        write_whole(path, self._seal(_FORMAT + hmac.digest(self._mac_key, body, "sha256") + body))

    def get(self, name: str) -> Record | None:
        path = self.path(name)
        if not path.exists():
            return None
        sealed = read_whole(path)
        try:
            plain = self._unseal(sealed)
        except ValueError:
            self.refuse(name, "it is damaged, or was sealed for another party's key")
        if not plain.startswith(_FORMAT):
            self.refuse(name, "it is no record, or another version's")
        begin = len(_FORMAT) + _MAC
        body = plain[begin:]
        mac = hmac.digest(self._mac_key, body, "sha256")
        if not hmac.compare_digest(plain[len(_FORMAT) : begin], mac):
            self.refuse(name, "it was not written with this vault's key")
        end = _LENGTH + int.from_bytes(body[:_LENGTH], "little")
        try:
            told, arrays = json_object(body[_LENGTH:end]), load(body[end:])
        except (ValueError, SafetensorError):
            self.refuse(name, "it cannot be read")
        if (told["party"], told["record"]) != (self.party, name):
            self.refuse(name, f"it is party '{told['party']}'s record '{told['record']}'")
        return Record(about=told["about"], arrays=arrays)

    def path(self, name: str) -> Path:
        return self.folder / f"{name}{SUFFIX}"

    def remove(self, name: str) -> None:
        """Delete a folder of records at one moment; nothing happens where there is none."""
        folder = self.folder / name
        with self.alone():
            remove_left(self.folder, _GONE)
            if folder.exists():
                # Renamed first, so that a kill between two deletions leaves no half of a round:
                # it is there, or it is gone, and whoever opens the vault next deletes the rest.
                move_whole(folder, folder.with_name(folder.name + _GONE))
            remove_left(self.folder, _GONE)

    def refuse(self, name: str, reason: str) -> NoReturn:
        raise VaultError(
            f"the record '{self.path(name).name}' in the vault of party '{self.party}' cannot be "
            f"used: {reason}. Check that the key is this party's; if it is, put the whole vault "
            "back from a copy."
        )

    def _vault_key(self) -> bytes:
        record = self.get(_KEY)
        if record is not None:
            return require_key(record.arrays["key"].tobytes(), name="the vault's key")
        # A new key over old records would hide them: rows that were uploaded would look new.
        if any(self.folder.rglob(f"*{SUFFIX}")):
            self.refuse(_KEY, "it is gone, and without it no other record can be used")
        key = secrets.token_bytes(KEY_BYTES)
        self.put(_KEY, arrays={"key": key})
        return key
