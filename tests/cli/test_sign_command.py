"""``cobasis sign``: the terms on one screen, the secret before the signature, and one signature."""

import os
import pty
import select
import signal
import sys
from pathlib import Path

import pytest

from cli.round_by_commands import NAMES, Typed
from cobasis.bundle.agreement_file import read_agreement, sealed_agreement
from cobasis.bundle.transcript import verify_transcript
from cobasis.cli import options


@pytest.fixture
def cobasis(tmp_path, monkeypatch):
    typed = Typed(tmp_path, monkeypatch)
    typed.agreed(more="--basis consensus --holdout 0.25 --deadline 2030-01-31")
    return typed


def events(cobasis, name):
    home = cobasis.folder / f"home-{name}"
    return [
        each.event
        for path in home.glob(f"transcripts/{name}/*/transcript.jsonl")
        for each in verify_transcript(path).entries
    ]


def test_the_terms_are_one_screen_of_eighty_columns(cobasis):
    screen = cobasis("sign icu.toml --yes").stdout
    assert max(map(len, screen.splitlines())) < 80
    assert len(screen.splitlines()) <= 30
    agreement = read_agreement("icu.toml").agreement
    people = [*agreement.enrolled, agreement.analyst]
    for each in (
        *("study", "5: a, b, c, d, sex", "'sick', one of no, yes; it leaves as it is"),
        *("1. proposal: up to 3 directions", "2. upload: each row as 3 numbers"),
        *(
            "pseudonymised personal data",
            "lab, the analyst, alone",
            "ridge (or logistic)",
            "consensus basis",
        ),
        *("column 'patient'", "25% of your rows", "no formal guarantee", "30 days"),
        *("31 Jan 2030 23:59 UTC; without 2 of the 3", agreement.digest().hex()),
        *("made by north", "north  (you)", *(who.fingerprint for who in people)),
    ):
        assert each in screen, each


def test_words_of_others_cannot_steer_the_terminal(cobasis):
    text = Path("icu.toml").read_text()
    hostile = 'purpose = "study\\u001b[2J\\u202e of rows\\nNoise     epsilon 0"'
    Path("icu.toml").write_text(text.replace('purpose = "study"', hostile))
    cobasis("agreement new icu.toml --yes")
    screen = cobasis("sign icu.toml --yes").stdout
    assert "Purpose   study?[2J? of rows Noise     epsilon 0\n" in screen


def test_a_round_with_noise_and_one_exchange_says_so(cobasis, monkeypatch):
    folder = cobasis.folder / "private"
    folder.mkdir()
    monkeypatch.chdir(folder)
    pubs = " ".join(f"../{name}.pub" for name in (*NAMES, "lab"))
    terms = "epsilon=8,radius=3,most_rows=100,labels=randomised_response,label_epsilon=4"
    cobasis(
        f"agreement new icu.toml {pubs} --numbers a,b --task classification --label y --yes "
        "--classes 0,1 --purpose study --n-components 1 --retention-days 9 --basis haar "
        f"--dp {terms}"
    )
    screen = cobasis("sign --yes").stdout
    assert "upload: each row as 1 numbers, with noise" in screen
    assert "it leaves changed at random" in screen
    assert "epsilon" in screen
    assert "pseudonymised" not in screen


def test_everybody_signs_and_then_it_is_sealed(cobasis):
    for name in (*NAMES, "lab"):
        found = cobasis.json("sign --yes", by=name)
        assert (found["name"], found["path"], found["again"]) == (name, f"{name}.sig", False)
        assert found["secret_from"] == ("" if name == "lab" else "north")
    cobasis("receive icu.toml east.sig north.sig south.sig lab.sig")
    sealed_agreement(Path("icu.sealed.toml"))
    assert cobasis.json("sign", by="east")["again"]


def test_the_secret_is_kept_and_the_transcript_says_so_once(cobasis):
    before = cobasis("sign icu.toml --yes", by="east")
    signature = Path("east.sig").read_bytes()
    Path("east.secret").unlink()
    Path("east.sig").unlink()
    cobasis("sign icu.toml --yes", by="east")  # the vault has it now
    assert Path("east.sig").read_bytes() == signature
    assert "signed this before" in cobasis("sign icu.toml", by="east").stdout
    assert events(cobasis, "east") == ["joined", "signed"]
    assert "signed this before" not in before.stdout


@pytest.mark.parametrize("words", ["", "--secret none.secret"])
def test_without_the_secret_nothing_is_signed(cobasis, words):
    Path("east.secret").unlink()
    told = cobasis(f"sign icu.toml --yes {words}", by="east", code=2).stderr
    assert "[CB601]" in told if words else "[CB305]" in told
    assert not Path("east.sig").exists()
    assert events(cobasis, "east") == []


def test_a_secret_may_come_later_and_the_screen_says_that_it_was_not_checked(cobasis):
    Path("east.secret").rename("kept")
    assert "not here, and not checked" in cobasis("sign --yes --secret-later", by="east").stdout
    assert events(cobasis, "east") == ["signed"]
    Path("kept").rename("east.secret")
    found = cobasis.json("sign", by="east")
    assert (found["again"], found["secret_from"]) == (True, "north")
    assert events(cobasis, "east") == ["signed", "joined"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda: Path("east.secret").write_bytes(Path("south.secret").read_bytes()), "CB801"),
        (lambda: Path("east.secret").write_bytes(b"junk"), "CB801"),
        (lambda: Path("east.secret").write_bytes(Path("old").read_bytes()), "CB804"),
    ],
    ids=["of south", "of nobody", "of an earlier text"],
)
def test_a_secret_that_is_not_the_agreements_is_refused_before_anything_is_signed(
    cobasis, change, code
):
    Path("old").write_bytes(Path("east.secret").read_bytes())
    text = Path("icu.toml").read_text()
    Path("icu.toml").write_text(text.replace("retention_days = 30", "retention_days = 31"))
    cobasis("agreement new icu.toml --yes")
    change()
    told = cobasis("sign icu.toml --yes", by="east", code=3).stderr
    assert f"[{code}]" in told
    assert not Path("east.sig").exists()
    assert events(cobasis, "east") == []


def test_the_analyst_signs_without_opening_a_secret(cobasis):
    Path("lab.secret").write_bytes(b"somebody sent this by mistake")
    screen = cobasis("sign --yes", by="lab").stdout
    assert "you must not" in screen
    assert "lab  (you)" in screen
    for words in ("--secret lab.secret", "--secret-later"):
        assert "[CB107]" in cobasis(f"sign --yes {words}", by="lab", code=2).stderr


def test_who_signs_follows_from_the_key(cobasis):
    assert "[CB304]" in cobasis("sign --yes", by="stranger", code=2).stderr
    assert "[CB304]" in cobasis("sign --yes --as west", code=2).stderr
    pub = Path("east.pub").read_bytes()
    Path("east.pub").unlink()
    cobasis("key new east")  # another key of that name, in north's home
    Path("east.pub").write_bytes(pub)
    assert "--as east" in cobasis("sign --yes", code=2).stderr
    assert "[CB702]" in cobasis("sign --yes --as east", code=2).stderr
    assert not Path("east.sig").exists()
    cobasis("sign --yes --as north")


def test_a_draft_and_a_file_in_the_way_are_refused(cobasis):
    cobasis("agreement new draft.toml --numbers a,b")
    assert "[CB303]" in cobasis("sign draft.toml", code=2).stderr
    assert "[CB107]" in cobasis("sign", code=2).stderr  # two agreements lie here
    assert "[CB107]" in cobasis("sign north.pub", code=2).stderr
    Path("north.sig").write_text("mine\n")
    assert "[CB601]" in cobasis("sign icu.toml --yes", code=2).stderr
    assert Path("north.sig").read_text() == "mine\n"


def test_nobody_signs_unasked_and_a_no_leaves_nothing(cobasis, monkeypatch):
    assert "[CB107]" in cobasis("sign icu.toml", code=2).stderr
    monkeypatch.setattr(options, "on_terminal", lambda: True)
    cobasis("sign icu.toml", typed="n\n", code=2)
    assert not Path("north.sig").exists()
    assert events(cobasis, "north") == []
    cobasis("sign icu.toml", typed="y\n")
    assert Path("north.sig").exists()


def test_ctrl_c_at_a_prompt_ends_the_command(cobasis, monkeypatch):
    """On a real terminal, since the prompt's library turns the interrupt into another error."""
    monkeypatch.setenv("COBASIS_HOME", str(cobasis.folder / "home-fresh"))
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover -- the child
        os.execv(sys.executable, [sys.executable, "-m", "cobasis", "key", "new", "west"])  # noqa: S606
    said = b""
    while b"Passphrase" not in said:
        assert select.select([terminal], [], [], 60)[0], said
        said += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGINT
    assert not Path("west.pub").exists()
