"""What goes into a vault comes out, bit for bit, and only what belongs into one goes in."""

from dataclasses import replace

import numpy as np
import pytest

from cobasis import ConsortiumSecret, PartyKey, SecretBasis
from cobasis.errors import CommitmentError, OrthonormalityError, SecretError, StepError
from cobasis.protocol.plaintext import basis_columns, secret_bytes
from vault.vaults import (
    DIGEST,
    FEATURES,
    NOW,
    SECRET,
    agree,
    choose,
    consensus,
    made_basis,
    returned,
    table,
    upload,
)


def test_a_basis_and_its_key_come_back_bit_for_bit(vault, again):
    columns = np.asfortranarray(basis_columns(made_basis()))  # whatever its memory looks like
    choice = choose(vault, table())
    basis = SecretBasis(columns, party="north")
    vault.begin_upload(choice, basis, agreement=agree(), time=NOW)
    [dataset] = again().datasets()
    assert basis_columns(dataset.basis).tobytes() == columns.tobytes(order="C")
    assert secret_bytes(dataset.key) == secret_bytes(choice.key)
    keys = [secret_bytes(choose(vault, table(seed=seed)).key) for seed in (1, 1, 2)]
    assert (keys[0] == keys[1], keys[0] == keys[2]) == (True, False)  # of other rows another


def test_the_consortium_secret_comes_back_and_rounds_do_not_mix(vault, again):
    vault.round(agree()).join(SECRET)
    assert vault.round(agree()).joined
    assert secret_bytes(again().round(agree()).secret()) == secret_bytes(SECRET)
    with pytest.raises(StepError, match=r"party 'north' holds no secret of round 'icu-2026'"):
        vault.round(agree(n_components=3)).secret()  # even under one name
    with pytest.raises(CommitmentError):
        vault.round(agree("other")).join(ConsortiumSecret())
    assert not vault.round(agree("other")).joined


def test_a_consensus_comes_back(vault, again):
    assert vault.round(agree()).consensus() is None
    vault.round(agree()).adopt(consensus())
    found = again().round(agree()).consensus()
    np.testing.assert_array_equal(found.rows, consensus().rows)
    assert found.contributors == ("north", "east")
    assert (found.agreement_digest, found.anchor_tag) == (agree().digest(), b"t" * 32)


def test_a_return_comes_back_and_a_later_one_takes_its_place(vault, again):
    assert vault.round(agree()).accepted() is None
    for model in (b"a model's bytes", b"", None):
        given = returned(model=model)
        vault.round(agree()).accept(given)
        found = again().round(agree()).accepted()
        np.testing.assert_array_equal(found.change_of_basis, given.change_of_basis)
        assert vars(found) | {"change_of_basis": 0} == vars(given) | {"change_of_basis": 0}


def test_what_a_round_uploaded_is_found_with_its_basis(vault, again):
    upload(vault, table(), agreement=agree("first"))
    upload(vault, table(seed=1), agreement=agree("second"), seed=1)
    found = again().upload_of(agree("second"))
    assert np.array_equal(basis_columns(found.dataset.basis), basis_columns(made_basis(1)))
    assert found.entry.upload == DIGEST
    assert again().upload_of(agree("third")) is None


def test_a_round_that_is_forgotten_leaves_its_history_and_its_basis(vault, again):
    record = vault.round(agree())
    record.join(SECRET)
    record.adopt(consensus())
    record.accept(returned())
    vault.round(agree("other")).join(SECRET)
    upload(vault, table())
    record.forget()
    kept = again()
    assert kept.round(agree()).accepted() is None
    assert kept.round(agree()).consensus() is None
    with pytest.raises(StepError, match="has forgotten the round"):
        kept.round(agree()).secret()
    assert kept.round(agree("other")).joined
    assert [entry.upload for entry in kept.history()] == [DIGEST]
    assert choose(kept, table()).span == "kept"
    record.forget()  # nothing happens
    record.join(SECRET)
    record.forget()
    assert not vault.round(agree()).joined


def test_nothing_of_a_simulation_is_kept(vault):
    choice = choose(vault, table())
    simulated = replace(choice, key=PartyKey(b"k" * 32, simulated=True))
    with pytest.raises(SecretError, match="came from a seed"):
        vault.begin_upload(simulated, made_basis(), agreement=agree(), time=NOW)
    oblique = SecretBasis(2 * np.eye(FEATURES, 2), party="north", oblique=True)
    with pytest.raises(OrthonormalityError):
        vault.begin_upload(choice, oblique, agreement=agree(), time=NOW)
    with pytest.raises(SecretError, match="came from a seed"):
        vault.round(agree()).join(ConsortiumSecret(b"s" * 32, simulated=True))
    with pytest.raises(SecretError, match="came from a simulation"):
        vault.round(agree()).adopt(consensus(simulated=True))
    assert vault.history() == ()


def test_folders_and_files_are_the_owners_alone(vault, tmp_path):
    vault.round(agree()).join(SECRET)
    upload(vault, table())
    paths = list((tmp_path / "north").rglob("*"))
    assert {path.stat().st_mode & 0o777 for path in paths if path.is_file()} == {0o600}
    folders = [tmp_path / "north", *(path for path in paths if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert {path.suffix for path in paths if path.is_file()} == {".age"}
