import hashlib

import pytest

from cobasis import ConsortiumSecret
from cobasis.errors import AgreementError, UnknownPartyError, UnsignedError
from cobasis.protocol.enrolment import PublicIdentity, is_identity_name, verify, words_of
from cobasis.protocol.signatures import Signature, check_sealed, sign_agreement, signers
from protocol.consortium import NAMES, agree
from protocol.people import KEYS, PEOPLE, REAL

SECRET = ConsortiumSecret(bytes(32))
EVERYBODY = (*NAMES, "lab")
RECIPIENT = "age1ujxxdgvry06l6fw6hsu3ete0ed6udrft983ptc6kc2zt0yg35uusmnwxtu"
NORTH = PublicIdentity(name="north", role="party", signing_key="0" * 64, recipient=RECIPIENT)


def real(**changes):
    return agree(SECRET, **REAL | changes)


def signed(name, agreement=None):
    return sign_agreement(agreement or real(), name=name, sign=KEYS[name].sign)


def all_signed(agreement=None):
    return [signed(name, agreement) for name in EVERYBODY]


def test_everybody_signs_the_digest_behind_a_prefix_and_in_any_order_it_is_sealed():
    check_sealed(real(), signatures=all_signed()[::-1])
    assert list(signers(real())) == list(EVERYBODY)
    message = b"cobasis/agreement/1\0" + real().digest()
    assert verify(PEOPLE[0], message, signature=bytes.fromhex(signed("north").signature))
    wrong = {"valid: north": {"signature": "0" * 128}, "enrolled: paris": {"name": "paris"}}
    for flaw, changed in wrong.items():
        words, beside = rf"not {flaw}; good: 5 of 5.*\[CB311\]$", all_signed()  # a good one
        with pytest.raises(UnsignedError, match=words) as caught:
            check_sealed(real(), signatures=[signed("north").model_copy(update=changed), *beside])
    assert caught.value.exit_code == 4
    with pytest.raises(UnsignedError, match="nobody enrolled"):
        check_sealed(agree(SECRET), signatures=[])


def test_nobody_can_sign_gaps_or_for_another_and_a_signature_file_reads_back():
    with pytest.raises(AgreementError, match=r"cannot be signed yet: purpose must.*\[CB303\]$"):
        signed("north", real(purpose=""))
    with pytest.raises(AgreementError, match="not the one that is enrolled for 'north'"):
        sign_agreement(real(), name="north", sign=KEYS["south"].sign)
    with pytest.raises(UnknownPartyError, match="'paris' is not enrolled"):
        sign_agreement(real(), name="paris", sign=KEYS["south"].sign)
    made = signed("lab")
    assert Signature.from_text(made.text()) == made
    with pytest.raises(AgreementError, match=r"this is no signature of an agreement.*\[CB303\]$"):
        Signature.from_text(NORTH.text())
    assert made.text().count("\n") == 1


def test_an_identitys_text_is_one_line_that_comes_back_and_its_fingerprint_can_be_read_out():
    assert NORTH.text() == (
        '{"format":"cobasis/identity/1","name":"north","recipient":"' + RECIPIENT + '",'
        '"role":"party","signing_key":"' + "0" * 64 + '"}\n'
    )
    assert PublicIdentity.from_text(NORTH.text()) == NORTH
    with pytest.raises(AgreementError, match=r"this is no public identity.*\[CB303\]$"):
        PublicIdentity.from_text(NORTH.text().replace("identity/1", "identity/2"))
    assert NORTH.fingerprint == words_of(hashlib.sha256(NORTH.text().encode()).digest())
    for changes in ({"signing_key": "1" * 64}, {"role": "analyst"}):
        assert PublicIdentity(**NORTH.model_dump() | changes).fingerprint != NORTH.fingerprint


def test_a_digest_is_said_in_the_same_eight_words_by_every_version():
    assert words_of(bytes(range(32))) == "gossip stumble wife antique toilet horse boring arch"


def test_a_key_that_is_no_point_verifies_nothing_and_names_are_files_names():
    broken = PublicIdentity(**NORTH.model_dump() | {"signing_key": "f" * 64})
    assert not verify(broken, b"", signature=bytes(64))
    assert is_identity_name("icu-2026_north.a")
    assert not is_identity_name("north\n")
    assert not is_identity_name("..")
