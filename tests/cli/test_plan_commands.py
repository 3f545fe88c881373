"""``cobasis plan``: priced on a draft, without a key; only the page is written."""

import json

import pytest
from typer.testing import CliRunner

from cli.round_by_commands import Typed, write_table
from cobasis.cli.main import app


@pytest.fixture
def cobasis(tmp_path, monkeypatch):
    typed = Typed(tmp_path, monkeypatch)
    typed.draft()
    write_table(tmp_path / "north.csv", seed=2, n_rows=70)
    return typed


def files(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


LINE = "plan icu.toml north.csv --n-components 2 --noise 0.3"


def test_a_draft_and_a_table_are_enough_and_nothing_is_written(cobasis):
    before = files(cobasis.folder)
    done = CliRunner().invoke(app, LINE.split(), env={"COBASIS_HOME": str(cobasis.folder / "none")})
    assert done.exit_code == 0, done.output
    for word in ("2 components", "random basis", "noise 0.3", "content", "leaked"):
        assert word in done.stdout
    assert "Minimum change set" in done.stdout
    assert "Noise with a guarantee was left out" in done.stdout
    assert files(cobasis.folder) == before


def test_json_has_every_price_and_the_same_table_gives_the_same(cobasis):
    found = cobasis.json(LINE)
    assert [each["name"] for each in found["effects"]] == [
        "as it is",
        "2 components",
        "random basis",
        "no labels",
        "noise 0.3",
    ]
    assert (found["n_rows"], found["metric"], found["page"]) == (70, "accuracy", "")
    for each in found["effects"]:
        assert each["accuracy_least"] <= each["accuracy"] <= each["accuracy_most"]
        assert each["n_scored"] == 35
    assert cobasis.json(LINE) == found


def test_public_rows_bring_their_basis_and_guarantees(cobasis):
    found = cobasis.json(f"{LINE} --public public.csv --epsilon 8")
    names = [each["name"] for each in found["effects"]]
    assert names[-1] == "epsilon 8, public rows' basis"
    assert "public rows' basis" in names
    assert any("about the mean of the public rows" in each for each in found["told"])


def test_the_page_has_the_chart_and_the_table_and_is_its_owners_only(cobasis):
    assert "Wrote plan.html" in cobasis(f"{LINE} -o plan.html").stdout
    page = cobasis.folder / "plan.html"
    assert page.stat().st_mode & 0o777 == 0o600
    text = page.read_text()
    assert text.count("<svg") == 1
    assert "<td>random basis</td>" in text
    assert "Minimum change set" in text


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ("--epsilon many", "CB107"),
        ("--epsilon 99", "CB107"),
        ("--noise 0", "CB107"),
        ("-o north.csv", "CB107"),
        ("-o icu.toml", "CB107"),
        ("-o none/plan.html", "CB601"),
        ("other.csv", "CB107"),
    ],
)
def test_what_cannot_be_asked_is_refused(cobasis, more, code):
    assert f"[{code}]" in cobasis(f"plan icu.toml north.csv {more}", code=2).stderr


def test_the_only_agreement_of_the_folder_needs_no_name(cobasis):
    named = cobasis.json(LINE)
    assert cobasis.json(LINE.replace("icu.toml ", "")) == named
    cobasis.draft("other.toml")
    told = cobasis(LINE.replace("icu.toml ", ""), code=2).stderr
    assert "icu.toml, other.toml" in told
    assert "[CB107]" in told


def test_a_draft_without_the_data_is_refused_by_what_it_lacks(cobasis):
    cobasis("agreement new thin.toml --numbers a,b --task representation")
    said = cobasis("plan thin.toml north.csv", code=2).stderr.replace("\n", " ")
    assert "lacks n_components" in said


def test_an_agreement_with_a_guarantee_is_planned_with_it(cobasis):
    terms = "epsilon=8,radius=3,most_rows=100,labels=public"
    cobasis.draft("private.toml", more=f"--basis haar --dp {terms}")
    found = cobasis.json("plan private.toml north.csv --epsilon 2 --noise 0.3")
    price = {each["name"]: each for each in found["effects"]}
    assert price["as it is"]["leaked"] < 0.5
    assert (
        price["epsilon 2"]["content"] < price["as it is"]["content"] < price["noise 0.3"]["content"]
    )
    assert "Labels are public." in json.dumps(found["told"])
