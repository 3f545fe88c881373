"""A receipt is the analyst's word on one file, and on nothing else; news carry it."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.bundles import LAB, NORTH, SOUTH, transcript
from cobasis.bundle.transcript import Transcript, verify_transcript
from cobasis.errors import BundleError, ForeignBundleError, SignatureError
from cobasis.protocol.news import News
from cobasis.protocol.signatures import (
    Receipt,
    check_countersigned,
    check_receipt,
    countersign,
    sign_receipt,
)

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
    assert carried(both) == both  # as it came out of the news
    assert both.message() != both.receipt.message()
    taken = signed().model_copy(update={"countersignature": signed().signature})
    swapped = both.model_copy(update={"signature": signed(time="2026-11-22T15:00:00Z").signature})
    other = countersign(signed(), SOUTH.sign)
    wrong = (signed(), NORTH), (both, SOUTH), (swapped, NORTH), (other, NORTH), (taken, LAB)
    for found, party in wrong:
        with pytest.raises(SignatureError, match=r"is not countersigned by party .*\[CB802\]$"):
            check_countersigned(found, party=party.public)


def test_a_receipt_binds_the_analysts_transcript(tmp_path):
    """Its line, and all before it, can be asked for later."""
    path = tmp_path / "analyst.jsonl"
    transcript(path, 2)
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
