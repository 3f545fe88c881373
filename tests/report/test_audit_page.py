"""The page on which somebody decides: in a fixed order, in words, complete in itself."""

import re

import numpy as np
import pytest

from cobasis.privacy.audit.report import audit
from cobasis.privacy.audit.subject import Setting
from cobasis.privacy.audit.what_if import settings_of
from cobasis.protocol.secrets import ConsortiumSecret
from cobasis.report.audit_page import MARKS, render_audit
from privacy.attacks.constructions import ABOUT, cancer, facts, subject
from protocol.consortium import agree

UPLOAD = subject(*cancer(100), n_components=5)
AGREEMENT = agree(ConsortiumSecret(bytes(32)))


def page(*, settings=(), told=None, seal="", agreed_on=None, own=None, asked=(), **changes):
    told, rng = ABOUT | (told or {}), np.random.default_rng(0)
    agreed = facts(UPLOAD, **changes)
    report = audit(UPLOAD, facts=agreed, about=told, rng=rng, settings=settings)
    return render_audit(report, agreed_on or AGREEMENT, own=own, asked=asked, seal=seal)


@pytest.fixture(scope="module")
def text():
    settings = settings_of(UPLOAD, Setting(n_components=5, basis="svd"))
    return page(settings=settings, seal="b" * 64)


def test_the_order_is_that_of_the_policy_and_the_signature_block_names_what_is_signed(text):
    marks = [
        "What is processed",
        "Pseudonymised personal data. Treat as personal data.",
        "has to sign",
        "What it means for the people in the table",
        "What we would change first",
        "What was not tested",
        "Approval",
        "not approved",
        "The figures behind it",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    for word in ("0123456789abcdef", "cobasis 0", "cobasis/audit/1", "b" * 64, "signature", "date"):
        assert word in text
    found = page(span="forced")  # a blocked upload says so first, and asks for two
    assert found.index("This file is blocked.") < found.index("What it means")
    assert found.count("name and office") == 2


def test_the_page_refers_to_nothing_outside_itself_and_escapes_what_comes_from_there(text):
    outside = re.sub(r'xmlns(:\w+)?="[^"]+"', "", text)
    assert not re.search(r"(src|href)\s*=\s*[\"'](?!#)", outside)
    assert "http" not in outside
    assert text.count('class="bar"') == 8 * 4
    found = page(told={"party": "<script>alert(1)</script>"})
    assert "<script>" not in found
    assert "&lt;script&gt;" in found
    # there is no score, no green sign of safety and no word of a promise
    assert not re.search(r"shield|✓|✔|green|score|#0[0-9a-f]8[0-9a-f]0", text)
    assert "safe" not in MARKS.values()
    assert "anonymous" not in text.lower()
    assert "ifferential privacy" not in text
