"""Where a vault stands: its folder, its own key, and one writer at a time."""

import hmac
import secrets
from pathlib import Path

import numpy as np

from cobasis.disk.lock import Lock
from cobasis.disk.whole import make_folder, move_whole, remove_left
from cobasis.linalg.hidden import Hidden
from cobasis.linalg.rng import KEY_BYTES, require_key
from cobasis.vault.records import SUFFIX, Cipher, Record, Records

_KEY, _GONE = "vault", ".gone"


class Place(Hidden):
    """A vault's folder, opened.

    Attributes
    ----------
    records : Records
        What is kept there.
    """

    def __init__(self, folder: Path, *, party: str, seal: Cipher, unseal: Cipher) -> None:
        self._folder = folder
        make_folder(folder)
        with self.alone():
            bare = Records(folder, party=party, seal=seal, unseal=unseal, key=bytes(KEY_BYTES))
            self._key = _vault_key(bare)
            remove_left(self._folder, _GONE)
        mac = self.derived(b"records")
        self.records = Records(folder, party=party, seal=seal, unseal=unseal, key=mac)

    def derived(self, use: bytes) -> bytes:
        """Return the vault's key for one use."""
        return hmac.digest(self._key, b"cobasis/vault/1/" + use, "sha256")

    def alone(self) -> Lock:
        """Wait until no other process writes to the vault, and keep others waiting."""
        return Lock(self._folder, what=f"the vault '{self._folder}'")

    def remove(self, name: str) -> None:
        """Delete a folder of records at one moment; nothing happens where there is none."""
        folder = self._folder / name
        with self.alone():
            remove_left(self._folder, _GONE)
            if folder.exists():
                move_whole(folder, folder.with_name(folder.name + _GONE))
            remove_left(self._folder, _GONE)


def _vault_key(records: Records) -> bytes:
    """Return the vault's own key; one is made where there is none."""
    record = records.get(_KEY)
    if record is not None:
        return require_key(record.arrays["key"].tobytes(), name="the vault's key")
    if any(records.folder.rglob(f"*{SUFFIX}")):
        records.refuse(_KEY, "it is gone, and without it no other record can be used")
    key = secrets.token_bytes(KEY_BYTES)
    records.put(_KEY, Record(about={}, arrays={"key": np.frombuffer(key, dtype=np.uint8)}))
    return key
