"""Signatures under an agreement: all of them, of this very text, or nobody is bound."""

import pytest

from cobasis import ConsortiumSecret
from cobasis.errors import AgreementError, UnknownPartyError, UnsignedError
from cobasis.protocol.enrolment import verify
from cobasis.protocol.signatures import PREFIX, Signature, check_sealed, sign_agreement, signers
from protocol.consortium import NAMES, agree
from protocol.people import ANALYST, KEYS, PEOPLE

SECRET = ConsortiumSecret(bytes(32))
EVERYBODY = (*NAMES, "lab")


def real(**changes):
    fields = {
        "purpose": "Mortality; the four hospitals only.",
        "threat_model": "semi-honest",
        "retention_days": 90,
        "label": "died",
        "enrolled": PEOPLE,
        "analyst": ANALYST,
    }
    return agree(SECRET, **fields | changes)


def signed(name, agreement=None):
    return sign_agreement(agreement or real(), name=name, sign=KEYS[name].sign)


def all_signed(agreement=None):
    return [signed(name, agreement) for name in EVERYBODY]


def test_everybodys_signatures_seal_an_agreement_in_any_order():
    check_sealed(real(), signatures=all_signed())
    check_sealed(real(), signatures=all_signed()[::-1])
    assert list(signers(real())) == list(EVERYBODY)


def test_what_is_signed_is_the_digest_behind_a_prefix():
    made = signed("north")
    message = PREFIX + real().digest()
    assert message.startswith(b"cobasis/agreement/1\0")
    assert verify(PEOPLE[0], message, signature=bytes.fromhex(made.signature))
    assert made.agreement == real().digest().hex()


@pytest.mark.parametrize("absent", [("lab",), ("south",), ("north", "west"), EVERYBODY])
def test_who_is_missing_is_named(absent):
    given = [each for each in all_signed() if each.name not in absent]
    match = rf"missing: {', '.join(absent)}; {5 - len(absent)} of 5 are good.*\[CB311\]$"
    with pytest.raises(UnsignedError, match=match) as caught:
        check_sealed(real(), signatures=given)
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    "change", [{"retention_days": 91}, {"n_components": 2}, {"scale_band": 11.0}], ids=str
)
def test_a_changed_field_makes_signatures_void(change):
    with pytest.raises(
        UnsignedError, match="signed another version: north, south, east, west, lab"
    ):
        check_sealed(real(**change), signatures=all_signed())


def test_a_signature_by_another_key_is_not_valid():
    forged = Signature(**{**signed("north").model_dump(), "signature": signed("lab").signature})
    given = [forged, *[each for each in all_signed() if each.name != "north"]]
    with pytest.raises(UnsignedError, match="signature not valid: north; 4 of 5 are good"):
        check_sealed(real(), signatures=given)


def test_every_bit_of_a_signature_counts():
    made = signed("north")
    for position in range(0, 128, 7):
        digit = "0" if made.signature[position] != "0" else "1"
        text = made.signature[:position] + digit + made.signature[position + 1 :]
        bad = Signature(**{**made.model_dump(), "signature": text})
        with pytest.raises(UnsignedError, match="signature not valid: north"):
            check_sealed(real(), signatures=[bad, *all_signed()[1:]])


def test_a_name_that_is_not_enrolled_is_told():
    stranger = Signature(**{**signed("north").model_dump(), "name": "paris"})
    with pytest.raises(UnsignedError, match="not enrolled: paris; 5 of 5 are good"):
        check_sealed(real(), signatures=[stranger, *all_signed()])


def test_an_agreement_in_which_nobody_is_enrolled_is_never_sealed():
    with pytest.raises(UnsignedError, match="nobody enrolled"):
        check_sealed(agree(SECRET), signatures=[])


@pytest.mark.parametrize("empty", ["purpose", "threat_model", "label"])
def test_nobody_can_sign_while_a_required_field_is_empty(empty):
    with pytest.raises(AgreementError, match=rf"cannot be signed yet: {empty} must.*\[CB303\]$"):
        signed("north", real(**{empty: ""}))


def test_nobody_can_sign_for_another():
    with pytest.raises(AgreementError, match="not the one that is enrolled for 'north'"):
        sign_agreement(real(), name="north", sign=KEYS["south"].sign)
    with pytest.raises(UnknownPartyError, match="'paris' is not enrolled"):
        sign_agreement(real(), name="paris", sign=KEYS["south"].sign)


def test_a_signature_file_reads_back():
    made = signed("lab")
    assert Signature.from_text(made.text()) == made
    assert made.text().count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "[" * 100_000,
        '{"format":"cobasis/signature/1"}',
        '{"format":"cobasis/signature/2","name":"a","agreement":"","signature":""}',
        '{"format":"cobasis/signature/1","name":"a","agreement":"00","signature":"00"}',
        '{"format":"cobasis/identity/1","name":"a"}',
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_signature_is_refused(text):
    with pytest.raises(AgreementError, match=r"signature of an agreement.*\[CB303\]$"):
        Signature.from_text(text)
