"""A receipt is the analyst's word on one file, and on nothing else; news carry it."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.bundles import AGREED, LAB, NORTH, RECEIPT, SOUTH, news_text, signed_receipt
from cobasis.errors import BundleError, ForeignBundleError, SignatureError
from cobasis.protocol.news import News
from cobasis.protocol.signatures import check_countersigned, check_receipt, countersign

WANTED = {name: RECEIPT[name] for name in ("agreement", "party", "file")}


def test_a_receipt_for_something_else_or_of_somebody_else_is_refused_whatever_it_says():
    for field in WANTED:
        found = signed_receipt(**{field: "south" if field == "party" else "0" * 64})
        with pytest.raises(ForeignBundleError, match=rf"is for another {field} than .*\[CB804\]$"):
            check_receipt(found, analyst=LAB.public, **WANTED)
    for found in (signed_receipt(by=SOUTH), signed_receipt(analyst="south")):
        with pytest.raises(SignatureError):
            check_receipt(found, analyst=LAB.public, **WANTED)


def test_the_party_countersigns_the_receipt_with_its_signature():
    receipt = signed_receipt()
    both = countersign(receipt, NORTH.sign)
    check_receipt(both, analyst=LAB.public, **WANTED)
    check_countersigned(both, party=NORTH.public)
    assert News.from_text(news_text(both), AGREED).receipts_of(1) == {"north": both}
    assert both.message() != both.receipt.message()
    taken = receipt.model_copy(update={"countersignature": receipt.signature})
    later = signed_receipt(time="2026-11-22T15:00:00Z")
    swapped = both.model_copy(update={"signature": later.signature})
    other = countersign(receipt, SOUTH.sign)
    wrong = (receipt, NORTH), (both, SOUTH), (swapped, NORTH), (other, NORTH), (taken, LAB)
    for found, party in wrong:
        with pytest.raises(SignatureError, match=r"is not countersigned by party .*\[CB802\]$"):
            check_countersigned(found, party=party.public)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_no_bit_of_the_news_can_be_changed(at, bit):
    text = bytearray(news_text(countersign(signed_receipt(), NORTH.sign)))
    text[at % len(text)] ^= 1 << bit
    with pytest.raises((BundleError, SignatureError, ForeignBundleError)):
        News.from_text(bytes(text), AGREED)


def test_news_of_another_agreement_or_analyst_are_refused():
    with pytest.raises(ForeignBundleError, match="under another agreement"):
        News.from_text(news_text(agreement="0" * 64), AGREED)
    other = SimpleNamespace(**{**vars(AGREED), "analyst": SOUTH.public})
    with pytest.raises(SignatureError, match="not signed by the analyst"):
        News.from_text(news_text(), other)
