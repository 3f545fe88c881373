"""Officers: who they are in an agreement, what they approve, and what leaves with it."""

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from cli.round_by_commands import NAMES, PUBS, TERMS, write_table
from cobasis.bundle.agreement_file import read_agreement
from cobasis.errors import ApprovalError
from cobasis.party_side import approval
from cobasis.privacy.audit.report import TITLES, AuditReport, Finding
from cobasis.vault.vault import Vault

SEND = "send icu.toml north.csv --yes"
APPROVE = "approve icu.toml audit.json --yes"
OFFICERS = ("officer", "second")
OF_KINDS = {
    "upload, rounded": "--n-components 3 --precision int8 --int8-range 12",
    "upload, drawn": "--n-components 3 --basis haar "
    "--dp epsilon=8,delta=1e-5,radius=8,most_rows=99,labels=public",
    "proposal": "--n-components 3 --basis consensus --minimum-parties 2",
    "sums": "--sums maps=rff,waves=2,most_rows=100,most_rows_in_all=300,least_rows=10",
}
OFFICER, UPLOAD = Path("icu.north.upload.officer.approval"), Path("icu.north.1-upload")


@pytest.fixture
def officers(cobasis):
    cobasis.keys(officers=OFFICERS)
    return cobasis


def test_an_officer_is_enrolled_beside_a_party_and_what_officers_file_is_signed(officers):
    one, two = "--approver north=officer.pub", "--approver north=second.pub"
    officers.draft(pubs=f"{PUBS} officer.pub", more=one)
    before = read_agreement(Path("icu.toml")).agreement
    assert [(each.party, each.name) for each in before.approvers] == [("north", "officer")]
    assert officers.public("officer").fingerprint == before.approvers[0].fingerprint
    officers.edit("# [record]", "[record]")
    officers.edit('# legal_basis = ""', 'legal_basis = "art. 9(2)(j)"')
    officers(f"agreement new icu.toml {two} --yes")
    after = read_agreement(Path("icu.toml")).agreement
    assert (after.record.legal_basis, before.record) == ("art. 9(2)(j)", None)
    assert [each.name for each in after.approvers] == [*OFFICERS]
    assert before.digest() != after.digest()
    for more, said in {
        "--approver north=north.pub": "the key of approver 'north' was made for role 'party'",
        "--approver west=officer.pub": "of 'west', which is no party",
        "--approver officer.pub": "does not say whose officer it is",
        "officer.pub": "Say of which party: --approver PARTY=officer.pub",
    }.items():
        told = officers.draft("other.toml", pubs=PUBS, more=more, code=2).output
        assert said in " ".join(told.split())
        assert not Path("other.toml").exists()
    officers("key new both --analyst --approver", code=2)


@pytest.fixture
def audited(officers):
    officers.sealed(more="--approver north=officer.pub --approver north=second.pub --holdout 0.4")
    officers("audit icu.toml north.csv -o audit.html")
    return officers


def test_an_officers_stolen_key_stops_the_round_until_its_party_is_out(audited):
    audited(APPROVE, by="officer")
    audited(SEND)
    audited.send("east", "south")
    UPLOAD.rename("later")
    audited("receive icu.toml inbox", by="lab")
    for by in ("south", "lab"):
        audited("key revoke icu.toml officer --yes", by=by)
    for line, by in (("run icu.toml", "lab"), (f"{SEND} --signed-by Dr", "north")):
        audited.refused(line, "[CB315]", "'officer'", "run --without north, and", by=by)
    assert audited.json("status icu.toml", by="south")["revoked"] == ["officer"]
    audited("run icu.toml --without north", by="lab")
    assert "[CB315]" in audited("receive icu.toml later", by="lab", code=3).stdout
    assert audited.json("status icu.toml", by="lab")["revoked"] == []


def test_an_audit_that_no_officer_can_approve_is_refused_and_nothing_is_written(audited):
    text = audited.edit('"grade": "red"', '"grade": "green"', file="audit.json")
    edited = Path("audit.json").read_text()
    for said, code, line, told in (
        (edited, "CB513", APPROVE, "it was edited"),
        ("{}", "CB513", APPROVE, "is not what 'cobasis audit' writes"),
        (text, "CB513", f"{APPROVE} --deadline 2020-01-01", "would have ended on 2020-01-01"),
        (text, "CB304", f"{APPROVE} --key north", "enrolled: officer, second"),
    ):
        Path("audit.json").write_text(said)
        audited.refused(line, f"[{code}]", told, by="officer")
    other = read_agreement(Path("icu.toml")).agreement.model_copy(update={"retention_days": 9})
    with pytest.raises(ApprovalError, match="is of another agreement"):
        approval.read_audit(Path("audit.json"), other)
    assert not list(Path().glob("*.approval"))


def test_a_file_leaves_with_an_approval_of_exactly_what_it_is_made_of(audited, monkeypatch):
    def refused(code, told):
        audited.refused(f"{SEND} --signed-by Dr", f"[{code}]", told)
        assert not UPLOAD.exists()

    refused("CB512", "an officer whom the agreement names (officer, second)")
    assert max(map(len, audited(APPROVE, by="officer").stdout.splitlines())) < 80
    kept = next(Path("home-north/audits/north").rglob("*.json"))
    for path, old, new, told in (
        (Path("north.csv"), ",yes", ",no", "as it was then: data version, rows held back"),
        (OFFICER, '"times":1', '"times":2', "made with no key that is enrolled"),
        (kept, "red", "amber", "does not keep"),
    ):
        text = audited.edit(old, new, file=path)
        refused("CB513", told)
        path.write_text(text)
    Path("own.toml").write_text('[a]\nblanks = ["-99"]\n')  # which no cell is
    audited.refused(f"{SEND} --mapping own.toml", "[CB513]", "as it was then: mapping.")
    Path("own.toml").write_text("")
    audited("audit icu.toml north.csv --mapping own.toml")
    with monkeypatch.context() as patch:
        patch.setattr(approval, "_worse", lambda *_: ["P1"])
        refused("CB513", "worse than the approved one: P1")
    OFFICER.with_name("icu.north.upload.copy.approval").write_text(OFFICER.read_text())
    said = ("What another officer approved still may", "and sends nothing")
    audited("audit icu.toml north.csv -o other.html")  # whichever audit is at hand
    audited(f"{APPROVE} --withdraw".replace("audit.json", "other.json"), by="officer")
    refused("CB513", "one was withdrawn")
    late = f"{APPROVE} --withdraw --deadline 2020-01-01"  # no deadline is too early for that
    audited.said(late, *said, by="officer")
    refused("CB513", "one was withdrawn")
    audited(f"{APPROVE} --times 2 --deadline 2031-05-06", by="second")
    page = " ".join(re.sub("<[^>]*>", "", Path("audit.html").read_text("utf-8")).split())
    assert re.search(r"Withdrawn on \S+ with the key of officer", page)
    who = f"with the key of second, {audited.public('second').fingerprint}"
    assert f"{who}: upload, 2 times until 2031-05-06" in page
    audited(SEND.removesuffix("--yes"))  # nobody is here to be asked, and an officer has answered
    received = audited.json("receive icu.toml icu.north.1-upload", by="lab")["files"][0]
    assert received["verdict"] == "accepted"
    shown = audited.json("inspect icu.north.1-upload --as lab", by="lab")["manifest"]["audit"]
    assert [(each["exchange"], each["times"]) for each in shown["approvals"]] == [("upload", 2)]
    assert b"officer" not in UPLOAD.read_bytes()


def test_an_approval_outlives_a_send_that_was_killed_and_no_file_of_another_round(
    audited, monkeypatch
):
    audited(APPROVE, by="officer")
    killed = Mock(side_effect=KeyboardInterrupt)
    with monkeypatch.context() as patch:
        patch.setattr("cobasis.party_side.session.write_bundle", killed)
        audited(SEND, code=130)
    history = Vault.history

    def elsewhere(vault):
        return tuple(replace(each, agreement="0" * 64) for each in history(vault))

    with monkeypatch.context() as patch:
        patch.setattr(Vault, "history", elsewhere)
        audited.refused(SEND, "not as it was then: history.")
    with monkeypatch.context() as patch:  # and once more, with the file made and without its name
        patch.setattr("cobasis.party_side.send.copy_whole", killed)
        audited(SEND, code=130)
    audited(f"{APPROVE} --withdraw", by="officer")
    audited.refused(SEND, "[CB513]", "its approval was withdrawn since")
    assert not UPLOAD.exists()
    audited(APPROVE, by="officer")
    audited(SEND)
    assert UPLOAD.exists()


def test_an_audit_is_worse_by_a_grade_or_a_share_that_no_draw_explains():
    def report(grade, share):
        told = {"verdict": "aggregate", "verdict_words": "", "sentences": (), "untested": ()}
        found = Finding("P1", grade, "", {"explained": share})
        return AuditReport(about={}, findings=(found,), **told)

    for before, after, worse in (
        (("amber", 0.3), ("amber", 0.31), False),
        (("amber", 0.3), ("amber", 0.33), True),
        (("amber", 0.3), ("red", 0.3), True),
        (("amber", -70.0), ("amber", -0.6), False),
    ):
        found = approval._worse(report(*before), report(*after))
        assert list(found) == [f"{TITLES['P1']} (P1)"] * worse


def test_an_analyst_takes_no_file_without_the_approval_that_is_agreed(audited, monkeypatch):
    monkeypatch.setattr("cobasis.party_side.audit.approved", lambda *_, **__: {})
    audited(f"{SEND} --signed-by Dr")
    found = audited.json("receive icu.toml icu.north.1-upload", by="lab", code=3)["files"][0]
    assert (found["code"], "no approval that holds" in found["reason"]) == ("CB802", True)


@pytest.mark.parametrize("case", OF_KINDS)
def test_files_of_every_kind_have_one_audit_and_leave_with_an_approval_of_their_own(officers, case):
    message = case.partition(",")[0]
    write_table(Path("public.csv"), seed=0)
    terms = f"{TERMS} --yes --model ridge --approver north=officer.pub"
    officers.signed_on(f"{terms} {OF_KINDS[case]}")
    officers.tables()
    officers.refused(f"{SEND} --signed-by Dr", "[CB512]")
    one, two = (officers.json("audit icu.toml north.csv -o audit.html") for _ in range(2))
    assert one["findings"] == two["findings"]  # whatever is rounded or drawn
    officers(APPROVE, by="officer")
    assert Path(f"icu.north.{message}.officer.approval").exists()
    officers(SEND)
    verdicts = {"sums": "aggregate", "upload, drawn": "differentially-private"}
    verdict = verdicts.get(case, "pseudonymised")
    said = (f"accepted: {message} of north", f"audit: {verdict}")
    officers.said(f"receive icu.toml icu.north.1-{message}", *said, by="lab")


def test_a_word_on_the_model_leaves_with_an_approval_that_covers_one(audited):
    audited(APPROVE, by="officer")
    audited.send(*NAMES)
    audited.run()
    audited.accept("north")
    line, word = "score icu.toml --send --yes", Path("icu.north.word")
    audited.refused(line, "none that lies beside 'icu.toml' covers one", "[CB512]")
    once = "north may say back once whether the model is better there"
    audited.said(f"{APPROVE} --word", once, by="officer")
    audited(line)
    text = audited.edit('\\"word\\":true', '\\"word\\":false', file=word)
    audited.refused("receive icu.toml icu.north.word", "CB802", by="lab", code=3)
    word.write_text(text)
    audited.said("receive icu.toml icu.north.word", "accepted: word", by="lab")
    assert audited.json("inspect icu.north.word")["kind"] == "a party's word on a model"
    audited("run icu.toml --model logistic --no-scores", by="lab")
    audited.accept("north")  # a new model, and the approval was for one word
    audited.refused(line, "or it was used")
    audited(f"{APPROVE} --word --deadline 2031-05-06", by="officer")
    audited(line)
