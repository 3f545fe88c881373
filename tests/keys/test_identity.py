"""An identity is used, and never shown; what it kept for itself nobody else can have made."""

import copy
import pickle

import pyrage
import pytest

from cobasis.errors import SealError, SecretError
from cobasis.keys.identity import Identity
from cobasis.protocol.enrolment import verify

NORTH, SOUTH = Identity.new("north"), Identity.new("south")


def test_it_shows_its_keys_to_nobody_and_does_not_travel():
    for shown in (repr(NORTH), str(NORTH), f"{[NORTH]}", repr(NORTH.public)):
        assert str(NORTH._age) not in shown
        assert NORTH._signing.private_bytes_raw().hex() not in shown
    assert repr(NORTH) == "<Identity, hidden>"
    with pytest.raises(TypeError):
        vars(NORTH)
    for travel in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretError, match="Identity does not travel"):
            travel(NORTH)
    again = Identity.new("north")
    assert again.public.signing_key != NORTH.public.signing_key
    assert again.public.recipient != NORTH.public.recipient


def test_a_signature_is_over_one_message_by_one_identity():
    signature = NORTH.sign(b"message")
    assert verify(NORTH.public, b"message", signature=signature)
    assert not verify(NORTH.public, b"messagf", signature=signature)
    assert not verify(SOUTH.public, b"message", signature=signature)
    assert not verify(NORTH.public, b"message", signature=signature[:-1])
    assert not verify(NORTH.public, b"message", signature=b"")


@pytest.mark.parametrize("data", [b"", b"x", bytes(200_000)])
def test_what_it_keeps_for_itself_comes_back_to_it_alone_and_undamaged(data):
    sealed = NORTH.seal_for_self(data)
    assert NORTH.unseal_own(sealed) == data
    with pytest.raises(SealError, match="not sealed for this key"):
        SOUTH.unseal_own(sealed)
    for at in range(0, len(sealed), max(7, len(sealed) // 100)):
        with pytest.raises(SealError):
            NORTH.unseal_own(sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :])


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
