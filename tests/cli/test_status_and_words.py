"""What `status` says to each role at each step of a round in one folder, and of words that fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.round_by_commands import NAMES, commands
from cobasis.cli import words as words_of
from cobasis.cli.options import on_terminal

HEAVY = {  # pydantic is not among them: typer takes it for an option's default
    *("numpy", "scipy", "polars", "narwhals", "sklearn", "matplotlib", "jinja2"),
    *("cryptography", "safetensors", "cobasis.protocol.agreement"),
}


def told(typed, by="north"):
    """The next command, whether to type it now, and who is waited for; two lines fit 80 columns."""
    found = typed.json("status icu.toml", by=by)
    lines = typed("status icu.toml", by=by).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(found["next"] in line for line in lines)
    assert any("nothing to do now" in line for line in lines) == (not found["now"])
    return found["next"].removeprefix("cobasis ").split()[0], found["now"], found["waits_for"]


def look_on_until_the_first_run(cobasis):
    cobasis.draft(more="--basis consensus")
    cobasis.refused("status icu.toml", "still a draft: parties, commitment, enrolled, analyst must")
    Path("icu.toml").unlink()

    cobasis.agreed(more="--basis consensus --deadline 2099-12-31")
    screen = ("No news from lab are here", "not known east, north, south, lab")
    cobasis.said("status icu.toml", *screen, by="east")
    who = ("you: neither party nor", "home-stranger' takes part in round", "(enrolled: east,")
    cobasis.said("status icu.toml", *who, by="stranger")
    assert told(cobasis) == ("sign", True, [*NAMES, "lab"])
    cobasis("sign icu.toml --yes")
    assert told(cobasis) == ("status", False, ["east", "south", "lab"])
    cobasis.said("status", "but to send north.sig to 'lab', if you have not; when lab")
    for name in ("east", "south", "lab"):
        cobasis("sign icu.toml --yes", by=name)
    cobasis("receive icu.toml", by="lab")
    assert told(cobasis, by="lab") == ("receive", False, [*NAMES, "lab"])

    cobasis.tables()
    assert told(cobasis) == ("send", True, [*NAMES, "lab"])
    cobasis.said("status", "deadline 31 Dec 2099 23:59 UTC; 3 needed")
    cobasis.send("east", "north")
    cobasis.said("status", "but to send icu.north.1-proposal to 'lab', if you have not; when lab's")
    assert "waits for the proposal of south" in cobasis.run(code=4).stderr
    assert told(cobasis) == ("accept", False, ["south", "lab"])
    assert "if you have not" not in cobasis.said("status")  # lab has received it
    cobasis.send("south")
    cobasis("receive icu.toml inbox", by="lab")
    assert told(cobasis, by="lab") == ("run", True, ["lab"])


def test_it_names_the_next_command_and_who_waits_for_whom_from_draft_to_model(cobasis):
    look_on_until_the_first_run(cobasis)
    cobasis.said("run icu.toml", "Ends exchange 1 of 2: proposal -> span", by="lab")
    # receipts tell who is in it; parties of a version that does not know the field read such news
    assert "spanned" not in Path("icu.news").read_text(encoding="utf-8")
    shutil.copy("outbox/icu.north.1-span", ".")
    assert told(cobasis)[:2] == ("accept", True)
    said = cobasis("accept icu.toml icu.north.1-span").stdout
    assert said.endswith("Next:\n  cobasis send icu.toml data.csv\n")
    cobasis.accept()

    cobasis.send()
    assert cobasis.run().stdout.splitlines()[0] == "Ends exchange 2 of 2: upload -> return"
    cobasis.accept()
    assert told(cobasis) == ("predict", True, [])
    assert told(cobasis, by="lab") == ("receive", False, [])
    ended = ("All exchanges have ended", "UTC, signed by lab")
    assert cobasis.said("status icu.toml", *ended).count(", receipt is here") == 2

    cobasis("remove icu.toml south --realign", by="lab")
    assert cobasis.json("status", by="south")["next"] == "cobasis forget icu.toml"
    due = "the model here holds rows of south, removed since; a newer return is due from lab"
    cobasis.said("status", due)
    assert told(cobasis) == ("accept", False, ["lab"])
    assert "Next:" not in cobasis.said("accept icu.toml icu.news", f"Note: {due}.")
    predicted = cobasis("predict icu.toml north.csv -o out.csv")
    assert " ".join(predicted.stderr.split()) == f"Note: {due}."
    shutil.copy("outbox/icu.north.2-return", ".")
    assert told(cobasis) == ("accept", True, [])
    cobasis.accept("north")
    assert cobasis("predict icu.toml north.csv -o out.csv").stderr == ""
    Path("passphrase").write_text("forgotten\n")  # nobody is asked for one
    Path("icu.news").write_text("{}\n")
    assert "[CB803]" in cobasis("status icu.toml", by="east", code=3).output


def test_words_that_no_command_takes_have_a_code_and_break_between_words(cobasis, monkeypatch):
    for words in ("keyy", "key neww", "send --dry-runn", "status a b", "predict x.csv", "go --as"):
        done = cobasis(words, code=2)
        assert done.stdout == ""
        assert done.stderr.endswith("--help'. [CB107]\n")
    assert "[CB" not in cobasis("key", code=2).output
    [line] = cobasis("status", code=2).stderr.splitlines()  # no agreement lies here
    assert "cobasis agreement new icu.toml" in line
    cobasis.draft()
    cobasis.draft("b.toml")
    monkeypatch.setattr(words_of, "on_screen", lambda: True)
    lines = cobasis("status", code=2).stderr.splitlines()
    assert max(map(len, lines)) < 80
    assert "b.toml, icu.toml. Name its file" in " ".join(lines)
    assert "cobasis agreement new" not in " ".join(lines)


def test_every_help_ends_with_an_example_of_the_command():
    for words, command in commands():
        last = command.help.strip().splitlines()[-1]
        assert last.startswith(f"Example: cobasis {words}")


@pytest.mark.parametrize(("word", "says"), [("--version", "0.1.0"), ("--help", "Usage: ")])
def test_help_loads_nothing_that_computes(word, says):
    script = (
        "import atexit, sys\natexit.register(lambda: print(*sys.modules))\n"
        f"sys.argv[1:] = [{word!r}]\nfrom cobasis.cli.main import run\nrun()"
    )
    told = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert says in told
    assert HEAVY & set(told.splitlines()[-1].split()) == set()


def test_a_name_that_a_terminal_would_obey_is_shown_and_not_obeyed(sent):
    name = Path("inbox", "a\nFAKE accepted\a\x85.1-upload")
    Path("inbox", "icu.north.1-upload").rename(name)
    for words, by in (
        ("receive icu.toml inbox", "lab"),
        (f"inspect '{name}'", "lab"),
        (f"accept icu.toml '{name}' east.pub", "north"),
    ):
        lines = sent(words, by=by, code=None).output.split("\n")
        assert any("a?FAKE accepted??.1-upload" in line for line in lines)
        assert all(line.isprintable() and not line.startswith("FAKE") for line in lines)


@pytest.mark.parametrize("asked", [["--version"], ["send", "--help"]])
def test_output_that_cannot_be_written_is_no_traceback(asked):
    with Path("/dev/full").open("w") as full:
        line = [sys.executable, "-m", "cobasis", *asked]
        told = {name: each for name, each in os.environ.items() if name != "PYTHONUNBUFFERED"}
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, env=told, check=False)
    assert (done.returncode, done.stderr[:10]) == (2, b"DiskError:")
    assert b"ignored" not in done.stderr


def test_where_input_and_errors_are_closed_nobody_is_asked(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert not on_terminal()
    assert not words_of.on_screen()
