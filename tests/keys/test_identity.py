"""An identity is used, and never shown; what it kept for itself nobody else can have made."""

import copy
import io
import pickle

import pyrage
import pytest

from cobasis.errors import AgreementError, SealError, SecretError
from cobasis.keys.identity import Identity
from cobasis.protocol.enrolment import verify

NORTH, SOUTH = Identity.new("north"), Identity.new("south")


def secrets_of(identity):
    """The bytes that must not be seen."""
    return str(identity._age), identity._signing.private_bytes_raw().hex()


def test_it_shows_its_name_to_nobody_and_its_keys_even_less():
    for shown in (repr(NORTH), str(NORTH), f"{NORTH}", f"{[NORTH]}", repr(NORTH.public)):
        for secret in secrets_of(NORTH):
            assert secret not in shown
    assert repr(NORTH) == "<Identity, hidden>"
    with pytest.raises(TypeError):
        vars(NORTH)


@pytest.mark.parametrize("travel", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_does_not_travel(travel):
    with pytest.raises(SecretError, match="Identity does not travel"):
        travel(NORTH)


def test_a_signature_is_over_one_message_by_one_identity():
    signature = NORTH.sign(b"message")
    assert verify(NORTH.public, b"message", signature=signature)
    assert not verify(NORTH.public, b"messagf", signature=signature)
    assert not verify(SOUTH.public, b"message", signature=signature)
    assert not verify(NORTH.public, b"message", signature=signature[:-1])
    assert not verify(NORTH.public, b"message", signature=b"")


def test_two_new_ones_have_nothing_in_common():
    again = Identity.new("north")
    assert again.public.name == NORTH.public.name
    assert again.public.signing_key != NORTH.public.signing_key
    assert again.public.recipient != NORTH.public.recipient


@pytest.mark.parametrize("name", ["", ".north", "../north", "a/b", "n\x00", "ü", "x" * 101, "a b"])
def test_a_name_that_could_be_no_files_is_refused(name):
    with pytest.raises(AgreementError, match="name"):
        Identity.new(name)


def test_only_the_recipient_unseals():
    recipient = pyrage.x25519.Recipient.from_str(NORTH.public.recipient)
    sealed = pyrage.encrypt(b"for north", [recipient])
    target = io.BytesIO()
    NORTH.unseal(io.BytesIO(sealed), target)
    assert target.getvalue() == b"for north"
    with pytest.raises(SealError, match="not sealed for this key"):
        SOUTH.unseal(io.BytesIO(sealed), io.BytesIO())


@pytest.mark.parametrize("data", [b"", b"x", bytes(200_000)])
def test_what_it_keeps_for_itself_comes_back(data):
    sealed = NORTH.seal_for_self(data)
    assert NORTH.unseal_own(sealed) == data
    assert b"xxxx" not in sealed
    with pytest.raises(SealError):
        SOUTH.unseal_own(sealed)


def test_a_record_that_somebody_else_made_for_it_is_refused():
    """The public half is enough to seal for somebody; it is not enough to be them."""
    recipient = pyrage.x25519.Recipient.from_str(NORTH.public.recipient)
    basis = b"a basis that the enemy knows"
    for forged in (
        basis,
        SOUTH.sign(b"cobasis/own/1\0" + basis) + basis,
        NORTH.sign(basis) + basis,
    ):
        with pytest.raises(SealError, match="'north' is sealed for them, and was not made by them"):
            NORTH.unseal_own(pyrage.encrypt(forged, [recipient]))


def test_a_damaged_record_is_refused():
    sealed = bytearray(NORTH.seal_for_self(b"record"))
    for at in range(0, len(sealed), 7):
        changed = bytes(sealed[:at]) + bytes([sealed[at] ^ 1]) + bytes(sealed[at + 1 :])
        with pytest.raises(SealError):
            NORTH.unseal_own(changed)
