"""What a vault keeps is in no file or repr that anybody without the key can read."""

import pickle

import numpy as np
import pytest

from cobasis.errors import SecretError
from cobasis.protocol.plaintext import basis_columns
from vault.vaults import (
    NORTH,
    NOW,
    SECRET,
    agree,
    choose,
    consensus,
    made_basis,
    open_vault,
    returned,
    table,
    unsealing,
    upload,
)

MARKED, BASIS = table(40, seed=11), basis_columns(made_basis())
MODEL = b"weights 0.8414709848 of a model"


def writings(array):
    """Every way in which a number of ours could stand somewhere: binary, and as text."""
    for number in np.asarray(array, dtype=float).ravel():
        yield number.tobytes()
        yield np.float32(number).tobytes()
        yield np.float32(number).byteswap().tobytes()
        yield repr(float(number)).encode()
        yield f"{number:.8g}".encode()


def canaries(vault):
    """Rows, basis, consensus, G, secrets and keys of the vault."""
    found = {each for array in (MARKED, BASIS) for each in writings(array)}
    found |= set(writings(consensus().rows)) | set(writings(returned().change_of_basis))
    keys = [SECRET._key, vault._records._key, *(each.key._key for each in vault.datasets())]
    for key in keys:
        found |= {key, key[:8], key[-8:], key.hex().encode(), repr(key).encode()}
    marks = np.concatenate([each.last for each in vault.datasets()])
    found |= {mark.tobytes() for mark in marks} | {str(mark).encode() for mark in marks}
    return found | {MODEL, NOW.encode(), b"icu-2026", b"north"}


@pytest.fixture
def vault(tmp_path):
    made = open_vault(tmp_path / "home")
    upload(made, MARKED)
    record = made.round(agree())
    record.join(SECRET)
    record.adopt(consensus())
    record.accept(returned(model=MODEL))
    return made


def test_no_file_of_a_vault_holds_a_byte_of_what_it_keeps(vault, tmp_path):
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    text = b"".join(path.read_bytes() for path in files)
    names = " ".join(str(path.relative_to(tmp_path)) for path in files).encode()
    hits = [each for each in canaries(vault) if len(each) > 3 and (each in text or each in names)]
    assert hits == []
    assert len(files) == 5
    assert {path.suffix for path in files} == {".age"}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    folders = {path for file in files for path in file.parents if path.is_relative_to(tmp_path)}
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    # with the key, every kind of canary is in what was sealed
    plain = b"".join(unsealing(NORTH)(path.read_bytes()) for path in tmp_path.rglob("*.age"))
    found = {each for each in canaries(vault) if each in plain}
    assert {BASIS[0, 0].tobytes(), MODEL, NOW.encode(), SECRET._key} <= found
    assert vault._records._key in found
    assert vault.datasets()[0].last[0].tobytes() in found
    assert not {MARKED[0, 0].tobytes()} & found  # rows are in no record at all


def test_what_a_vault_gives_out_shows_nothing_and_is_not_pickled(vault):
    [dataset], record, choice = vault.datasets(), vault.round(agree()), choose(vault, MARKED)
    held = (vault, vault._records, dataset, dataset.basis, choice, choice.asked, choice.key, record)
    held += (record.secret(), record.accepted(), vault.upload_of(agree()))
    held += (vault._records.get(f"datasets/{dataset.name}"),)
    shown = repr(held).encode()
    assert not [each for each in canaries(vault) - {b"north", b"icu-2026"} if each in shown]
    for each in held:
        with pytest.raises(SecretError):
            pickle.dumps(each)
