"""``cobasis agreement`` and ``cobasis secret`` as people type them."""

import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from cli.round_by_commands import NAMES, Typed, write_table
from cobasis.bundle.agreement_file import read_agreement
from cobasis.bundle.envelope import look
from cobasis.cli import agreement_new
from cobasis.cli.main import app


@pytest.fixture
def cobasis(tmp_path, monkeypatch):
    return Typed(tmp_path, monkeypatch)


def test_a_draft_describes_the_columns_of_a_public_example(cobasis):
    cobasis.draft(more="--holdout 0.2 --deadline 2030-01-01T00:00:00Z --missing fill")
    document = tomllib.loads((cobasis.folder / "icu.toml").read_text())
    names = [each["name"] for each in document["features"]]
    assert names == ["a", "b", "c", "d", "sex"]
    assert document["features"][-1]["values"] == ["f", "m"]
    assert document["features"][-1]["missing"] == "level"
    assert document["features"][0]["missing"] == "fill"
    assert document["features"][0]["scale"] > 1
    assert document["classes"] == ["no", "yes"]
    assert document["n_anchor_rows"] == 4 + 4  # four numbers; f, m, any other, empty
    assert (document["holdout"], document["id"]) == (0.2, "patient")
    assert document["round_id"].startswith("icu-")


def test_two_drafts_never_name_one_round(cobasis):
    cobasis.draft("icu.toml")
    cobasis.draft("icu2.toml")
    rounds = {read["round_id"] for read in map(loaded, ("icu.toml", "icu2.toml"))}
    assert len(rounds) == 2


def loaded(name):
    return tomllib.loads(Path(name).read_text())


def test_columns_can_be_typed_and_what_is_not_said_stays_open(cobasis):
    found = cobasis.json("agreement new icu.toml --numbers age,pulse --category sex=f,m")
    assert found["state"] == "draft"
    assert {"purpose", "retention_days", "task", "n_components"} <= set(found["missing"])
    document = loaded("icu.toml")
    assert [each["name"] for each in document["features"]] == ["age", "pulse", "sex"]
    assert document["n_anchor_rows"] == 4


def test_constants_of_columns_can_be_typed(cobasis):
    cobasis(
        "agreement new icu.toml --missing fill --numbers 'age:centre=60,scale=20,unit=years' "
        "--numbers a,b:low=0,high=2.5,fill=1 --category sex=f,m"
    )
    age, a, b, sex = loaded("icu.toml")["features"]
    assert (age["centre"], age["scale"], age["unit"], age["fill"]) == (60, 20, "years", 60)
    assert [(each["low"], each["high"], each["fill"]) for each in (a, b)] == [(0, 2.5, 1)] * 2
    assert sex["missing"] == "level"


@pytest.mark.parametrize(
    "words",
    ["age:centre=high", "age:centr=1", "age:scale=0", "age:low=1,high=0", "age:unit", ":centre=1"],
)
def test_a_constant_that_is_none_is_refused(cobasis, words):
    told = cobasis(f"agreement new icu.toml --numbers {words}", code=2).stderr
    assert "age:centre=60,scale=20,unit=years" in told
    assert not (cobasis.folder / "icu.toml").exists()


def test_on_a_terminal_what_is_missing_is_asked(cobasis, monkeypatch):
    monkeypatch.setattr(agreement_new, "on_terminal", lambda: True)
    line = "agreement new icu.toml --numbers age,pulse"
    assert "[CB107]" in cobasis(line, typed="study\nsoon\n", code=2).stderr
    cobasis(line, typed="study\n30\nregression\nlactate\n2\n")
    read = loaded("icu.toml")
    assert (read["purpose"], read["retention_days"], read["task"]) == ("study", 30, "regression")
    assert (read["label"], read["n_components"], read["model"]) == ("lactate", 2, "ridge")


def test_an_agreement_that_stands_there_is_not_written_over(cobasis):
    cobasis.draft()
    text = (cobasis.folder / "icu.toml").read_text()
    done = cobasis("agreement new icu.toml", code=2)
    assert "[CB601]" in done.stderr
    assert (cobasis.folder / "icu.toml").read_text() == text


def test_the_walk_to_a_sealed_agreement(cobasis):
    done = cobasis.sealed()
    assert "sealed" in done.stdout
    found = cobasis.json("agreement show icu.toml")
    assert (found["state"], found["missing"], found["unsigned"]) == ("sealed", [], "")
    assert [(each["name"], each["role"], each["signed"]) for each in found["people"]] == [
        *((name, "party", True) for name in NAMES),
        ("lab", "analyst", True),
    ]
    agreement = read_agreement(cobasis.folder / "icu.toml").agreement
    assert found["digest"] == agreement.digest().hex()


def test_too_few_signatures_name_who_is_missing_and_nothing_is_written(cobasis):
    cobasis.keys()
    cobasis.draft()
    cobasis.enrol()
    cobasis(f"secret new icu.toml --for {','.join(NAMES)}")
    for name in ("north", "lab"):
        cobasis(f"agreement sign icu.toml -o {name}.sig", by=name)
    before = (cobasis.folder / "icu.toml").read_bytes()
    done = cobasis("agreement seal icu.toml north.sig lab.sig", code=2)
    assert "missing: east, south" in done.stderr
    assert "[CB311]" in done.stderr
    assert (cobasis.folder / "icu.toml").read_bytes() == before
    found = cobasis.json("agreement show icu.toml")
    assert found["state"] == "complete"
    assert not any(each["signed"] for each in found["people"])


def test_nobody_signs_a_draft_or_with_another_key(cobasis):
    cobasis.keys()
    cobasis.draft()
    assert "[CB303]" in cobasis("agreement sign icu.toml --as north -o n.sig", code=2).stderr
    cobasis.enrol()
    cobasis(f"secret new icu.toml --for {','.join(NAMES)}")
    cobasis("key new east", by="thief")
    done = cobasis("agreement sign icu.toml --as east -o east.sig", by="thief", code=2)
    assert "not the one that is enrolled" in done.stderr
    assert not (cobasis.folder / "east.sig").exists()


def test_the_secret_is_one_file_per_party_that_the_analyst_cannot_open(cobasis):
    cobasis.keys()
    cobasis.draft()
    cobasis.enrol()
    found = cobasis.json(f"secret new icu.toml --for {','.join(NAMES)}")
    assert found["made_by"] == "north"
    assert sorted(found["files"]) == sorted(NAMES)
    for name in NAMES:
        path = cobasis.folder / f"{name}.secret"
        assert look(path).n_recipients == 1
        assert path.stat().st_mode & 0o077 == 0
        cobasis(f"inspect {path} --as {name}", by=name)
        assert "[CB801]" in cobasis(f"inspect {path} --as lab", by="lab", code=3).stderr
    agreement = read_agreement(cobasis.folder / "icu.toml").agreement
    assert agreement.commitment == found["commitment"]


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        ("--for north,south", "left out: east", "CB304"),
        ("--for north,south,east,nobody", "not enrolled: nobody", "CB304"),
    ],
)
def test_a_secret_is_for_exactly_the_enrolled(cobasis, words, said, code):
    cobasis.keys()
    cobasis.draft()
    cobasis.enrol()
    done = cobasis(f"secret new icu.toml {words}", code=2)
    assert said in done.stderr
    assert f"[{code}]" in done.stderr
    assert not list(cobasis.folder.glob("*.secret"))
    assert loaded("icu.toml")["commitment"] == ""


def test_a_second_secret_and_one_of_the_analyst_are_refused(cobasis):
    cobasis.keys()
    cobasis.draft()
    cobasis.enrol()
    line = f"secret new icu.toml --for {','.join(NAMES)}"
    assert "the analyst makes none" in cobasis(line, by="lab", code=2).stderr
    cobasis(line)
    done = cobasis(line, by="south", code=2)
    assert "committed to a secret already" in done.stderr


def test_enrolling_after_signing_is_refused(cobasis):
    cobasis.sealed()
    done = cobasis("agreement enrol icu.toml --party north.pub", code=2)
    assert "was signed" in done.stderr


def test_an_example_without_the_label_is_refused(cobasis):
    write_table(cobasis.folder / "public.csv", seed=0)
    done = cobasis(
        "agreement new icu.toml --columns public.csv --label ill --task classification", code=2
    )
    assert "no column 'ill'" in done.stderr
    assert not (cobasis.folder / "icu.toml").exists()


def commands(group, before=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), command


ALL = dict(commands(get_command(app)))


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_help_ends_with_an_example_of_the_command(words):
    last = ALL[words].help.strip().splitlines()[-1]
    assert last.startswith(f"Example: cobasis {' '.join(words)}")
