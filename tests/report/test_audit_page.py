import re
from dataclasses import replace

from cobasis.party_side.approval import Audited
from cobasis.party_side.what_if import Setting, settings_of
from cobasis.privacy.audit.report import Finding, as_json
from cobasis.protocol.secrets import ConsortiumSecret
from cobasis.report.audit_page import MARKS, render_audit
from privacy.attacks.constructions import audited, cancer, subject
from protocol.consortium import agree

MARKED = [
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


def test_the_page_is_in_one_order_complete_in_itself_and_promises_nothing():
    agreement, upload = agree(ConsortiumSecret(bytes(32))), subject(*cancer(100), n_components=5)
    settings = settings_of(upload, Setting(n_components=5, basis="svd"))
    report = audited(upload, settings=settings)
    one = Audited(told=as_json(report))
    text = render_audit(one, agreement)
    places = [text.index(mark) for mark in MARKED]
    assert places == sorted(places)
    for word in ("0123456789abcdef", "cobasis 0", "cobasis/audit/1", one.seal, "signature", "date"):
        assert word in text
    assert not re.search(r"http|(src|href)\s*=\s*[\"'](?!#)", text)
    assert text.count('class="bar"') == 5 * 4
    # there is no score, no green sign of safety and no word of a promise
    assert not re.search(r"shield|✓|✔|green|score|#0[0-9a-f]8[0-9a-f]0", text)
    assert "safe" not in MARKS.values()
    assert not re.search(r"anonymous|differential privacy", text, re.IGNORECASE)

    evil, blocked = {"party": "<script>alert(1)</script>"}, Finding("H4", "red", "A second span.")
    found = replace(
        report, about={**report.about, **evil}, findings=(*report.findings, blocked), effects=()
    )
    text = render_audit(Audited(told=as_json(found)), agreement)
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    # a blocked upload says so first, and asks for two
    assert text.index("This file is blocked.") < text.index("What it means")
    assert text.count("name and office") == 2
