"""``cobasis agreement new`` as people type it."""

import re
import tomllib
from pathlib import Path

import polars as pl
import pytest

from cli.round_by_commands import NAMES, PUBS, write_table
from cobasis import ConsortiumSecret
from cobasis.bundle.agreement_file import read_agreement
from cobasis.bundle.envelope import look
from cobasis.cli import options

TERMS = (
    "--purpose study --retention-days 30 --task regression --label lactate --id patient "
    "--fewest-rows 9 --n-components 2"
)


def loaded(name="icu.toml"):
    return tomllib.loads(Path(name).read_text())


def secrets():
    return {path.name: path.read_bytes() for path in Path().glob("*.secret")}


def test_columns_and_their_constants_can_be_typed_and_what_is_not_said_stays_open(cobasis):
    found = cobasis.json(
        "agreement new icu.toml --missing fill --numbers 'age:centre=60,scale=20,unit=years' "
        "--numbers 'a,b (mg/l):low=0,high=2.5,fill=1' --category sex=f,m"
    )
    assert found["state"] == "draft"
    assert {"purpose", "retention_days", "task", "n_components"} <= set(found["missing"])
    age, a, b, sex = loaded()["features"]
    assert (age["centre"], age["scale"], age["unit"], age["fill"]) == (60, 20, "years", 60)
    assert [(each["low"], each["high"], each["fill"]) for each in (a, b)] == [(0, 2.5, 1)] * 2
    assert (a["name"], b["name"]) == ("a", "b (mg/l)")
    assert (sex["missing"], loaded()["n_anchor_rows"]) == ("level", 6)  # f, m, empty
    assert (loaded()["minimum_parties"], loaded()["fewest_rows"]) == (2, 10)  # as a terminal offers
    sums = "--task regression --sums maps=rff,most_rows=90,most_rows_in_all=300"
    told = cobasis(f"agreement new one.toml --numbers a:low=1,high=1 {sums}").stderr
    assert told == "Taken: minimum_parties=3, since nobody says another.\n"
    one = loaded("one.toml")
    assert (one["features"][0]["scale"], one["release"]) == (1, "sums")
    method = {"anchor": "gaussian", "aligner": "imakura", "basis": "pca", "model": "mlp"}
    told = " ".join(f"--{name} {word}" for name, word in method.items())
    cobasis(f"agreement new other.toml --numbers a,b --task classification {told}")
    assert loaded("other.toml").items() >= method.items()
    assert loaded("other.toml")["n_anchor_rows"] == ""  # of isometric anchors alone one a feature


def test_an_example_is_read_as_a_partys_table_is_and_each_column_by_itself(cobasis):
    """With decimal commas and `NA` numbers are numbers, and no words."""
    table = pl.read_csv(write_table(cobasis.folder / "public.csv", seed=0))
    example = "--columns public.csv --i-may-publish --task classification --purpose study "
    example += "--id patient --missing fill --label"
    text = re.sub(r"\d+\.\d+", "NA", Path("public.csv").read_text(), count=1)
    Path("public.csv").write_text(text.replace(",", ";").replace(".", ","))
    cobasis(f"agreement new german.toml {example} sick")
    german = loaded("german.toml")
    first, *_, last = german["features"]
    assert [each["name"] for each in german["features"]] == ["a", "b", "c", "d", "sex"]
    assert (last["values"], last["missing"], first["missing"]) == (["f", "m"], "level", "fill")
    assert first["scale"] > 1
    assert (german["classes"], german["n_anchor_rows"]) == (["no", "yes"], 4 + 4)
    # a decimal comma in a remark says nothing of numbers with points
    note = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("2,5")).otherwise(pl.lit("none"))
    table.with_columns(note=note).write_csv("public.csv")
    cobasis(f"agreement new icu.toml {example} note")
    assert loaded()["classes"] == ["2,5", "none"]
    assert loaded()["round_id"].startswith("icu-")


@pytest.mark.usefixtures("terminal")
def test_on_a_terminal_what_is_missing_is_asked_again_until_it_can_stand(cobasis):
    write_table(cobasis.folder / "public.csv", seed=0)
    answers = [
        *("study", "none.csv", "public.csv", "guess", "", "ill", "sick", "patient", "", "y"),
        *("many", "", "0", "45", "", "", "someday", "2030-01-31", "0.7", ""),
    ]
    told = cobasis("agreement new icu.toml", typed="\n".join(answers) + "\n").stderr
    assert [told.count(code) for code in ("CB601", "CB105", "CB107")] == [1, 1, 5]
    read = loaded()
    assert (read["purpose"], read["task"], read["label"]) == ("study", "classification", "sick")
    assert (read["id"], read["classes"], read["n_components"]) == ("patient", ["no", "yes"], 4)
    assert (read["retention_days"], read["minimum_parties"], read["holdout"]) == (45, 2, 0.2)
    assert read["fewest_rows"] == 10
    assert (read["model"], read["deadline"]) == ("logistic", "2030-01-31T23:59:59Z")
    line = f"agreement new b.toml --numbers age,pulse {TERMS} --deadline 2030-01-31 --holdout 0"
    cobasis(f"{line} --minimum-parties 2", typed="")  # nothing that was told


ROWS = {  # what cannot stand beside the terms of a round of rows, and why
    **dict.fromkeys(("--label ill", "--id person", "--leave-out x"), "[CB105]"),
    **dict.fromkeys(("--holdout nan", "--deadline 2026-13-01", "--round ''"), "[CB107]"),
    "--numbers a:centre=1,centre=2": "centre=2 cannot be read: a name stands there twice",
    "--numbers a:centre=b": "--numbers a:centre=b cannot be read: centre: it has to be a number",
    "--dp epsilon=8,radi=2": "radi=2 cannot be read: radius: it is missing; most_rows: it is",
    "--fewest-rows x": "'--fewest-rows': it has to be a whole number. See",
    **dict.fromkeys(("--n-components 20", "--minimum-parties 9", "--basis public"), "[CB303]"),
    **dict.fromkeys(("--precision int8", "--models ridge,oracle", "--classes yes"), "[CB303]"),
    "--task table": "task='table' goes with release='sums'",
    "--sums maps=rff,": "Say --sums or --n-components, not both: sums",
    "--category sex": "sex cannot be read: values: it has to have at least 1 item.",
    "--numbers age:centr=1": "age:centre=60,scale=20,unit=years",
    "--numbers age:source=x": "a name or source behind it",
    "--numbers :low=1": "--numbers :low=1 cannot be read: it has no column",
    "--server http://lab.example": "it is no address like https://lab.example or",
}
SUMS = {  # the same of a round of sums
    "--sums maps=foo,": "a map 'foo' does not exist",
    "--sums maps=mixed,bandwidth=2,": "bandwidth: nothing here has this name",
    "--sums maps=rff,most_weight=2,": "sums.most_weight goes with outcome.weight",
}


def test_a_term_that_cannot_stand_is_refused_and_nothing_is_written(cobasis):
    cobasis.keys()
    write_table(cobasis.folder / "public.csv", seed=0)
    before = sorted(cobasis.folder.iterdir())
    line = f"agreement new icu.toml {PUBS} --columns public.csv --label sick --id patient"
    line += " --purpose p --task classification --retention-days 30 --yes --i-may-publish"
    for more, refused in (("--n-components 3", ROWS), ("", SUMS)):
        for words, problem in refused.items():
            rows = "most_rows=90,most_rows_in_all=300" if words.endswith(",") else ""
            cobasis.refused(f"{line} {more} {words}{rows}", problem)
            assert sorted(cobasis.folder.iterdir()) == before
    numbers = f"agreement new icu.toml --numbers age --leave-out age {TERMS}"
    cobasis.refused(numbers, "is no column of a table that was given")


def test_the_author_is_a_party_and_a_pub_file_that_is_none_or_of_another_role_is_named(cobasis):
    cobasis.keys()
    line = f"agreement new icu.toml {PUBS} --numbers age,pulse {TERMS} --yes"
    there = ("only a party makes it", "the --home and --as of one of these", "enrolled by its .pub")
    cobasis.refused(line, "nobody with a key", *there, "[CB304]", by="lab")
    cobasis.refused(f"{line} --as lab", "'lab' takes no part in this agreement", by="lab")
    cobasis("key new other --analyst", by="other")
    Path("junk.pub").write_text("{}\n")
    Path("south.pub").rename("first.pub")
    cobasis("key new south", by="other")
    for pubs, said in {
        f"{PUBS} junk.pub": "'junk.pub' cannot be used",
        f"{PUBS} first.pub": "'south.pub' and 'first.pub' are two keys of one party, or of two",
        f"{PUBS} --analyst north.pub": "'north.pub' is the key of 'north', and was made for role",
        f"{PUBS} --analyst other.pub": "'lab.pub' and 'other.pub' are two keys",
    }.items():
        cobasis.refused(line.replace(PUBS, pubs), said, "[CB303]")
    assert not Path("icu.toml").exists()


def test_every_fingerprint_but_ones_own_is_confirmed(cobasis, monkeypatch):
    cobasis.keys()
    prints = {name: cobasis.public(name).fingerprint for name in (*NAMES, "lab")}
    own = prints.pop("north")
    line = f"agreement new icu.toml {PUBS} --numbers a,b {TERMS} --id patient"
    line += " --deadline 2030-01-31 --minimum-parties 2 --holdout 0"
    told = cobasis(line, code=2).stderr
    assert [each in told for each in (*prints.values(), own)] == [True] * 3 + [False]
    monkeypatch.setattr(options, "on_terminal", lambda: True)
    cobasis(line, typed="y\ny\nn\n", code=2)
    assert not Path("icu.toml").exists()
    told = cobasis(line, typed="y\ny\ny\n").stderr
    assert all(each in told for each in prints.values())


def test_one_command_enrols_all_and_typed_again_draws_a_new_secret_until_one_has_signed(cobasis):
    said = cobasis.agreed().stdout
    assert said.startswith("lab.pub is the analyst's, and is set aside from the parties'.")
    before, old = secrets(), read_agreement(Path("icu.toml")).agreement
    assert (old.parties, old.analyst.name, old.digest().hex() in said) == (NAMES, "lab", True)
    for name in NAMES:
        path = Path(f"{name}.secret")
        assert (look(path), path.stat().st_mode & 0o077) == (1, 0)
        cobasis(f"inspect {path} --as {name}", by=name)
    cobasis.refused("inspect north.secret --as lab", "[CB801]", by="lab", code=3)
    line = f"agreement new other.toml {PUBS} --numbers a,b {TERMS} --yes"
    cobasis.refused(line, "'east.secret' is in the way")  # of another round
    assert not Path("other.toml").exists()
    for same in (cobasis("agreement new icu.toml"), cobasis.draft(pubs=PUBS)):
        assert "Nothing changed" in same.stdout
    new = "agreement new icu.toml --holdout 0.1 --yes"
    cobasis.refused(new, "options describe a new agreement")
    cobasis.edit("holdout = 0.0", "holdout = 0.25  # asked for by the board")
    cobasis.edit("retention_days = 30", "retention_days = 60")
    assert "+ retention_days = 60" in cobasis("agreement new icu.toml", code=2).stdout
    assert secrets() == before
    Path("icu.toml").chmod(0o640)
    cobasis.keys(["west"])
    told = cobasis.json("agreement new icu.toml west.pub --yes")["changed"]
    assert {"- retention_days = 30", "+ retention_days = 60", '+ name = "west"'} < set(told)
    new = read_agreement(Path("icu.toml")).agreement
    mode = Path("icu.toml").stat().st_mode & 0o777
    assert (new.digest() != old.digest(), new.commitment != old.commitment, mode) == (1, 1, 0o640)
    text = Path("icu.toml").read_text()
    assert "# asked for by the board" in text
    assert sorted(secrets()) == [f"{name}.secret" for name in (*NAMES, "west")]
    assert not {*before.values()} & {*secrets().values()}
    at = text.index('[[party]]\nname = "west"')
    Path("icu.toml").write_text(text[:at] + text[text.index("[analyst]", at) :])
    assert '- name = "west"' in cobasis.json("agreement new icu.toml --yes")["changed"]
    assert sorted(before) == sorted(before := secrets())
    cobasis("sign icu.toml --yes", by="east")
    text = cobasis.edit("retention_days = 60", "retention_days = 90")
    cobasis.refused("agreement new icu.toml --yes", "was signed (east)")
    Path("east.sig").unlink()
    Path("icu.toml").write_text(text)
    cobasis("sign icu.toml --yes -o elsewhere")  # as this home's own transcript says
    cobasis.refused("agreement new icu.toml --yes", "was signed (north)")
    assert secrets() == before


def test_a_draft_is_completed_by_hand_and_by_pub_files(cobasis, monkeypatch):
    cobasis.keys()
    cobasis(
        "agreement new icu.toml --numbers a,b --task regression --label y --id who --n-components 1"
    )
    told = cobasis(f"agreement new icu.toml {PUBS} --yes").stdout
    assert "To be filled by hand: purpose, retention_days." in told
    assert not secrets()
    gaps = "purpose, retention_days"
    told = (
        "draft: commitment, " + gaps,
        f"Fill {gaps} by",
        "type `cobasis agreement new icu.toml`, ",
    )
    cobasis.refused("sign icu.toml", *told)
    cobasis.said("status icu.toml", f"when somebody fills in {gaps}, by hand: cobasis agreement")
    cobasis.said("status icu.toml", "when it is no draft: cobasis sign icu.toml", by="lab")
    cobasis.edit('purpose = ""', 'purpose = "study"')
    cobasis.edit('retention_days = ""', "retention_days = 30")
    assert cobasis.json("status")["next"] == "cobasis agreement new icu.toml"
    drawn = bytes(range(32))
    monkeypatch.setattr("secrets.token_bytes", lambda count: drawn[:count])  # the system's
    found = cobasis.json("agreement new icu.toml --yes")
    assert (found["state"], found["missing"]) == ("complete", [])
    assert sorted(secrets()) == sorted(found["secrets"].values())
    assert loaded()["commitment"] == ConsortiumSecret(drawn).commitment(loaded()["round_id"])
