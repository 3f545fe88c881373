"""The audit looks at exactly what would be sealed, keeps its figures at home, and can say no."""

import hmac
import json

import numpy as np
import pytest

from cobasis.bundle.transcript import verify_transcript
from cobasis.bundle.uploads import open_payload
from cobasis.errors import ApprovalError, AuditBlockedError
from cobasis.keys.identity import Identity
from cobasis.linalg.arrays import gathered
from cobasis.party_side.approval import approve_audit, keep, read_audit
from cobasis.party_side.audit import approve, audit, audited
from cobasis.party_side.send import projected, send
from cobasis.protocol.enrolment import Approver
from cobasis.vault.datasets import Forced
from party_side.sites import frame, ready_from

PEOPLE = Forced(reason="the board asked for it", by=("A. Curator", "B. Officer"))


def looked(site, **asked):
    with projected(site.ready(looking=True)) as made:
        return audited(made, compared=False, **asked)


def sent(site, *, override=None):
    session, seen = site.session(), []

    def allow(made):
        found = audited(made, compared=False)
        seen.append((made.ready.choice, found))
        return approve(session, found, signed_by=["A. Officer"], override=override)

    done = send(ready_from(session, site.table("north")), site.of_round(), allow=allow)
    return done, *seen[0]


def test_the_audit_sees_the_very_numbers_that_are_written(site, monkeypatch):
    """Those of a sample, which is drawn by the vault's key, with their own raw rows."""
    seen = []
    monkeypatch.setattr("cobasis.party_side.audit.sample_size", lambda *_: 30)

    def look(subject, *told, about, **more):
        seen.append((subject, about))
        return audit(subject, *told, about=about, **more)

    monkeypatch.setattr("cobasis.party_side.audit.audit", look)
    ready = site.ready()
    with projected(ready) as made:
        audited(made, compared=False)
        payload = open_payload(ready.session.payload)
        whole, labels = payload.rows[:], payload.labels[:]
    looked(site)
    (subject, about), (again, _) = seen
    assert (subject.n_rows, about["n_rows"]) == (30, ready.rows.n_sent)
    np.testing.assert_array_equal(subject.rows, again.rows)
    raw, back = gathered(ready.rows.sent), np.argsort(made.message.order)
    places = [np.flatnonzero((raw == row).all(axis=1))[0] for row in subject.rows]
    np.testing.assert_array_equal(subject.release.rows, whole[back][places])
    np.testing.assert_array_equal(subject.release.labels, labels[back][places])
    np.testing.assert_allclose(subject.release.rows, subject.rows @ subject.basis, atol=1e-12)


def test_a_report_stays_at_home_and_its_policy_verdict_and_salted_hash_travel(site):
    before, table = looked(site), site.table("north")
    first, *rows = (text := table.read_text()).splitlines()
    table.write_text("\n".join([first, *reversed(rows), ""]))
    after = looked(site)  # rows in another order are the same version of the data
    assert after.report.about["data_version"] == before.report.about["data_version"]
    table.write_text(text)
    path = keep(site.session("north"), before)
    assert path.stat().st_mode & 0o777 == 0o600
    kept = json.loads(path.read_text())
    text = json.dumps(kept["report"], sort_keys=True, separators=(",", ":"))
    mac = hmac.digest(bytes.fromhex(kept["salt"]), b"cobasis/audit/1\0" + text.encode(), "sha256")
    assert mac.hex() == before.record["report"]
    done, _, found = sent(site)
    for one, two in zip(before.report.findings, found.report.findings, strict=True):
        assert (one.id, one.grade, one.words) == (two.id, two.grade, two.words)
    manifest = site.opened("north", done.path).manifest
    assert manifest.audit == found.record
    assert set(manifest.audit) == {"policy", "verdict", "report"}
    assert manifest.audit["verdict"] == "pseudonymised"
    entry = verify_transcript(site.session("north").transcript.path)[-2]
    assert (entry.event, entry.told["signed_by"]) == ("audited", ["A. Officer"])
    assert "P3" in entry.told["signed_for"]
    assert entry.told["signed_with"] == "typed by the holder of north's key, proves no person"
    assert not any(isinstance(each, float) for each in entry.told.values())


@pytest.fixture
def one_more(make):
    """North has sent its rows, and then one more patient came; keys draw nobody to hold back."""
    site = make(holdout=0.0)
    site.joined()
    sent(site)
    frame(1).extend(frame(8, 4)[:1]).write_csv(site.table("north"))
    return site


def test_one_more_patient_blocks_and_two_people_let_it_leave(one_more):
    site = one_more
    with pytest.raises(AuditBlockedError, match=r"H4, the history of these rows.*\[CB511\]$"):
        sent(site)
    _, choice, found = sent(site, override=PEOPLE)
    assert [each.id for each in found.report.blocking] == ["H4"]
    assert choice.span == "kept"  # two people make no second span where the stored one fits
    told = verify_transcript(site.session("north").transcript.path)[-2].told
    assert (told["overridden"], told["reason"]) == (["H4"], "the board asked for it")
    assert told["overridden_by"] == ["A. Curator", "B. Officer"]
    site.joined(n_components=2)  # whoever looks is told of a second span that would be blocked
    assert looked(site).report["H4"].action == "block"


def test_what_is_blocked_leaves_once_with_the_keys_of_two_officers_and_a_reason(one_more):
    site = one_more
    officers = [Identity.new(name, role="approver") for name in ("officer", "second")]
    named = tuple(Approver(**each.public.model_dump(), party="north") for each in officers)
    session = site.joined(holdout=0.0, approvers=named)
    found = read_audit(keep(session, looked(site)), site.agreement)
    both = Forced(reason="the board asked for it", by=("officer", "second"))
    for each, overrides in zip(officers, ([both], [PEOPLE, None]), strict=True):
        made = approve_audit(found, site.agreement, identity=each)
        session.beside(f"upload.{each.public.name}.approval").write_bytes(made.text().encode())
        for override in overrides:
            with pytest.raises(AuditBlockedError, match="two people whose keys approved it"):
                sent(site, override=override)
    sent(site, override=both)
    entry = verify_transcript(session.transcript.path)[-2]
    assert entry.told["overridden_by"] == entry.told["signed_by"] == ["officer", "second"]
    assert entry.told["signed_with"] == "an officer's key"
    with pytest.raises(ApprovalError, match="one was used up"):
        approve(session, looked(site), signed_by=[], override=both)


def test_sensitive_columns_are_tried(site):
    found = looked(site, sensitive=("age", "died"))
    assert found.report["P5"].figures["column"] == "age"
    assert found.report["H6"].action == "sign"
