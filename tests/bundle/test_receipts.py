"""A receipt is the analyst's word on one file, and on nothing else; news carry it."""

from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pyrage import x25519

from bundle.transcripts import made
from cobasis.bundle.transcript import Transcript, verify_transcript
from cobasis.errors import BundleError, ForeignBundleError, SignatureError
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.signatures import (
    News,
    Receipt,
    check_countersigned,
    check_receipt,
    countersign,
    sign_receipt,
)


class Someone:
    """A name, a signing key and what others see of them."""

    def __init__(self, name):
        self.key = Ed25519PrivateKey.generate()
        self.public = PublicIdentity(
            name=name,
            role="analyst" if name == "lab" else "party",
            signing_key=self.key.public_key().public_bytes_raw().hex(),
            recipient=str(x25519.Identity.generate().to_public()),
        )

    def sign(self, message):
        return self.key.sign(message)


LAB, NORTH, SOUTH = Someone("lab"), Someone("north"), Someone("south")
FIELDS = {
    "round_id": "icu-2026",
    "agreement": "a" * 64,
    "party": "north",
    "analyst": "lab",
    "exchange": 1,
    "file": "b" * 64,
    "time": "2026-11-21T15:00:00Z",
    "transcript": "c" * 64,
}
AGREED = SimpleNamespace(
    digest=lambda: bytes.fromhex("a" * 64), analyst=LAB.public, round_id="icu-2026"
)
WANTED = {"agreement": "a" * 64, "party": "north", "file": "b" * 64}


def signed(by=LAB, **changes):
    return sign_receipt(Receipt(**{**FIELDS, **changes}), by.sign)


def told(*receipts, **changes):
    """The text of news with these receipts."""
    fields = {name: FIELDS[name] for name in ("round_id", "agreement", "analyst", "time")}
    news = News(**{**fields, "agreed": ("north", "lab"), **changes}, receipts=receipts)
    return news.text(LAB.sign)


def carried(receipt):
    """A receipt as a party reads it out of the news."""
    [found] = News.from_text(told(receipt), AGREED).receipts_of(1).values()
    return found


def test_a_good_receipt_is_accepted_after_its_journey():
    found = carried(signed())
    check_receipt(found, analyst=LAB.public, **WANTED)
    assert found == signed()  # Ed25519 signs alike every time


@pytest.mark.parametrize("field", ["agreement", "party", "file"])
def test_a_receipt_for_something_else_is_refused(field):
    other = "south" if field == "party" else "0" * 64
    found = signed(**{field: other})
    with pytest.raises(ForeignBundleError, match=rf"is for another {field} than .*\[CB804\]$"):
        check_receipt(found, analyst=LAB.public, **WANTED)


def test_a_receipt_of_somebody_else_is_refused_whatever_it_says():
    for found in (signed(by=SOUTH), signed(analyst="south")):
        with pytest.raises(SignatureError):
            check_receipt(found, analyst=LAB.public, **WANTED)


def test_the_party_countersigns_the_receipt_with_its_signature():
    both = countersign(signed(), NORTH.sign)
    check_receipt(both, analyst=LAB.public, **WANTED)
    check_countersigned(both, party=NORTH.public)
    assert carried(both) == both
    swapped = both.model_copy(update={"signature": signed(time="2026-11-22T15:00:00Z").signature})
    other = countersign(signed(), SOUTH.sign)
    for found, party in ((signed(), NORTH), (both, SOUTH), (swapped, NORTH), (other, NORTH)):
        with pytest.raises(SignatureError, match=r"is not countersigned by party .*\[CB802\]$"):
            check_countersigned(found, party=party.public)


def test_signature_and_countersignature_are_over_different_messages():
    """So one cannot stand for the other, even where analyst and party are one."""
    found = signed()
    assert found.message() != found.receipt.message()
    taken = found.model_copy(update={"countersignature": found.signature})
    with pytest.raises(SignatureError):
        check_countersigned(taken, party=NORTH.public)


def test_a_receipt_binds_the_analysts_transcript(tmp_path):
    """Its line, and all before it, can be asked for later."""
    path = tmp_path / "analyst.jsonl"
    made(path, 2)
    line = Transcript(path).append("received", {"party": "north", "file": "b" * 64})
    found = signed(transcript=line.hash)
    Transcript(path).append("trained", {})
    assert len(verify_transcript(path, head=found.receipt.transcript).entries) == 4
    own = Transcript(tmp_path / "north.jsonl")
    own.append("receipt", countersign(found, NORTH.sign).told())
    [entry] = verify_transcript(own.path).entries
    assert (entry.told["file"], entry.told["exchange"]) == ("b" * 64, 1)
    assert len(entry.told["countersignature"]) == 128


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_no_bit_of_the_news_can_be_changed(at, bit):
    text = bytearray(told(countersign(signed(), NORTH.sign)))
    text[at % len(text)] ^= 1 << bit
    with pytest.raises((BundleError, SignatureError, ForeignBundleError)):
        News.from_text(bytes(text), AGREED)


def test_news_of_another_agreement_or_analyst_are_refused():
    with pytest.raises(ForeignBundleError, match="under another agreement"):
        News.from_text(told(agreement="0" * 64), AGREED)
    other = SimpleNamespace(**{**vars(AGREED), "analyst": SOUTH.public})
    with pytest.raises(SignatureError, match="not signed by the analyst"):
        News.from_text(told(), other)


@pytest.mark.parametrize("field", FIELDS)
def test_a_receipt_has_words_of_the_right_form(field):
    with pytest.raises(ValidationError):
        Receipt(**{**FIELDS, field: "" if field != "time" else "yesterday"})
