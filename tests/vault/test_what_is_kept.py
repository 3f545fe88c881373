import pickle
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
    basis_columns(dataset.basis)[:] = 0  # the door gives a copy
    assert basis_columns(dataset.basis).any()
    assert secret_bytes(dataset.key) == secret_bytes(choice.key)
    keys = [secret_bytes(choose(vault, table(seed=seed)).key) for seed in (1, 1, 2)]
    assert (keys[0] == keys[1], keys[0] == keys[2]) == (True, False)  # of other rows another


def test_a_round_keeps_what_is_its_own_until_it_is_forgotten(vault, again):
    record, other = vault.round(agree()), vault.round(agree("other"))
    with pytest.raises(CommitmentError):
        other.join(ConsortiumSecret())
    assert (record.consensus(), record.accepted(), other.joined) == (None, None, False)
    for _ in range(2):
        record.join(SECRET)
        record.adopt(consensus())
        record.accept(returned(model=b"of before"))
        for model in (b"a model's bytes", b"", None):  # a later one takes its place
            record.accept(given := returned(model=model))
            found = again().round(agree()).accepted()
            np.testing.assert_array_equal(found.change_of_basis, given.change_of_basis)
            assert vars(found) | {"change_of_basis": 0} == vars(given) | {"change_of_basis": 0}
        kept = again().round(agree())
        assert secret_bytes(kept.secret()) == secret_bytes(SECRET)
        np.testing.assert_array_equal(kept.consensus().rows, consensus().rows)
        told = (kept.consensus().contributors, kept.consensus().anchor_tag)
        assert told == (("north", "east"), b"t" * 32)
        with pytest.raises(StepError, match="holds no secret of round 'icu-2026'"):
            vault.round(agree(n_components=3)).secret()  # even under one name
        upload(vault, table())
        other.join(SECRET)
        record.forget()
        record.forget()  # nothing happens
        kept = again().round(agree())
        assert (kept.joined, kept.accepted(), kept.consensus()) == (False, None, None)
        with pytest.raises(StepError, match="has forgotten the round"):
            kept.secret()
        assert again().round(agree("other")).joined
        assert choose(again(), table()).span == "kept"
    assert [entry.upload for entry in again().history()] == [DIGEST] * 2


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
    assert vault.history() == ()


def test_what_a_vault_gives_out_shows_nothing_and_is_not_pickled(vault):
    upload(vault, table())
    [dataset], record, choice = vault.datasets(), vault.round(agree()), choose(vault, table())
    record.join(SECRET)
    record.accept(returned())
    held = (vault, vault._records, dataset, dataset.basis, choice, choice.asked, choice.key, record)
    held += (record.secret(), record.accepted())
    for each in (*held, vault._records.get(f"datasets/{dataset.name}")):
        assert repr(each) == f"<{type(each).__name__}, hidden>"
        with pytest.raises(SecretError):
            pickle.dumps(each)
