"""A receipt is the analyst's word on one file, and on nothing else; news carry it."""

import pytest

from bundle.bundles import AGREED, LAB, RECEIPT, SOUTH, news_text, signed_receipt
from cobasis.errors import SignatureError
from cobasis.protocol.news import News
from cobasis.protocol.signatures import check_receipt

WANTED = {name: RECEIPT[name] for name in ("agreement", "party", "file")}


def test_a_receipt_is_the_analysts_and_nobody_elses():
    receipt = signed_receipt()
    check_receipt(receipt, analyst=LAB.public, **WANTED)
    later = signed_receipt(time="2026-11-22T15:00:00Z")
    swapped = receipt.model_copy(update={"signature": later.signature})
    for stranger in (signed_receipt(by=SOUTH), signed_receipt(analyst="south"), swapped):
        with pytest.raises(SignatureError, match="is not signed by analyst 'lab'"):
            check_receipt(stranger, analyst=LAB.public, **WANTED)
    assert News.from_text(news_text(receipt), AGREED).receipts_of(1) == {"north": receipt}
