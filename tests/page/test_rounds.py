"""What the page shows of rounds, and that its buttons do what the commands do."""

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from cli.round_by_commands import NAMES
from cobasis.analyst_side.history import history_of
from cobasis.analyst_side.returns import findings_of
from cobasis.analyst_side.session import WorkFolder
from cobasis.bundle.transcript import verify_transcript
from page.rounds import OWN, PASSPHRASE, Visit, at_work


def words_of(answer):
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def findings():
    work = WorkFolder(Path("icu.round"))
    return findings_of(work, history_of(verify_transcript(work.transcript)).outcome)


@pytest.mark.soak  # 6 seconds
def test_receive_and_run_by_button_are_the_commands_and_the_page_shows_what_came_of_it(inside):
    assert "north yes missing none none" in words_of(inside.get("icu"))
    inside.do("icu/receive", files="inbox")
    shown = words_of(inside.get("icu"))
    size = Path("icu.round/received/north.1-upload").stat().st_size
    assert re.search(f"north yes received [^,]*, {size:,} bytes upload: pseudonymised none", shown)
    assert "upload received from east, north, south; 2 needed" in words_of(inside.get("icu/run"))
    job = inside.do("icu/run")
    page, kept = inside.get("icu"), findings()
    shown = words_of(page)
    assert re.search("anchor images carry one anchor tag.* not a random turn", shown)
    assert page.text.count("<rect") == 3
    for family, by in kept["scores"].items():
        low = [f"{one:.3f} ({low:.3f} to {high:.3f})" for one, low, high in by.values()]
        assert f"{family} {' '.join(low)}" in shown
        assert any(f"{family:16}{low[0]:26}{low[1]}" in line for line in job.lines)
    card = inside.get("icu/card")
    assert "style-src 'unsafe-inline'" in card.headers["content-security-policy"]
    assert card.text == Path("icu.card.html").read_text()

    assert inside.send("icu/remove", typed="icu").status_code == 409
    inside.do("icu/remove", typed="south")
    assert list(findings()["certificate"]["parties"]) == ["east", "north"]
    inside.do("icu/forget", **{"--early": "yes"})
    assert re.search("destroyed.* lab. Forget Key.* removed", words_of(inside.get("icu")))
    Path("icu.round/findings.json").write_text("{torn")
    assert "What is exact" not in inside.get("icu").text


def test_sign_by_button_shows_the_terms_and_no_other_text_is_signed(sent, monkeypatch):
    for name in ("icu.sealed.toml", "icu.news", *(f"{name}.sig" for name in (*NAMES, "lab"))):
        Path(name).unlink()
    shutil.rmtree("icu.round")
    inside = Visit(sent, monkeypatch).inside()
    shown = words_of(inside.get("icu/sign"))
    assert "Purpose study" in shown
    assert "30 days (lab's word, no proof)" in shown
    form, path = inside.form("icu/sign"), Path("icu.toml")
    path.write_text(path.read_text().replace('"study"', '"another"'))
    answer = inside.browser.post(f"{inside.at}/icu/sign", data=form, headers={"origin": OWN})
    assert "has changed since" in answer.text
    inside.do("icu/sign")
    shown = words_of(inside.get("icu/sign"))
    assert re.search("Not signed by east, north, south.* sign: done .*Wrote icu.lab.sig", shown)


def test_progress_is_a_bar_and_a_status_and_what_is_said_below(inside):
    form = inside.form("icu/verify")
    inside.desk._jobs["icu"] = job = at_work("receive", "<b>mine")
    answer = inside.browser.post(f"{inside.at}/icu/verify", data=form, headers={"origin": OWN})
    assert "A command is at work here" in answer.text
    assert inside.desk._jobs["icu"] is job
    text = inside.get("icu/run").text
    for part in ('<p role="status">training &lt;b&gt;</p>', 'value="3" max="10"', "&lt;b&gt;mine"):
        assert part in text
    assert 'name="passphrase"' not in text
    job.code = 3
    assert "cobasis receive: not all is in order" in inside.get("icu/receive").text


def test_what_others_wrote_is_text_and_no_markup(sent, monkeypatch):
    mark = "<script>alert(1)</script>"
    text = Path("icu.toml").read_text().replace('purpose = "study"', f'purpose = "{mark}"')
    Path("other.toml").write_text(text)
    Path("<img src=x>.toml").write_text("no agreement")
    inside = Visit(sent, monkeypatch).inside()
    for path in ("", "other", "other/receive", "%3Cimg%20src=x%3E"):
        assert re.findall(r"<script>|<img", inside.get(path).text) == []
    assert "&lt;script&gt;" in inside.get("other").text
    assert "cannot be shown" in inside.get().text


def test_an_audit_is_shown_with_a_button_that_approves_it(cobasis, monkeypatch):
    cobasis.keys()
    cobasis("key new officer --approver", by="officer")
    monkeypatch.setattr(cobasis, "keys", lambda: None)
    cobasis.sealed(more="--approver north=officer.pub --holdout 0.4")
    words = "audit icu.toml north.csv -o audit.html --open"
    visit = Visit(cobasis, monkeypatch, words=words, by="north")
    assert "Approve or withdraw" in visit.enter().text
    assert "Approve or withdraw" not in Path("audit.html").read_text()
    words = "audit icu.toml audit.json --open"
    inside = Visit(cobasis, monkeypatch, words=words, by="officer").inside()
    page = inside.get()
    assert "not approved" in page.text
    assert "style-src 'unsafe-inline'" in page.headers["content-security-policy"]
    inside.at = inside.at.removesuffix("/audit")
    assert inside.send("audit/approve", typed="north").status_code == 409
    form, kept = inside.form("audit/approve"), Path("audit.json").read_bytes()
    cobasis("audit icu.toml north.csv -o audit.html")  # another draw, so another seal
    answer = inside.browser.post(f"{inside.at}/audit/approve", data=form, headers={"origin": OWN})
    assert "has changed since" in answer.text
    Path("audit.json").write_bytes(kept)
    inside.do("audit/approve", **{"--word": "yes"})
    made = json.loads(Path("icu.north.upload.officer.approval").read_text())
    assert (made["party"], made["word"], PASSPHRASE in str(made)) == ("north", True, False)
    assert "Approved" in inside.get("audit").text


def test_a_folder_that_another_user_made_hides_no_other_round(inside, monkeypatch):
    shutil.copy("icu.toml", "two.toml")
    exists = Path.exists

    def refused(path):  # as for anybody but root
        if path.parent.name == "two.round":
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refused)
    text = inside.get().text
    assert ("two</b> cannot be shown" in text, text.count("cannot be shown")) == (True, 1)
