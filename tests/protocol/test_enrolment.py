"""The public half of an identity: one text, one fingerprint, nothing else accepted."""

import json

import pytest
from pydantic import BaseModel

from cobasis.errors import AgreementError
from cobasis.protocol.enrolment import PublicIdentity, is_identity_name, verify

RECIPIENT = "age1ujxxdgvry06l6fw6hsu3ete0ed6udrft983ptc6kc2zt0yg35uusmnwxtu"
NORTH = PublicIdentity(name="north", role="party", signing_key="0" * 64, recipient=RECIPIENT)


def test_its_text_is_one_line_and_comes_back():
    assert NORTH.text() == (
        '{"format":"cobasis/identity/1","name":"north","recipient":"' + RECIPIENT + '",'
        '"role":"party","signing_key":"' + "0" * 64 + '"}\n'
    )
    assert PublicIdentity.from_text(NORTH.text()) == NORTH
    assert PublicIdentity.from_text(json.dumps(json.loads(NORTH.text()), indent=2)) == NORTH


def test_its_fingerprint_can_be_read_out_and_is_another_for_every_field():
    assert NORTH.fingerprint == "f006 8ff9 4156 08a3"
    other = PublicIdentity(name="north", role="party", signing_key="1" * 64, recipient=RECIPIENT)
    assert other.fingerprint != NORTH.fingerprint
    changed = {**NORTH.model_dump(), "role": "analyst"}
    assert PublicIdentity(**changed).fingerprint != NORTH.fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ".north"},
        {"name": "north\n"},
        {"name": "no/rth"},
        {"name": 1},
        {"signing_key": "0" * 63},
        {"signing_key": "A" * 64},
        {"recipient": "age1"},
        {"recipient": RECIPIENT.upper()},
        {"recipient": "ssh-ed25519 AAAA"},
        {"extra": 1},
        {"role": "author"},
    ],
)
def test_a_field_of_another_form_is_refused(changes):
    fields = {**NORTH.model_dump(), **changes}
    with pytest.raises(AgreementError, match="cannot stand"):
        PublicIdentity(**fields)
    with pytest.raises(AgreementError):
        PublicIdentity.from_text(json.dumps({"format": "cobasis/identity/1", **fields}))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", "[" * 100_000, '{"format":"x"}'])
def test_another_text_is_refused(text):
    with pytest.raises(AgreementError, match="no public identity"):
        PublicIdentity.from_text(text)


def test_it_stands_inside_other_models():
    class Holder(BaseModel):
        enrolled: tuple[PublicIdentity, ...]

    made = Holder(enrolled=(NORTH,))
    assert Holder.model_validate_json(made.model_dump_json()) == made


def test_a_key_that_is_no_point_verifies_nothing():
    broken = PublicIdentity(name="north", role="party", signing_key="f" * 64, recipient=RECIPIENT)
    assert not verify(broken, b"", signature=bytes(64))


def test_names_are_files_names():
    assert is_identity_name("icu-2026_north.a")
    assert not is_identity_name("north\n")
    assert not is_identity_name("..")
