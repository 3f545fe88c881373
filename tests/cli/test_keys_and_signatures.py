"""``cobasis key new`` and ``sign``: who somebody is, the terms on one screen, one signature."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.round_by_commands import NAMES
from cobasis.bundle.agreement_file import read_agreement, sealed_agreement
from cobasis.cli.main import app
from cobasis.protocol.enrolment import words_of


@pytest.fixture
def agreed(cobasis):
    cobasis.agreed(more="--basis consensus --holdout 0.25 --deadline 2030-01-31")
    return cobasis


def test_a_passphrase_file_that_others_can_read_or_change_is_refused_as_ssh_does(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("COBASIS_PASSPHRASE_FILE", raising=False)
    secret, line = tmp_path / "passphrase", ["key", "new", "north", "--home", str(tmp_path)]
    assert "[CB701]" in CliRunner().invoke(app, line).stderr  # no terminal to ask on
    secret.write_text("correct horse battery staple\n", encoding="utf-8")
    for mode in (0o640, 0o604, 0o620):
        secret.chmod(mode)
        done = CliRunner().invoke(app, [*line, "--passphrase-file", str(secret)])
        assert done.exit_code == 2
        assert f"has mode {mode:04o}" in done.stderr
        assert "correct horse" not in done.output
    assert not (tmp_path / "keys" / "north.key").exists()


def test_a_key_has_one_role_and_no_file_of_another_is_written_over(cobasis):
    made = cobasis("key new north").stdout
    public = cobasis.public("north")
    assert (public.role, public.fingerprint in made) == ("party", True)
    key = Path("home-north/keys/north.key").read_bytes()
    cobasis.refused("key new north --analyst", "its role is party, not analyst", "[CB702]")
    Path("west.pub").write_text("another's\n")
    Path("north.pub").write_text("another's\n")
    for name in ("west", "north"):
        cobasis.refused(f"key new {name}", "[CB601]")
        assert Path(f"{name}.pub").read_text() == "another's\n"
    assert not Path("home-north/keys/west.key").exists()
    Path("north.pub").unlink()
    assert "was there" in cobasis("key new north").stdout
    assert cobasis.public("north") == public
    assert Path("home-north/keys/north.key").read_bytes() == key


def test_the_terms_are_one_screen_of_eighty_columns_which_others_words_cannot_steer(agreed):
    hostile = 'purpose = "study\\u001b[2J\\u202e of rows\\nNoise     epsilon 0"'
    agreed.edit('purpose = "study"', hostile)
    agreed("agreement new icu.toml --yes")
    screen = agreed("sign icu.toml --yes").stdout
    assert max(map(len, screen.splitlines())) < 80
    assert len(screen.splitlines()) <= 30
    agreement = read_agreement(Path("icu.toml")).agreement
    others = [each for each in (*agreement.enrolled, agreement.analyst) if each.name != "north"]
    screen = " ".join(screen.split())
    for each in (
        *("Sign for north?", agreement.round_id, words_of(agreement.digest())),
        "Purpose study?[2J? of rows Noise epsilon 0",
        *("4 of numbers, 1 of words: a, b, c, d, sex; label 'sick' (no, yes)", "'patient' never"),
        "LEAVES 1. proposal: up to 3 directions",
        "as 3 numbers each, and their column 'sick' IN THE",
        *("lab sees who resembles whom", "IF A PARTY HELPS LAB", "the model, ridge (or logistic)"),
        *("25 % of rows held back", "no formal guarantee", "Basis in law not", "made by north"),
        *("until 31 Jan 2030 23:59 UTC; 3 of 3 parties", "no officer's key is agreed on"),
        *(f"{who.name} {who.fingerprint}" for who in others if who.name != "lab"),
        agreement.analyst.fingerprint,
    ):
        assert each in screen, each
    whole = agreed("inspect icu.toml").stdout
    assert whole.partition("\n")[2] == Path("icu.toml").read_text()


def test_a_round_with_noise_and_one_exchange_says_so(cobasis):
    terms = "epsilon=8,radius=3,most_rows=100,labels=randomised_response,label_epsilon=4"
    cobasis.agreed(more=f"--basis haar --dp {terms}")
    terms = read_agreement(Path("icu.toml")).agreement.dp
    assert (terms.epsilon, terms.lifetime_epsilon) == (8.0, 12.0)
    noise = "as 3 numbers each with noise, and their column 'sick' with some labels changed"
    assert "pseudonymised" not in cobasis.said("sign --yes", noise, "epsilon")


def test_everybody_signs_once_and_then_it_is_sealed(agreed):
    for name in (*NAMES, "lab"):
        found = agreed.json("sign --yes", by=name)
        told = (name, f"{name}.sig", False, "" if name == "lab" else "north")
        assert tuple(found[x] for x in ("name", "path", "again", "secret_from")) == told
    signatures = "receive icu.toml east.sig north.sig south.sig lab.sig"
    agreed.refused(signatures, "this is the analyst's command")
    agreed(signatures, by="lab")
    sealed_agreement(Path("icu.sealed.toml"))
    signature = Path("east.sig").read_bytes()
    Path("east.secret").unlink()
    Path("east.sig").unlink()
    agreed("sign icu.toml --yes", by="east")  # the vault has it now
    assert Path("east.sig").read_bytes() == signature
    assert "signed this before" in agreed("sign icu.toml", by="east").stdout
    assert agreed.events("east") == ["joined", "signed"]


def test_nobody_signs_where_nothing_can_be_sealed_for_somebody(agreed):
    recipient = read_agreement(Path("icu.toml")).agreement.enrolled[-1].recipient
    agreed.edit(recipient, recipient[:-1] + "qp"[recipient[-1] == "q"])
    agreed.refused("sign icu.toml --yes", "nobody can seal for", "[CB702]", by="lab")
    assert not Path("lab.sig").exists()


def test_without_the_right_secret_nothing_is_signed(agreed):
    old = Path("east.secret").read_bytes()
    agreed.edit("retention_days = 30", "retention_days = 31")
    agreed("agreement new icu.toml --yes")
    right = Path("east.secret").read_bytes()
    for wrong, code in (
        (Path("south.secret").read_bytes(), "CB801"),
        (b"junk", "CB801"),
        (old, "CB804"),  # of an earlier text
    ):
        Path("east.secret").write_bytes(wrong)
        agreed.refused("sign icu.toml --yes", f"[{code}]", "'east.secret'", by="east", code=3)
    Path("east.secret").unlink()
    agreed.refused("sign icu.toml --yes", "[CB305]", by="east")
    assert (Path("east.sig").exists(), agreed.events("east")) == (False, [])
    Path("east.secret").write_bytes(right)
    agreed.said("sign icu.toml --yes", "made by north", by="east")


def test_who_signs_follows_from_the_key_and_the_analyst_opens_no_secret(agreed):
    Path("lab.secret").write_bytes(b"somebody sent this by mistake")
    agreed.said("sign --yes", "Sign for lab?", by="lab")
    pub = Path("east.pub").read_bytes()
    Path("east.pub").unlink()
    agreed("key new east")  # another key of that name, in north's home
    Path("east.pub").write_bytes(pub)
    agreed.refused("sign --yes", "Say who you are: --as east or --as north")
    agreed.refused("sign --yes --as east", "[CB702]")
    assert not Path("east.sig").exists()
    agreed("sign --yes --as north")


def test_nobody_signs_unasked_and_drafts_and_files_in_the_way_are_refused(agreed, terminal):
    agreed.said("sign icu.toml", "typed is not the round's name, icu-", typed="y\n", code=2)
    assert (Path("north.sig").exists(), agreed.events("north")) == (False, [])
    agreed("sign icu.toml", typed=f"{read_agreement(Path('icu.toml')).agreement.round_id}\n")
    assert Path("north.sig").exists()
    terminal.undo()
    agreed.refused("sign icu.toml", "[CB107]", by="south")
    Path("south.sig").write_text("mine\n")
    agreed.refused("sign icu.toml --yes", "of another round, give each a folder", by="south")
    assert Path("south.sig").read_text() == "mine\n"
