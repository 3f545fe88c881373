"""The analyst's commands, ``verify`` and ``inspect`` as people type them."""

from pathlib import Path

import pytest

from analyst_side.rounds import NAMES, real_round
from cli.round_by_commands import Typed
from cobasis.analyst_side import run as running
from cobasis.cli import options
from cobasis.errors import UnsignedError
from cobasis.keys.identity import key_path, save_identity
from cobasis.protocol.signatures import sign_agreement

AUDIT = {"policy": "cobasis/audit/1", "verdict": "pseudonymised", "report": "a" * 64}


class Lab(Typed):
    """Types commands as the analyst of a real round; parties' files are made in Python."""

    def __init__(self, folder, monkeypatch, *, sealed=True, **changes):
        super().__init__(folder, monkeypatch)
        self.made = real_round(folder, **changes)
        self.path = self.made.write()
        self.made.inbox.mkdir()
        if not sealed:
            self.path.with_name("icu.sealed.toml").unlink()
        for name in ("lab", "north"):
            home = folder / f"home-{name}"
            path = key_path(home, name)
            save_identity(self.made.identities[name], path, passphrase="correct horse")  # noqa: S106 -- a test's
        if sealed:
            self("receive icu.toml")  # with nothing given: what lies beside it

    def __call__(self, words, *, by="lab", **options):
        return super().__call__(words, by=by, **options)

    def send(self, *names, **options):
        for name in names:
            self.made.upload(name, file=f"icu.{name}.1-upload", audit=AUDIT, **options)

    def sign(self, *names):
        for name in names:
            sign = self.made.identities[name].sign
            text = sign_agreement(self.made.agreement, name=name, sign=sign).text()
            (self.made.inbox / f"{name}.sig").write_text(text)


@pytest.fixture
def lab(tmp_path, monkeypatch):
    return Lab(tmp_path, monkeypatch)


@pytest.fixture
def ran(lab):
    lab.send(*NAMES[:3])
    lab("receive icu.toml inbox")
    lab("run icu.toml --without west")
    return lab


def narrow(text):
    """Every line of a screen, none wider than a terminal."""
    lines = text.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    return lines


def test_receive_says_who_is_in_who_is_missing_and_where_the_news_are(lab):
    lab.send("east", "north")
    found = lab.json("receive icu.toml inbox/")
    assert (found["received"], found["missing"]) == (["east", "north"], ["south", "west"])
    assert [each["verdict"] for each in found["files"]] == ["accepted", "accepted"]
    assert (found["exchange"], found["message"]) == (1, "upload")
    assert Path(found["news"]) == Path("icu.news")
    lines = narrow(lab("receive icu.toml inbox/").stdout)
    assert "  missing   south, west" in lines
    assert lines[0].startswith("icu.east.1-upload  received before: upload of east, 40 rows")


def test_the_agreement_may_be_left_out_where_one_lies_there(lab):
    lab.send(*NAMES)
    assert lab.json("receive inbox")["missing"] == []
    assert set(lab.json("run")["written"]) == set(NAMES)
    assert lab.json("remove west")["party"] == "west"
    assert lab.json("verify")["holds"]


def test_signatures_one_by_one_seal_the_agreement_with_the_last(tmp_path, monkeypatch):
    lab = Lab(tmp_path, monkeypatch, sealed=False)
    lab.sign("north", "south")
    lines = narrow(lab("receive icu.toml inbox/north.sig inbox/south.sig").stdout)
    assert lines[0] == "north.sig  accepted: signature of north"
    assert "  signed    north, south (2 of 5)" in lines
    assert "  missing   east, west, lab" in lines
    assert "[CB311]" in lab("run icu.toml", code=UnsignedError.exit_code).stderr
    lab.sign("east", "west", "lab")
    found = lab.json("receive icu.toml inbox")
    assert (found["unsigned"], found["sealed"]) == ([], "icu.sealed.toml")
    lines = narrow(lab("receive icu.toml inbox").stdout)
    assert "  missing   east, north, south, west" in lines


def test_a_party_types_receive_only_to_seal_and_no_other_command_of_the_analyst(
    tmp_path, monkeypatch
):
    lab = Lab(tmp_path, monkeypatch, sealed=False)
    lab.sign(*NAMES, "lab")
    lab.made.upload("north", file="icu.north.1-upload")
    found = lab.json("receive icu.toml inbox", by="north")
    assert (found["sealed"], found["news"]) == ("icu.sealed.toml", None)
    assert "passed over" in {each["verdict"] for each in found["files"]}
    for line in ("run icu.toml", "remove icu.toml south"):
        done = lab(line, by="north", code=2)
        assert "this is the analyst's command" in done.stderr
        assert "[CB702]" in done.stderr
    assert "[CB304]" in lab("receive icu.toml inbox", by="nobody", code=2).stderr
    assert "the analyst's" in lab("forget icu.toml --early", by="north", code=2).stderr


def test_receive_shows_the_audit_record_of_each_upload_also_later(lab):
    lab.send("east", "north")
    lab("receive icu.toml inbox/icu.east.1-upload")
    said = " ".join(lab("receive icu.toml inbox").stdout.split())
    assert "audit: pseudonymised by cobasis/audit/1" in said
    found = lab.json("receive icu.toml inbox")["files"]
    assert [each["verdict"] for each in found] == ["received before"] * 2
    assert [each["audit"] for each in found] == [AUDIT, AUDIT]


def test_a_file_that_is_refused_makes_the_exit_code_3_and_blocks_no_other(lab):
    lab.send("east", "north")
    (lab.made.inbox / "bad").write_bytes(b"junk")
    found = lab.json("receive icu.toml inbox", code=3)
    assert {each["file"]: each["code"] for each in found["files"]} == {
        "bad": "CB801",
        "icu.east.1-upload": "",
        "icu.north.1-upload": "",
    }
    assert found["received"] == ["east", "north"]
    narrow(lab("receive icu.toml inbox", code=3).stdout)


def test_run_says_first_which_exchange_it_ends_and_writes_one_return_per_party(lab):
    lab.send(*NAMES)
    lab("receive icu.toml inbox")
    lines = narrow(lab("run icu.toml").stdout)
    assert lines[0] == "Ends exchange 1 of 1: upload -> return"
    assert "Wrote outbox/icu.north.1-return" in lines
    got = lab.made.returned("north")
    assert got.trained_on == NAMES
    again = lab.json("run icu.toml")
    assert (again["written"], set(again["figures"])) == ({}, set(NAMES))
    assert "Nothing is new" in lab("run icu.toml").stdout
    other = lab.json("run icu.toml --model logistic -o elsewhere")
    assert (other["model"], len(other["written"])) == ("logistic", 4)


def test_a_round_with_a_consensus_ends_in_two_runs(tmp_path, monkeypatch):
    lab = Lab(tmp_path, monkeypatch, basis="consensus")
    for name in NAMES:
        lab.made.proposal(name)
    assert lab.json("receive icu.toml inbox")["message"] == "proposal"
    lines = narrow(lab("run icu.toml").stdout)
    assert lines[0] == "Ends exchange 1 of 2: proposal -> span"
    assert "waits for the upload" in lab("run icu.toml", code=4).stderr
    lab.made.reply("east", 0).unlink()
    lost = lab.json("run icu.toml")
    assert (list(lost["written"]), lost["contributors"]) == (["east"], list(NAMES))
    for name in NAMES:
        consensus = lab.made.adopted(name)
        lab.made.upload(name, file=f"icu.{name}.2-upload", consensus=consensus)
    assert lab.json("receive icu.toml inbox")["exchange"] == 2
    assert narrow(lab("run icu.toml").stdout)[0] == "Ends exchange 2 of 2: upload -> return"


def test_a_run_for_which_files_are_missing_exits_with_4_and_the_names(lab):
    lab.send("north")
    lab("receive icu.toml inbox")
    done = lab("run icu.toml", code=4)
    assert "waits for the upload of east, south, west" in done.stderr
    assert "--without" not in done.stderr  # one alone would be too few
    assert "[CB314]" in done.stderr
    done = lab("run icu.toml --without west", code=4)
    assert "waits for the upload of east, south," in done.stderr
    lab.send("south", "east")
    lab("receive icu.toml inbox")
    assert "go on without them: --without west" in lab("run icu.toml --with west", code=4).stderr


def test_a_family_that_was_not_agreed_exits_with_2(lab):
    lab.send(*NAMES)
    lab("receive icu.toml inbox")
    done = lab("run icu.toml --model mlp", code=2)
    assert "allowed: ridge, logistic" in done.stderr


def test_a_late_party_is_received_named_and_taken_in_after_a_word(ran):
    ran.send("west")
    assert ran.json("receive icu.toml inbox")["late"] == ["west"]
    assert "To take it: --with west" in ran("run icu.toml").stdout
    done = ran("run icu.toml --with west", code=2)
    assert "takes in who came since" in done.stdout
    assert "nobody is here to be asked" in done.stderr
    added = ran.json("run icu.toml --with west --yes")
    assert (added["trained_on"], set(added["written"])) == (list(NAMES), set(NAMES))


def test_remove_certifies_and_says_what_is_left_to_do(ran):
    ran.send("west")
    ran("receive icu.toml inbox")
    ran("run icu.toml --with west --yes")
    lines = narrow(ran("remove icu.toml south").stdout)
    assert "- The target still descends from east." in lines
    assert not Path("outbox/icu.south.1-return").exists()
    removed = ran.json("remove icu.toml south --realign")
    assert [Path(path).name for path in removed["certificate"]] == [
        "removal-south.json",
        "removal-south.txt",
    ]
    assert removed["trained_on"] == ["east", "north", "west"]
    done = ran("remove icu.toml north", code=2)
    assert "without party 'north' 2 would stay (east, west)" in done.stderr
    assert "takes the name of one party" in ran("remove icu.toml", code=2).stderr


def test_forget_refuses_before_it_asks_and_asks_for_the_rounds_name(ran):
    assert "agreed to be kept" in ran("forget icu.toml", code=2).stderr
    assert "nobody is here to type" in ran("forget icu.toml --early", code=2).stderr
    said = narrow(ran("forget icu.toml --early --yes").stdout)
    assert said[0].startswith("What parties sent in round 'icu-2026' was destroyed on")
    assert "[CB313]" in ran("receive icu.toml inbox", code=2).stderr
    assert "[CB313]" in ran("run icu.toml", code=2).stderr
    said = ran("forget icu.toml --early --with-key --yes").stdout
    assert "Destroy its copies" in said
    assert "[CB304]" in ran("forget icu.toml --yes", code=2).stderr


@pytest.mark.parametrize(("typed", "code"), [("icu-2025", 2), ("icu-2026", 0)])
def test_on_a_terminal_only_the_rounds_name_destroys(ran, monkeypatch, typed, code):
    monkeypatch.setattr(options, "on_terminal", lambda: True)
    done = ran("forget icu.toml --early", code=code, typed=f"{typed}\n")
    assert "Type the round's name" in done.stderr
    assert (code == 0) == ("was destroyed on" in done.stdout)
    assert ran.made.session().history.forgotten == "" or code == 0


def test_verify_needs_no_key_and_exits_with_3_when_something_does_not_hold(ran):
    found = ran.json("verify icu.toml", by="nobody")
    assert found["holds"]
    assert {each["what"] for each in found["findings"]} == {
        *("agreement", "transcript", "news", "receipt", "upload", "payload", "return", "fit")
    }
    folder = ran.folder / "transcript"
    folder.mkdir()
    for path in ("icu.news", "icu.round/transcript.jsonl"):
        (folder / Path(path).name).write_bytes(Path(path).read_bytes())
    assert ran.json("verify icu.toml transcript/", by="nobody")["holds"]
    (folder / "icu.news").write_bytes(b"{}\n")
    found = ran.json("verify icu.toml transcript/", by="nobody", code=3)
    assert [each["name"] for each in found["findings"] if not each["holds"]] == ["icu.news"]
    lines = narrow(ran("verify icu.toml transcript", by="nobody", code=3).stdout)
    assert any(line.startswith("FAILS") for line in lines)


def test_inspect_says_with_a_key_what_it_does_not_say_without(lab):
    lab.send("north")
    file = "inbox/icu.north.1-upload"
    outside = lab.json(f"inspect {file}", by="nobody")
    assert (outside["n_recipients"], outside["manifest"], outside["round"]) == (1, None, None)
    inside = lab.json(f"inspect {file} --as lab")
    assert (inside["signature"], inside["manifest"]["sender"]) == ("not checked", "north")
    checked = lab.json(f"inspect {file} --as lab --agreement icu.toml")
    assert checked["signature"] == "good"
    assert checked["manifest"]["told"]["n_rows"] == 40
    assert "[CB801]" in lab(f"inspect {file} --as north", by="north", code=3).stderr


def test_inspect_says_which_of_our_plain_files_a_file_is(lab):
    lab.sign("north")
    lab("receive icu.toml inbox")
    (lab.folder / "north.pub").write_text(lab.made.identities["north"].public.text())
    said = {
        "icu.toml": "an agreement",
        "icu.news": "the analyst's news",
        "north.pub": "a public identity",
        "inbox/north.sig": "a signature",
    }
    for name, kind in said.items():
        assert f"not sealed: {kind}" in lab(f"inspect {name}", by="nobody").stdout
        assert lab.json(f"inspect {name}", by="nobody")["n_recipients"] == 0
    (lab.folder / "other.txt").write_text("hello\n", encoding="utf-8")
    assert "[CB801]" in lab("inspect other.txt", by="nobody", code=3).stderr


def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(lab, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    lab.send(*NAMES)
    lab("receive icu.toml inbox")
    with monkeypatch.context() as patch:
        patch.setattr(running, "conclude", interrupted)
        assert "the same command goes on" in lab("run icu.toml", code=130).stderr
    assert set(lab.json("run icu.toml")["written"]) == set(NAMES)


def test_the_analysts_folders_hold_no_secret_of_a_party(ran):
    secret, rows = ran.made.secret._key, ran.made.rows
    wanted = [secret, secret.hex().encode(), *(rows[name][0][0].tobytes() for name in NAMES)]
    analysts = [ran.folder / each for each in ("icu.round", "home-lab", "outbox", "icu.news")]
    files = [path for each in analysts for path in (each, *each.rglob("*")) if path.is_file()]
    assert len(files) > 10
    for path in files:
        data = path.read_bytes()
        assert not [needle for needle in wanted if needle in data], path
