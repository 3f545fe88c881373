"""What `status` says to each role at each step of a round with two exchanges, all in one folder."""

import shutil

import pytest

from cli.round_by_commands import NAMES, Typed, write_table
from cobasis.cli import options


@pytest.fixture
def typed(tmp_path, monkeypatch):
    return Typed(tmp_path, monkeypatch)


def told(typed, by="north"):
    """The next command, whether to type it now, and who is waited for; two lines fit 80 columns."""
    found = typed.json("status icu.toml", by=by)
    lines = typed("status icu.toml", by=by).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(found["next"] in line for line in lines)
    assert any("nothing to do now" in line for line in lines) == (not found["now"])
    return found["next"].removeprefix("cobasis ").split()[0], found["now"], found["waits_for"]


def send_all(typed, names=NAMES):
    inbox = typed.folder / "inbox"
    inbox.mkdir(exist_ok=True)
    for seed, name in enumerate(names, start=1):
        table = write_table(typed.folder / f"{name}.csv", seed=seed)
        words = f"send icu.toml {table.name} --yes --signed-by officer -o inbox/{name}-{seed}"
        typed(words + f"{len(list(inbox.iterdir()))}", by=name)


def accept_all(typed, word):
    for name in NAMES:
        shutil.copy(typed.folder / "outbox" / f"icu.{name}.{word}", typed.folder)
        assert told(typed, by=name)[:2] == ("accept", True)
        typed(f"accept icu.toml icu.news icu.{name}.{word}", by=name)


def test_it_names_the_next_command_and_who_waits_for_whom_from_draft_to_model(typed):
    typed.draft(more="--basis consensus")
    found = typed.json("status icu.toml")
    assert (found["state"], found["now"]) == ("draft", True)
    assert found["next"].startswith("cobasis agreement new icu.toml")
    (typed.folder / "icu.toml").unlink()

    typed.agreed(more="--basis consensus")
    assert told(typed) == ("sign", True, [*NAMES, "lab"])
    typed("sign icu.toml --yes")
    assert told(typed) == ("status", False, ["east", "south", "lab"])
    for name in ("east", "south", "lab"):
        typed("sign icu.toml --yes", by=name)
    typed("receive icu.toml east.sig north.sig south.sig lab.sig", by="lab")
    assert told(typed, by="lab") == ("receive", False, [*NAMES, "lab"])

    assert told(typed) == ("send", True, [*NAMES, "lab"])
    send_all(typed, names=("east", "north"))
    typed("receive icu.toml inbox", by="lab")
    assert told(typed) == ("accept", False, ["south", "lab"])
    send_all(typed, names=("south",))
    typed("receive icu.toml inbox", by="lab")
    assert told(typed, by="lab") == ("run", True, ["lab"])
    typed("run icu.toml", by="lab")
    accept_all(typed, "1-span")

    send_all(typed)
    typed("receive icu.toml inbox", by="lab")
    typed("run icu.toml", by="lab")
    accept_all(typed, "2-return")
    assert told(typed) == ("predict", True, [])
    assert told(typed, by="lab") == ("receive", False, [])
    screen = typed("status icu.toml").stdout
    assert "All exchanges have ended" in screen
    assert screen.count(", receipt is here") == 2

    typed("remove icu.toml south --realign", by="lab")
    assert typed.json("status", by="south")["next"] == ""
    shutil.copy(typed.folder / "outbox" / "icu.north.2-return", typed.folder)
    assert told(typed)[:2] == ("accept", True)


def test_it_asks_no_passphrase_and_says_of_whom_nothing_is_known(typed):
    typed.agreed()
    (typed.folder / "passphrase").write_text("forgotten\n")
    screen = typed("status icu.toml", by="east").stdout
    assert "No news from lab are here" in screen
    assert "not known east, north, south and lab" in screen
    assert "you: no key of this round" in typed("status icu.toml", by="stranger").stdout
    (typed.folder / "icu.news").write_text("{}\n")
    assert "[CB803]" in typed("status icu.toml", by="east", code=3).output


def test_on_a_screen_an_error_breaks_between_words(typed, monkeypatch):
    whole = typed("status", code=2).stderr
    assert len(whole.splitlines()) == 1
    monkeypatch.setattr(options, "on_screen", lambda: True)
    lines = typed("status", code=2).stderr.splitlines()
    assert max(map(len, lines)) < 80
    assert " ".join(lines) == whole.strip()


def test_words_that_no_command_takes_have_a_code_too(typed):
    for words in ("keyy", "key neww", "send --dry-runn", "status a b", "predict x.csv"):
        done = typed(words, code=2)
        assert done.stdout == ""
        assert done.stderr.endswith("--help'. [CB107]\n")
    assert "[CB" not in typed("key", code=2).output


def test_in_a_folder_of_none_or_several_agreements_it_says_so(typed):
    assert "[CB107]" in typed("status", code=2).output
    typed.draft()
    typed.draft("b.toml")
    assert "b.toml, icu.toml" in " ".join(typed("status", code=2).output.split())
