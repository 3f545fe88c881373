"""``cobasis agreement new`` as people type it."""

import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from cli.round_by_commands import NAMES, Typed, write_table
from cobasis.bundle.agreement_file import read_agreement
from cobasis.bundle.seal import look
from cobasis.cli import options
from cobasis.cli.main import app
from cobasis.protocol.enrolment import PublicIdentity


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


PUBS = "east.pub north.pub south.pub"
TERMS = "--purpose study --retention-days 30 --task regression --label lactate --n-components 2"


@pytest.fixture
def asked(monkeypatch):
    """Somebody sits at the terminal."""
    monkeypatch.setattr(options, "on_terminal", lambda: True)


@pytest.mark.usefixtures("asked")
def test_on_a_terminal_what_is_missing_is_asked_again_until_it_can_stand(cobasis):
    write_table(cobasis.folder / "public.csv", seed=0)
    answers = [
        *("study", "none.csv", "public.csv", "guess", "", "ill", "sick", "patient"),
        *("many", "", "0", "45", "", "someday", "2030-01-31", "0.7", ""),
    ]
    told = cobasis("agreement new icu.toml", typed="\n".join(answers) + "\n").stderr
    assert [told.count(code) for code in ("CB601", "CB105", "CB107")] == [1, 1, 5]
    read = loaded("icu.toml")
    assert (read["purpose"], read["task"], read["label"]) == ("study", "classification", "sick")
    assert (read["id"], read["classes"], read["n_components"]) == ("patient", ["no", "yes"], 4)
    assert (read["retention_days"], read["minimum_parties"], read["holdout"]) == (45, 2, 0.2)
    assert (read["model"], read["deadline"]) == ("logistic", "2030-01-31T23:59:59Z")


@pytest.mark.usefixtures("asked")
def test_nothing_is_asked_that_was_told(cobasis):
    line = f"agreement new icu.toml --numbers age,pulse {TERMS} --deadline 2030-01-31 --holdout 0"
    cobasis(f"{line} --minimum-parties 2 --id patient", typed="")
    assert loaded("icu.toml")["deadline"] == "2030-01-31T23:59:59Z"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        *((f"--holdout {said}", "CB107") for said in ("1", "-0.1", "nan", "0.6")),
        ("--label ill", "CB105"),
        ("--id person", "CB105"),
        ("--deadline 2026-13-01", "CB107"),
        ("--retention-days 0", "CB107"),
        ("--n-components 20", "CB303"),
        ("--minimum-parties 9", "CB303"),
        ("--basis public", "CB303"),
        ("--precision int8", "CB303"),
        ("--models ridge,oracle", "CB303"),
        ("--classes yes", "CB303"),
        ("--dp epsilon=8", "CB107"),
        ("--columns none.csv", "CB601"),
        ("--round ''", "CB107"),
    ],
)
def test_a_term_that_cannot_stand_is_refused_and_nothing_is_written(cobasis, words, code):
    cobasis.keys()
    write_table(cobasis.folder / "public.csv", seed=0)
    before = sorted(cobasis.folder.iterdir())
    line = f"agreement new icu.toml {PUBS} lab.pub --columns public.csv --label sick --id patient"
    terms = "--purpose p --task classification --n-components 3 --retention-days 30 --yes"
    told = cobasis(f"{line} {terms} {words}", code=2).stderr
    assert f"[{code}]" in told
    assert sorted(cobasis.folder.iterdir()) == before


def test_one_command_enrols_everybody_and_seals_a_secret_to_each_party(cobasis):
    done = cobasis.agreed()
    assert "lab.pub is the analyst's, and is set aside" in done.stdout
    found = read_agreement(cobasis.folder / "icu.toml")
    assert found.agreement.parties == NAMES
    assert found.agreement.analyst.name == "lab"
    assert found.agreement.digest().hex() in done.stdout
    assert not (cobasis.folder / "lab.secret").exists()
    for name in NAMES:
        path = cobasis.folder / f"{name}.secret"
        assert look(path).n_recipients == 1
        assert path.stat().st_mode & 0o077 == 0
        cobasis(f"inspect {path} --as {name}", by=name)
        assert "[CB801]" in cobasis(f"inspect {path} --as lab", by="lab", code=3).stderr


def test_the_analyst_is_not_the_author_and_neither_is_a_stranger(cobasis):
    cobasis.keys()
    line = f"agreement new icu.toml {PUBS} --analyst lab.pub --numbers age,pulse {TERMS} --yes"
    assert "an analyst must never have" in cobasis(line, by="lab", code=2).stderr
    assert "[CB702]" in cobasis(f"{line} --as lab", by="lab", code=2).stderr
    assert "[CB702]" in cobasis(line, by="stranger", code=2).stderr
    assert "[CB304]" in cobasis(f"{line} --as west", code=2).stderr
    pub = cobasis.folder / "east.pub"
    given = pub.read_bytes()
    pub.unlink()
    cobasis("key new east")  # a second key in one home, and not the one whose .pub was given
    pub.write_bytes(given)
    assert "keys of east, north" in cobasis(line, code=2).stderr
    assert "[CB702]" in cobasis(f"{line} --as east", code=2).stderr
    assert not (cobasis.folder / "icu.toml").exists()
    cobasis(f"{line} --as north")
    assert not list(cobasis.folder.glob("lab.secret"))


@pytest.mark.parametrize(
    ("pubs", "said"),
    [
        (f"{PUBS} junk.pub --analyst lab.pub", "'junk.pub' cannot be used"),
        (f"{PUBS} copy.pub --analyst lab.pub", "'south.pub' and 'copy.pub' are both of 'south'"),
        (f"{PUBS} --analyst west.pub", "was made for a party"),
        (f"{PUBS} lab.pub --analyst other.pub", "'lab.pub' is the key of an analyst"),
        (f"{PUBS} lab.pub other.pub", "'other.pub' is the key of an analyst"),
    ],
)
def test_a_pub_file_that_is_none_or_of_another_role_is_named(cobasis, pubs, said):
    cobasis.keys((*NAMES, "west"))
    cobasis("key new other --analyst", by="other")
    (cobasis.folder / "junk.pub").write_text("{}\n")
    copied = (cobasis.folder / "south.pub").read_text()
    (cobasis.folder / "copy.pub").write_text(copied)
    told = cobasis(f"agreement new icu.toml {pubs} --numbers a,b {TERMS} --yes", code=2).stderr
    assert said in told
    assert "[CB303]" in told
    assert not (cobasis.folder / "icu.toml").exists()


def test_every_fingerprint_but_ones_own_is_confirmed(cobasis, monkeypatch):
    cobasis.keys()
    prints = {name: fingerprint(cobasis, name) for name in ("east", "south", "lab")}
    line = f"agreement new icu.toml {PUBS} --analyst lab.pub --numbers a,b {TERMS} --id patient"
    line += " --deadline 2030-01-31 --minimum-parties 2 --holdout 0"
    told = cobasis(line, code=2).stderr
    assert all(each in told for each in prints.values())
    assert fingerprint(cobasis, "north") not in told
    given = " ".join(f"--fingerprint '{each.upper()}'" for each in list(prints.values())[:2])
    assert prints["lab"] in cobasis(f"{line} {given}", code=2).stderr
    wrong = cobasis(f"{line} --fingerprint '1234 5678 9abc def0' --yes", code=2).stderr
    assert "123456789abcdef0 is of no file" in wrong
    monkeypatch.setattr(options, "on_terminal", lambda: True)
    cobasis(f"{line} {given}", typed="n\n", code=2)
    assert not (cobasis.folder / "icu.toml").exists()
    done = cobasis(line, typed="y\ny\ny\n")
    assert [each in done.stderr for each in prints.values()] == [True] * 3


def fingerprint(cobasis, name):
    return PublicIdentity.from_text((cobasis.folder / f"{name}.pub").read_text()).fingerprint


def secrets_of(cobasis):
    return {path.name: path.read_bytes() for path in sorted(cobasis.folder.glob("*.secret"))}


def edit(cobasis, old, new):
    path = cobasis.folder / "icu.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_typed_again_on_an_edited_file_it_says_what_changed_and_draws_a_new_secret(cobasis):
    cobasis.agreed()
    before, old = secrets_of(cobasis), read_agreement("icu.toml").agreement
    assert "Nothing changed" in cobasis("agreement new icu.toml").stdout
    assert secrets_of(cobasis) == before
    edit(cobasis, "holdout = 0.0", "holdout = 0.25  # asked for by the board")
    edit(cobasis, "retention_days = 30", "retention_days = 60")
    told = cobasis("agreement new icu.toml", code=2)
    assert "retention_days: 30 -> 60" in told.stdout
    assert secrets_of(cobasis) == before
    cobasis.keys(["west"])
    found = cobasis.json("agreement new icu.toml west.pub --yes")
    assert found["changed"] == [
        "retention_days: 30 -> 60",
        "holdout: 0.0 -> 0.25",
        "enrolled: west is new",
    ]
    new = read_agreement("icu.toml").agreement
    assert (new.digest() != old.digest(), new.commitment != old.commitment) == (True, True)
    assert "# asked for by the board" in Path("icu.toml").read_text()
    assert sorted(secrets_of(cobasis)) == [f"{name}.secret" for name in (*NAMES, "west")]
    assert not set(secrets_of(cobasis).values()) & set(before.values())
    for name in (*NAMES, "west"):
        cobasis("sign icu.toml --yes", by=name)


def test_a_party_that_is_deleted_from_the_file_loses_its_secret_file_too(cobasis):
    cobasis.agreed()
    text = Path("icu.toml").read_text()
    at = text.index('[[party]]\nname = "south"')
    Path("icu.toml").write_text(text[:at] + text[text.index("[analyst]", at) :])
    found = cobasis.json("agreement new icu.toml --yes")
    assert found["changed"] == ["enrolled: south is gone"]
    assert sorted(secrets_of(cobasis)) == ["east.secret", "north.secret"]


def test_the_very_same_words_go_on_and_other_options_are_refused(cobasis):
    cobasis.agreed()
    before, text = secrets_of(cobasis), Path("icu.toml").read_bytes()
    pubs = " ".join(f"{name}.pub" for name in (*NAMES, "lab"))
    assert "Nothing changed" in cobasis.draft(pubs=pubs).stdout
    told = cobasis("agreement new icu.toml --holdout 0.1 --yes", code=2).stderr
    assert "options describe a new agreement" in told
    assert "[CB107]" in told
    assert (secrets_of(cobasis), Path("icu.toml").read_bytes()) == (before, text)


def test_a_lost_secret_file_is_made_again_with_all_the_others(cobasis):
    cobasis.agreed()
    before = secrets_of(cobasis)
    (cobasis.folder / "east.secret").unlink()
    cobasis("agreement new icu.toml --yes")
    assert sorted(secrets_of(cobasis)) == sorted(before)
    assert not set(secrets_of(cobasis).values()) & set(before.values())


def test_a_secret_of_another_round_is_not_written_over(cobasis):
    cobasis.agreed()
    before = secrets_of(cobasis)
    pubs = " ".join(f"{name}.pub" for name in (*NAMES, "lab"))
    line = f"agreement new other.toml {pubs} --numbers a,b {TERMS} --yes"
    assert "'east.secret' is in the way" in cobasis(line, code=2).stderr
    assert secrets_of(cobasis) == before
    assert not Path("other.toml").exists()


def test_once_somebody_signed_nothing_changes_any_more(cobasis):
    cobasis.agreed()
    before = secrets_of(cobasis)
    cobasis("sign icu.toml --yes", by="east")
    edit(cobasis, "retention_days = 30", "retention_days = 60")
    told = cobasis("agreement new icu.toml --yes", code=2).stderr
    assert "was signed (east)" in told
    (cobasis.folder / "east.sig").unlink()
    edit(cobasis, "retention_days = 60", "retention_days = 30")
    cobasis("sign icu.toml --yes -o elsewhere")
    told = cobasis("agreement new icu.toml --yes", code=2).stderr  # by this home's own transcript
    assert "was signed (north)" in told
    assert secrets_of(cobasis) == before


def test_a_draft_is_completed_by_hand_and_by_pub_files(cobasis):
    cobasis.keys()
    cobasis("agreement new icu.toml --numbers a,b --task regression --label y --n-components 1")
    pubs = " ".join(f"{name}.pub" for name in (*NAMES, "lab"))
    told = cobasis(f"agreement new icu.toml {pubs} --yes").stdout
    assert "To be filled by hand: purpose, retention_days." in told
    assert not secrets_of(cobasis)
    edit(cobasis, 'purpose = ""', 'purpose = "study"')
    edit(cobasis, 'retention_days = ""', "retention_days = 30")
    found = cobasis.json("agreement new icu.toml --yes")
    assert (found["state"], found["missing"]) == ("complete", [])
    assert sorted(secrets_of(cobasis)) == sorted(found["secrets"].values())


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
