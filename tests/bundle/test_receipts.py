"""A receipt is the analyst's word on one file, and on nothing else; news carry it."""

import pytest

from bundle.bundles import AGREED, LAB, NORTH, RECEIPT, SOUTH, news_text, signed_receipt
from cobasis.errors import SignatureError
from cobasis.protocol.news import News
from cobasis.protocol.signatures import check_countersigned, check_receipt, countersign

WANTED = {name: RECEIPT[name] for name in ("agreement", "party", "file")}


def test_the_party_countersigns_the_receipt_with_its_signature():
    receipt = signed_receipt()
    both = countersign(receipt, NORTH.sign)
    check_receipt(both, analyst=LAB.public, **WANTED)
    check_countersigned(both, party=NORTH.public)
    for stranger in (signed_receipt(by=SOUTH), signed_receipt(analyst="south")):
        with pytest.raises(SignatureError):
            check_receipt(stranger, analyst=LAB.public, **WANTED)
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
