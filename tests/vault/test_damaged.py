import hmac
import shutil

import numpy as np
import pytest

from cobasis.errors import DiskError, VaultError
from cobasis.vault.records import Records
from vault.vaults import NORTH, SECRET, SOUTH, agree, open_vault, table, upload


@pytest.fixture
def folder(tmp_path):
    vault = open_vault(tmp_path / "north")
    vault.round(agree()).join(SECRET)
    upload(vault, table())
    upload(vault, table(seed=1), agreement=agree("other"), seed=1)
    return tmp_path / "north"


def read_all(folder, **options):
    vault = open_vault(folder, **options)
    return vault.history(), vault.round(agree()).secret()


def refused(folder, words, **options):
    with pytest.raises(VaultError, match=words):
        read_all(folder, **options)


@pytest.mark.parametrize("name", ["vault.age", "datasets/*.age", "rounds/*/secret.age"])
def test_no_byte_of_a_record_can_be_changed_and_none_is_missing(folder, name):
    path = next(folder.glob(name))
    good = path.read_bytes()
    for at in range(0, len(good), 17):
        for bad in (good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :], good[:at]):
            path.write_bytes(bad)
            refused(folder, rf"'{path.name}' in the vault of .*\[CB704\]$")
    path.write_bytes(good)
    assert len(read_all(folder)[0]) == 2


def test_with_another_key_or_under_another_name_nothing_opens(folder):
    refused(folder, "it is damaged, or was sealed for another party's key", key=SOUTH)
    refused(
        folder,
        "of party 'south' cannot be used: it is party 'north's record 'vault'",
        party="south",
    )


def records(folder, key=None):
    made = Records(folder, party="north", seal=NORTH.seal_for_self, unseal=NORTH.unseal_own)
    made._mac_key = made._mac_key if key is None else key
    return made


def test_who_knows_the_public_recipient_only_cannot_make_a_record(folder):
    """A basis that somebody else chose would show that person every row."""
    name = f"datasets/{next(folder.glob('datasets/*.age')).stem}"
    key = {"key": np.zeros(32, dtype=np.uint8)}
    for place, forged in ((name, {"basis": np.eye(5, 2)}), ("vault", key)):
        records(folder, key=bytes(32)).put(place, arrays=forged, about={"history": []})
        refused(folder, "it was not written with this vault's key")


def test_records_that_were_exchanged_lost_or_no_files_are_found(folder):
    one, two = folder.glob("datasets/*.age")
    shutil.copy(one, two)
    refused(folder, "it is party 'north's record 'datasets/.*'")
    one.unlink()
    one.mkdir()
    with pytest.raises(DiskError, match="it is no file"):
        open_vault(folder).datasets()
    (folder / "vault.age").unlink()  # without it the vault is not taken for a new one
    refused(folder, r"'vault\.age' .* it is gone, and without it no other")
    assert not (folder / "vault.age").exists()


def test_what_is_sealed_for_the_party_and_is_no_record_of_this_version_is_refused(folder):
    path, mac_key = next(folder.glob("rounds/*/secret.age")), records(folder)._mac_key
    plain = {
        b"cobasis/vault/2\n" + bytes(100): "another version's",
        b"PK\3\4" + bytes(100): "it is no record",
        b"": "it is no record",
        b"cobasis/vault/1\n": "it was not written with this vault's key",
    }
    for body in (b"\xff\xff\xff\xff{}", b"\x02\0\0\0[]broken", b"\x01\0\0\0{", b""):
        mac = hmac.digest(mac_key, body, "sha256")
        plain[b"cobasis/vault/1\n" + mac + body] = "it cannot be read"
    for each, reason in plain.items():
        path.write_bytes(NORTH.seal_for_self(each))
        refused(folder, reason)
