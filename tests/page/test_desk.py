"""Who may see the page and press its buttons, and what is answered to all others."""

import json
import re
import sys
from pathlib import Path

from cobasis.cli import desk
from page.rounds import OWN, PASSPHRASE, Visit

FORBID = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
}
NO_STYLE = "default-src 'none'; style-src 'self'; script-src 'self'"


def test_the_token_is_taken_once_in_time_and_the_cookie_is_strict_and_of_one_path(
    visit, monkeypatch
):
    def entered(token):
        told = {"content": b"token=" + token, "headers": {"origin": OWN}}
        return visit.browser.post("/token", **told, follow_redirects=False)

    assert "Waits for" not in visit.browser.get("/").text
    for token in (b"", b"x", b"\xff") * 3:  # and the right one is taken afterwards
        answer = entered(token)
        assert (answer.status_code, visit.desk._at in answer.text) == (403, False)
    right, now = visit.desk.token.encode(), desk.time.monotonic()
    with monkeypatch.context() as late:
        late.setattr(desk.time, "monotonic", lambda: now + 601)
        assert entered(right).status_code == 403
    answer = entered(right)
    place, [cookie] = answer.headers["location"], answer.headers.get_list("set-cookie")
    assert (answer.status_code, len(place) >= 24) == (303, True)
    assert cookie.lower().endswith(f"; httponly; path={place}; samesite=strict".lower())
    assert "Round icu" in visit.browser.get(place).text
    again = [entered(right), visit.browser.get(place), entered(right)]  # ends what it began
    assert [answer.status_code for answer in again] == [403] * 3


def test_to_another_host_or_without_the_cookie_nothing_is_told_not_even_of_a_round(inside):
    for host in ("evil.example:8000", "127.0.0.1", "127.0.0.1:9000", "[::1]:8000"):
        answer = inside.browser.get(f"{inside.at}/icu", headers={"host": host})
        assert (answer.status_code, "north" in answer.text) == (421, False)
    inside.browser.cookies.clear()
    answers = [inside.get(path) for path in ("", "icu", "icu/run", "nobody")]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.text for answer in answers}) == 1
    inside.browser.cookies.set("cobasis", "0" * 43)
    assert inside.get("icu").status_code == 403
    told = "".join(inside.browser.get(path).text for path in ("/", "/icu", "/nobody/icu"))
    assert not [word for word in (inside.at, "north") if word in told]


def test_every_answer_forbids_to_keep_frame_or_sniff_it(inside):
    answers = [inside.get(path) for path in ("", "icu", "icu/run", "nobody")]
    answers += [inside.browser.get(path) for path in ("/", "/desk.css", "/desk.js", "/nobody")]
    answers += [inside.browser.get("/", headers={"host": "evil"}), inside.enter("x")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith(NO_STYLE), answer.url
        assert "frame-ancestors 'none'; base-uri 'none'" in policy
        assert "form-action 'self'" in policy
        assert FORBID.items() <= dict(answer.headers).items()
        assert "//" not in answer.text.replace("<!doctype", "").replace(OWN, "")


FLAWS = (
    ({"code": ""}, "of an earlier page"),
    ({"code": "0" * 43}, "of an earlier page"),
    ({"stands": "0" * 64}, "has changed since"),
    ({"typed": "icu"}, "as it is written here"),
    ({"typed": ""}, "as it is written here"),
    ({"passphrase": ""}, "Type the passphrase"),
)


def test_a_form_of_another_page_or_time_or_without_a_name_or_passphrase_does_nothing(inside):
    for origin in ("http://evil.example", "http://127.0.0.1:9000", "null", None):
        assert inside.send("icu/receive", origin=origin).status_code == 403
    site = {"sec-fetch-site": "same-site"}
    assert inside.send("icu/receive", headers=site).status_code == 403
    assert inside.send("icu/receive", files="x" * 2**16).status_code == 413  # not read to its end
    for wrong, said in FLAWS:
        answer = inside.send("icu/receive", files="mine", **wrong)
        assert answer.status_code == 409
        assert [x in answer.text for x in (said, 'value="mine"', PASSPHRASE)] == [True, True, False]
    form, transcript = inside.form("icu/run"), Path("icu.round/transcript.jsonl")
    lines = transcript.read_bytes().splitlines(keepends=True)
    transcript.write_bytes(b"".join(lines[:-1]))  # as it was a step before
    answer = inside.browser.post(f"{inside.at}/icu/run", data=form, headers={"origin": OWN})
    assert "has changed since" in answer.text
    assert inside.desk._jobs == {}


def test_a_wrong_passphrase_is_the_commands_error_and_stands_nowhere(inside, monkeypatch):
    transcript, begun, wrong = Path("icu.round/transcript.jsonl"), [], "a wrong one"
    before = transcript.read_bytes()

    class Watched(desk.Popen):
        def __init__(self, line, **more):
            begun.append((line, more))
            super().__init__(line, **more)

    monkeypatch.setattr(desk, "Popen", Watched)
    job = inside.ended(inside.send("icu/receive", passphrase=wrong, files="mine"))
    [(line, more)] = begun
    assert wrong not in json.dumps([line, more["env"], list(job.lines)])
    assert job.code == 2
    shown = inside.get("icu/receive").text
    assert [x in shown for x in ("PassphraseError", 'value="mine"', wrong)] == [True, True, False]
    assert transcript.read_bytes() == before


def test_what_is_typed_into_a_form_is_no_option_and_no_other_value_than_is_offered(inside):
    action = inside.desk._topics()["icu"]().actions
    line = action["receive"].line({"files": ["--passphrase-file=/etc/shadow"]})
    assert line[line.index("--") :] == ["--", "./icu.toml", "--passphrase-file=/etc/shadow"]
    line = action["run"].line({"--without": ["north", "x --yes"], "--model": ["svm"]})
    assert [each for each in line if "=" in each] == ["--without=north"]
    assert action["remove"].line({"typed": ["nobody"]})[-1] == "./icu.toml"


def test_code_that_somebody_put_into_the_folder_does_not_run(inside):
    for name in ("numpy", "typer", "cobasis"):
        Path(f"{name}.py").write_text("open('ran', 'w')\nraise SystemExit(9)\n")
    inside.do("icu/verify")
    assert not Path("ran").exists()


def test_a_round_whose_file_has_any_name_is_shown(inside):
    Path("icu.toml").rename("icu #2?.toml")
    [place] = re.findall('href="([^"]*icu[^"]*)"', inside.get().text)
    assert "Round icu" in inside.browser.get(place).text
    inside.do("icu%20%232%3F/verify")


def test_the_address_is_printed_with_the_token_behind_its_fragment(sent, monkeypatch):
    opened = []
    monkeypatch.setattr(desk.webbrowser, "open", opened.append)
    monkeypatch.setattr(desk.uvicorn.Server, "run", lambda _, sockets: opened.append(sockets))
    monkeypatch.setenv("DISPLAY", ":0")
    said = sent("page .", by="lab").stderr
    address, _ = opened
    assert address in said
    assert re.fullmatch("http://127.0.0.1:[0-9]+/#.{43,}", address)


def test_a_page_is_of_a_folder_needs_the_servers_packages_and_a_partys_has_no_buttons(
    sent, monkeypatch
):
    sent.refused("page nowhere", "is no folder", by="lab")
    visit = Visit(sent, monkeypatch, words="page .", by="north").inside()
    assert 'class="buttons"' not in visit.get("icu").text
    assert visit.get("icu/run").status_code == 404
    monkeypatch.setitem(sys.modules, "cobasis.cli.desk", None)
    sent.refused("page .", "pip install 'cobasis[serve]'", by="lab")
