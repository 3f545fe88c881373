"""What users of the first version met with their tables (F11, F16, F18 to F20)."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pydantic import TypeAdapter

from cli.round_by_commands import write_table
from cobasis import simulate
from cobasis.bundle.agreement_file import read_draft
from cobasis.cli.options import Holder
from cobasis.errors import AgreementError
from cobasis.features.contract import Feature
from cobasis.linalg.arrays import gathered
from cobasis.party_side.rows import open_rows
from cobasis.tables import open_table

OWNER = Holder(home=Path("home-north"), passphrase_file=Path("passphrase"))


def test_f11_an_ordinary_csv_is_read_and_what_is_unclear_is_asked_once(sealed, terminal):
    """`;`, decimal commas, a byte-order mark, other names and words, grams for kilograms."""
    good = pl.read_csv("north.csv")
    text = good.with_columns(c=1000 * pl.col("c")).write_csv(separator=";")
    head, _, rows = text.partition("\n")
    head = head.replace("b;", "B ;").replace("a;", "albumin;")
    rows = re.sub(r"(\d)\.(\d)", r"\1,\2", rows).replace(";yes", ";1").replace(";no", ";0")
    ugly = Path("ugly.csv")
    ugly.write_text(f"\ufeff{head}\n{rows}", encoding="utf-8")
    line = "send icu.toml ugly.csv --signed-by Officer"
    terminal.undo()
    told = sealed.refused(
        line,
        "column 'a' is agreed on, and the table has none",
        "column 'sick' has words that are not agreed; agreed: 'no', 'yes'",
        "--mapping FILE",
    )
    assert "'1'" not in told  # a word that is found is the party's
    terminal.setattr("cobasis.cli.options.on_terminal", lambda: True)
    yes = (good["sick"] == "yes").sum() > good.height / 2
    typed = "albumin\nwhat\n" + ("yes\nno\n" if yes else "no\nyes\n") + "n\n0.001\ny\n"
    said = sealed.said(line, "Your column sick: '", typed=typed)
    assert "cells; found: '1', '0')" in said or "cells; found: '0', '1')" in said
    terminal.undo()
    session = OWNER.party(Path("icu.toml"))
    one = open_rows(session, ugly).table
    two = open_table("north.csv", agreement=session.agreement, party="north")
    assert np.allclose(gathered(one), gathered(two))
    assert np.array_equal(one.labels(), two.labels())
    Path("map.toml").write_text("[c]\nfactor = 0.002\n")
    line = "send icu.toml ugly.csv --dry-run --mapping map.toml"
    sealed.refused(line, "its columns stay mapped")
    assert session.round.mapping().root["a"].column == "albumin"


def test_f11_a_mapping_is_a_file_too_and_answers_hold_for_it_alone(sealed, terminal):
    terminal.undo()
    table = pl.read_csv("north.csv").with_columns(c=1000 * pl.col("c"))
    table.rename({"sick": "ill"}).write_csv("north.csv")
    line, ill = "send icu.toml north.csv --signed-by Officer --yes", '[sick]\ncolumn = "ill"\n'
    for bad, why in {
        f"{ill}[c]\nfactor = -1\n": "is no mapping: c.factor",
        "[ill]": "[ill] is no agreed column",
        "[c.words]\nx = '1'": "[c] has words, and numbers are agreed",
        "[sick]\nfactor = 2": "[sick] has a factor or days, and words are agreed",
        ill: "[CB108]",
    }.items():
        Path("map.toml").write_text(bad)
        sealed.refused(f"{line} --mapping map.toml", why)
    sealed("audit icu.toml north.csv")  # whoever looks only is told
    session = OWNER.party(Path("icu.toml"))
    session.round.call_right([("c", "spread")])
    assert session.round.called_right()
    Path("map.toml").write_text(f"{ill}[c]\nfactor = 0.001\n")
    sealed("audit icu.toml north.csv -o audit.html --mapping map.toml")
    assert "c: times 0.001; sick: from &#39;ill&#39;" in Path("audit.html").read_text()
    assert not session.round.called_right()
    sealed(line)


def test_f19_a_bad_cell_costs_its_row_and_is_named(ran):
    write_table(Path("new.csv"), seed=9)
    ran("predict icu.toml new.csv -o good.csv")
    lines = Path("new.csv").read_text().splitlines()
    for at, cell, bad in ((3, 1, "high"), (3, 5, ""), (7, 2, ""), (9, 4, "inf")):
        cells = lines[at].split(",")
        lines[at] = ",".join([*cells[:cell], bad, *cells[cell + 1 :]])
    Path("new.csv").write_text("\n".join(lines))
    line = "predict icu.toml new.csv -o out.csv"
    assert "high" not in ran.refused(line, "37 predictions", "line 4, column 'a': no number")
    out, good = pl.read_csv("out.csv"), pl.read_csv("good.csv")
    rows = out.with_row_index("row").filter(pl.col("problem").is_not_null())
    assert rows["row"].to_list() == [2, 6, 8]
    assert rows["problem"].to_list() == ["a: no number; sex: empty", "b: empty", "d: no number"]
    fine = out.filter(pl.col("problem").is_null()).drop("problem")
    assert fine.equals(good.filter(~pl.col("patient").is_in(rows["patient"].to_list())))
    good.write_parquet("out.parquet")  # as written before
    found = ran.json("predict icu.toml new.csv -o out.parquet", code=2)
    assert found["bad"][2] == "line 8, column 'b': empty"
    assert pl.read_parquet("out.parquet").equals(out)


def test_f16_what_is_missing_is_said_for_each_column(cobasis):
    write_table(Path("public.csv"), seed=0)
    line = "agreement new {} --task representation --id patient --purpose study"
    cobasis(
        f"{line.format('w.toml')} --missing ward,age --numbers pgr:centre=40,missing=fill "
        "--numbers er --numbers age:centre=60 --category ward=icu,surgery --category sex=f,m"
    )
    cobasis(f"{line.format('t.toml')} --columns public.csv --i-may-publish --missing b,sex")
    gaps = {}
    for file in ("w", "t"):
        features = tomllib.loads(Path(f"{file}.toml").read_text())["features"]
        gaps[file] = {each["name"]: each.get("fill") for each in features if "missing" in each}
    assert gaps["w"] == {"pgr": 40, "age": 60, "ward": None}
    assert set(gaps["t"]) == {"b", "sex"}
    line = f"{line.format('x.toml')} --columns public.csv --i-may-publish --missing bmi"
    cobasis.refused(line, "--missing bmi names no column")


def test_f18_what_tells_of_people_becomes_public_only_where_somebody_says_that_it_may(
    cobasis, monkeypatch
):
    write_table(Path("public.csv"), seed=0)
    table = pl.read_csv("public.csv").with_row_index("case")
    case = pl.when(pl.col("case") != 5).then("case")  # with a blank, so read as a real number
    days = pl.Series("seen", ["2025-01-02", "2025-01-03"] * 20)
    wards = pl.Series("ward", ["icu"] * 31 + ["hall"] * 9)
    table.with_columns(case, days, wards).write_csv("people.csv")
    line = "agreement new icu.toml --columns people.csv --label sick --id patient --purpose study "
    line += "--task classification"
    people = "'people.csv' (it has identifiers, or 10 rows or more, so it looks like people"
    cobasis.refused(f"{line} --leave-out case,seen", people, "same command with --i-may-publish")
    cobasis.refused(f"{line} --i-may-publish", "another value in every row, in case, seen")
    absent = "no column 'cases' to be the leave-out column"
    cobasis.refused(f"{line} --i-may-publish --leave-out cases", absent)
    with monkeypatch.context() as here:
        here.setattr("cobasis.cli.options.on_terminal", lambda: True)
        asked = cobasis(line, typed="\ncase,seen\nn\n", code=2).stderr
    assert "people.csv has case, a, b, c, d, sex, seen, ward." in asked
    assert asked.count("Which of them shall be no features") == 2
    assert "Features, of people.csv: a, b, c, d, sex, ward." in asked
    assert "people.csv looks like people. May its means" in asked
    assert not Path("icu.toml").exists()
    rare = "In fewer than 10 rows, so any other word: ward=hall."
    cobasis.said(f"{line} --leave-out case,seen --i-may-publish", rare)
    features = tomllib.loads(Path("icu.toml").read_text())["features"]
    assert {each["source"] for each in features} == {"rows of people.csv"}
    assert features[-1]["values"] == ["icu"]
    countries = [f"{letter}land" for letter in "ABCDEFGHIJKL"]  # a code book may be long
    sick = ["yes", "no", *[None] * 10]
    pl.DataFrame({"country": countries, "sick": sick}).write_csv("book.csv")
    new = "agreement new book.toml --columns book.csv --label sick --numbers c:centre=1"
    cobasis(f"{new} --task classification --purpose study")
    c, country = tomllib.loads(Path("book.toml").read_text())["features"]
    assert (c["source"], country["source"]) == ("told by the author", "code book book.csv")
    assert country["values"] == countries


def test_f20_a_column_that_follows_from_others_is_dropped_by_name(cobasis):
    """Three categories in 334 rows of credit, as many components as columns."""
    words = ("checking=none,low,high", "purpose=car,goods,study", "sex=female,male")
    line = "agreement new icu.toml --numbers age:centre=35,scale=11 --task classification"
    said = "Left without a column, since the others tell it: purpose=car, sex=female."
    cobasis.said(" ".join([line, *(f"--category {each}" for each in words)]), said)
    draft = read_draft(Path("icu.toml"))
    assert draft["n_anchor_rows"] == 1 + 3 + 2 + 1
    features = TypeAdapter(tuple[Feature, ...]).validate_json(json.dumps(draft["features"]))
    rng = np.random.default_rng(0)

    def dealt(_):
        age = rng.integers(20, 70, size=334)
        table = {"age": age} | {f.name: rng.choice(f.values, 334) for f in features[1:]}
        return pl.DataFrame(table), ((table["checking"] == "none") | (age < 30)).astype(int)

    rows = {name: dealt(name) for name in ("north", "south", "east")}
    done = simulate(rows, rng=rng, n_components=7, features=features)
    assert min(done.score(*dealt("new")).values()) > 0.7
    whole = [each.model_copy(update={"base": None}) for each in features[1:]]
    with pytest.raises(AgreementError, match=r"above the 7 .*each of checking, purpose, sex add"):
        simulate(rows, rng=rng, n_components=9, features=[features[0], *whole])
    with pytest.raises(AgreementError, match=r"name a base for each of them, or n_components=6 at"):
        simulate(rows, rng=rng, n_components=7, features=features, basis="pca")
    all_based = [features[0], whole[0].model_copy(update={"base": "low"}), *features[2:]]
    simulate(rows, rng=rng, n_components=6, features=all_based, basis="pca")
    for more in ("basis pca", "category site=here"):  # centred rows; a constant column
        new = f"{line} --{more} --category sex=f,m".replace("icu", more[:3])
        cobasis.said(new, "the others tell it: sex=f.")


@pytest.mark.parametrize(("how", "size"), [("fp64", 1), ("fp16", 6), ("int8 --int8-range 20", 8)])
def test_auto_shows_two_sizes_with_bits_and_price_and_takes_the_smaller(cobasis, how, size):
    """Eight numbers of unknown range and two categories: 12 columns that 76 bits tell apart."""
    line = f"agreement new icu.toml --numbers a,b,c,d,e,f,g,h --precision {how} --task regression"
    words = "--category sex=f,m --category ward=icu,hall,other --n-components auto"
    told = cobasis.said(f"{line} {words}", f"Taken: {size}.")
    bits = {"fp64": 53, "fp16": 11}.get(how, 8)
    for each in {size, 8}:
        assert f"{each} of 12 numbers carry {each * bits} bits, and 76 tell a record" in told
    assert told.count("points lost, in our studies: 0 to 11.2") == 1 + (size == 6)
    assert read_draft(Path("icu.toml"))["n_components"] == size
