"""A receipt is the analyst's word on one file, and on nothing else; news carry it."""

import json

import pytest

from bundle.bundles import AGREED, LAB, RECEIPT, SOUTH, news_text, signed_receipt
from cobasis.errors import AgreementError, SignatureError
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.news import News
from cobasis.protocol.signatures import check_receipt
from cobasis.strict_json import canonical_json
from cobasis.transport.invites import Code

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


def test_what_a_newer_version_adds_is_passed_over_in_news_and_codes_and_nowhere_else():
    told = json.loads(news_text())["news"] | {"mood": "fine"}
    signature = LAB.sign(b"cobasis/news/1\0" + canonical_json(told) + b"\n").hex()
    fields = {"format": "cobasis/news/1", "news": told, "signature": signature}
    text = canonical_json(fields) + b"\n"
    assert News.from_text(text, AGREED) == News.from_text(news_text(), AGREED)
    with pytest.raises(SignatureError):
        News.from_text(text.replace(b"fine", b"dire"), AGREED)
    code = {"party": "north", "stem": "icu", "server": "https://lab.example", "token": "a" * 32}
    made = Code(**code, analyst=LAB.public.text())
    assert Code.from_text(made.text().replace("{", '{"mood":1,', 1)) == made
    with pytest.raises(AgreementError):
        PublicIdentity.from_text(LAB.public.text().replace("{", '{"mood":1,', 1))
