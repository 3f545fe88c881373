"""The analyst's commands, `verify` and `inspect` as people type them."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from bundle.bundles import write
from cli.round_by_commands import NAMES
from cobasis.errors import MissingExtraError


@pytest.fixture
def lab(sent):
    """All three uploads are in the inbox; that of south is held back."""
    shutil.move("inbox/icu.south.1-upload", "late")
    return lambda line, **options: sent(line, by="lab", **options)


def narrow(done):
    lines = done.stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    return lines


def test_receive_says_of_each_file_and_its_audit_what_it_is_and_who_is_missing(sent, lab):
    Path("inbox/bad").write_bytes(b"junk")
    found = sent.json("receive icu.toml inbox/", by="lab", code=3)  # one was refused
    assert {each["file"]: (each["verdict"], each["code"]) for each in found["files"]} == {
        "bad": ("refused", "CB801"),
        "icu.east.1-upload": ("accepted", ""),
        "icu.north.1-upload": ("accepted", ""),
    }
    assert (found["received"], found["missing"]) == (["east", "north"], ["south"])
    Path("inbox/bad").unlink()
    assert "Waits for    south, then lab" in narrow(lab("receive icu.toml inbox/"))


def test_a_run_waits_and_then_writes_one_return_for_each_party(sent, lab):
    lab("receive icu.toml inbox")
    waits = ("waits for the upload of south", "go on without them: --without south", "[CB314]")
    sent.refused("run icu.toml", *waits, by="lab", code=4)
    lacking = MissingExtraError("none of it is installed. Install it.")
    with mock.patch("cobasis.analyst_side.run.conclude", side_effect=lacking):
        sent.refused("run icu.toml --without south", "[CB622]", by="lab")
    assert sent.json("status icu.toml", by="lab")["halted"] == ""  # one can help oneself
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cobasis.protocol.refusals.DETERMINED", 2.0)  # so every fit is refused
        line = "run icu.toml --without south"
        told = sent.refused(line, "(--without NAME)", by="lab", code=3)
    assert "Analyst.remove" not in told
    for name in ("lab", "north"):  # the news are here; of a wait they said nothing
        sent.said("status icu.toml", "halted lab could not end", "[CB205]", by=name)
    lines = narrow(lab("run icu.toml --without south"))
    assert sent.json("status icu.toml")["halted"] == ""
    assert lines[0] == "Ends exchange 1 of 1: upload -> return"
    assert "Wrote outbox/icu.north.1-return" in lines
    assert "Nothing is new" in lab("run icu.toml").stdout
    sent.refused("run icu.toml --model mlp", "allowed: ridge, logistic", by="lab")
    sent.refused("run icu.toml --with south", "nothing of south is here", by="lab")
    shutil.copy("late", "inbox")
    again = (" left out (cobasis run --with south) ", "Send icu.news to everybody.")
    sent.said("receive icu.toml inbox", *again, by="lab")
    new = ("takes in who came since", "nobody is here to be asked")
    sent.refused("run icu.toml --with south", *new, by="lab")
    added = sent.json("run icu.toml --with south --yes", by="lab")
    assert (added["trained_on"], set(added["written"])) == (list(NAMES), set(NAMES))


def test_remove_certifies_and_says_what_is_left_to_do_and_what_is_kept_of_a_run_stays(ran):
    kept = Path("icu.round/findings.json")
    before = kept.read_bytes()
    assert list(json.loads(before)["scores"]) == ["ridge", "logistic"]
    Path("outbox/icu.north.1-return").unlink()
    ran("run icu.toml", by="lab")
    assert kept.read_bytes() == before
    narrow(ran("remove icu.toml south", by="lab"))
    removed = ran.json("remove south --realign", by="lab")
    names = [Path(path).name for path in removed["certificates"]]
    assert names == ["icu.removal-south.json", "icu.removal-south.txt"]
    assert removed["trained_on"] == ["east", "north"]
    ran.refused("remove icu.toml", "wants the name of a party", by="lab")


def test_forget_refuses_before_it_asks_and_only_the_rounds_name_destroys(ran, terminal):
    name = ran.json("status icu.toml")["round"]
    ran.refused("forget icu.toml", "agreed to be kept", by="lab")
    line = "forget icu.toml --early"
    ran.said(line, "Type the round's name", by="lab", code=2, typed="icu-2025\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cobasis.cli.options.on_terminal", lambda: False)
        ran.refused(line, "nobody is here to be asked about all that parties sent", by="lab")
    assert ran.json("verify", by="nobody")["holds"]
    done = f"What parties sent in round '{name}' was destroyed on"
    ran.said(line, done, by="lab", typed=f"{name}\n")
    terminal.undo()
    ran.said("forget icu.toml --yes", "was destroyed on", by="lab")
    ran.said("status icu.toml", " forgotten ", "was kept here was destroyed", by="lab")


def test_verify_needs_no_key_and_exits_with_3_when_something_does_not_hold(ran):
    Path("icu.news").write_bytes(b"{}\n")
    found = ran.json("verify icu.toml", by="nobody", code=3)["findings"]
    assert [each["name"] for each in found if not each["holds"]] == ["icu.news"]
    ran.said("verify icu.toml", "FAILS news icu.news", by="nobody", code=3)


def test_inspect_says_with_a_key_what_it_does_not_say_without(sent):
    file = "inbox/icu.north.1-upload"
    outside = sent.json(f"inspect {file}", by="nobody")
    assert (outside["n_recipients"], outside["manifest"], outside["round"]) == (1, None, None)
    for more, signature in (("", "not checked"), ("--agreement icu.toml", "good")):
        inside = sent.json(f"inspect {file} --as lab {more}", by="lab")
        assert (inside["signature"], inside["manifest"]["sender"]) == (signature, "north")
    assert "[CB801]" in sent(f"inspect {file} --as north", code=3).stderr
    for name, kind in (("icu.toml", "an agreement"), ("icu.news", "the analyst's news")):
        sent.said(f"inspect {name}", f"not sealed: {kind}", by="nobody")
    lab = SimpleNamespace(public=sent.public("lab"))
    write(Path("told"), recipients=[lab], audit={"clears\x1b[2J": {"turns\x1b[7m": "back\x1b[0m"}})
    assert "clears\\u001b[2J" in (told := sent("inspect told --as lab", by="lab").stdout)
    assert "\x1b" not in told
