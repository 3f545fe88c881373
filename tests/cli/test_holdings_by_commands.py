"""A round as people type it in which a ward and a laboratory hold columns of the same people."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import polars as pl
import pytest

from cli.round_by_commands import PUBS, write_table
from cobasis.party_side import predict

HELD = {"east": ["a", "b"], "north": ["c", "d", "sex"]}
HOLDINGS = """
[[holdings]]
party = "east"
columns = ["a", "b"]
block = "city"
n_components = 2

[[holdings]]
party = "north"
columns = ["c", "d", "sex"]
block = "city"
n_components = 2
labels = false
"""


def whole_rows(folder, *, seed=1, n_rows=80):
    return pl.read_csv(write_table(folder / "people.csv", seed=seed, n_rows=n_rows))


def parted(rows, folder, *, end=".csv"):
    """The ward's table, and the laboratory's: other columns of these people, in another order."""
    rows.select("patient", *HELD["east"], "sick").write_csv(folder / f"east{end}")
    lab = rows.select("patient", *HELD["north"]).sample(fraction=1.0, shuffle=True, seed=3)
    lab.write_csv(folder / f"north{end}")


@pytest.fixture
def agreed(cobasis):
    cobasis.keys()
    cobasis.draft(more="--basis svd --n-components 4 --holdout 0.25")
    text = (cobasis.folder / "icu.toml").read_text()
    (cobasis.folder / "icu.toml").write_text(text + HOLDINGS)
    cobasis(f"agreement new icu.toml {PUBS} --yes")
    return cobasis


def ready(agreed, change=lambda rows: rows):
    agreed.signed()
    parted(whole_rows(agreed.folder), agreed.folder)
    write_table(agreed.folder / "south.csv", seed=2, n_rows=60)
    north = agreed.folder / "north.csv"
    change(pl.read_csv(north)).write_csv(north)


def test_a_ward_and_a_laboratory_train_with_a_hospital_and_predict_together(agreed):
    said = " ".join(agreed("sign icu.toml --yes", by="north").output.split())
    assert "Who holds east: a, b; north: c, d, sex; others all" in said
    assert "JOINED lab puts each person's numbers beside those of east" in said
    assert "per person 2 numbers pseudonymised" in said  # and no label
    ready(agreed)
    said = " ".join(agreed("send icu.toml north.csv --dry-run", by="north").output.split())
    assert "56 rows in the order of east, with a tag of whose they are" in said
    assert "24 rows that are held back" in said
    agreed.send()
    ran = agreed.run().output
    assert "east" in ran
    assert "rows of east, north, south" in ran
    said = agreed("verify icu.toml", by="lab").output
    assert "fit" in said
    agreed.accept()
    said = agreed("accept icu.toml icu.north.1-return", by="north").output
    part = agreed.json("status icu.toml", by="north")["next"]
    assert part == "cobasis predict icu.toml new.csv --part -o north.part"
    with_it = "cobasis predict icu.toml new.csv --with east.part -o out.csv"
    assert said.endswith(
        f"Next:\n  {part}\nand with what east made of the same people in this way:\n  {with_it}\n"
    )
    new = whole_rows(agreed.folder, seed=9, n_rows=200)
    parted(new, agreed.folder, end="-new.csv")
    for name in HELD:
        said = agreed(f"predict icu.toml {name}-new.csv --part -o {name}.part", by=name).output
        assert "sealed for your block's others" in said
    for name, other in (("east", "north"), ("north", "east")):
        agreed(f"predict icu.toml {name}-new.csv --with {other}.part -o {name}-out.csv", by=name)
    ward, lab = (pl.read_csv(agreed.folder / f"{name}-out.csv").sort("patient") for name in HELD)
    assert ward["prediction"].to_list() == lab["prediction"].to_list()
    right = ward.join(new, on="patient")
    assert np.mean((right["prediction"] == right["sick"]).to_numpy()) > 0.9


def test_a_block_that_shares_a_representation_is_told_no_prediction(cobasis):
    cobasis.keys()
    cobasis(
        f"agreement new icu.toml {PUBS} --numbers a,b,c,d --category sex=f,m --id patient "
        "--task representation --basis svd --n-components 4 --holdout 0 --minimum-parties 2 "
        "--retention-days 30 --purpose study --yes"
    )
    text = Path("icu.toml").read_text()
    Path("icu.toml").write_text(text + HOLDINGS.replace("labels = false\n", ""))
    cobasis(f"agreement new icu.toml {PUBS} --yes")
    ready(cobasis)
    cobasis.send()
    cobasis.run()
    cobasis.accept()
    assert "predict" not in cobasis("accept icu.toml icu.north.1-return", by="north").output


def finished(agreed):
    ready(agreed)
    agreed.send()
    agreed.run()
    agreed.accept()


def in_a_line(said):
    return " ".join(said.split())


def held_back(ids, share=0.25):
    """The rule, by the identifier alone: another would send in one round who stayed in another."""
    digests = (hashlib.sha256(f"cobasis/1/side\0{each}".encode()).digest() for each in ids)
    return [int.from_bytes(each[:8], "little") < share * 2**64 for each in digests]


def test_a_block_scores_on_people_whom_all_of_it_held_back(agreed):
    finished(agreed)
    told = {
        "east": "holds some columns of its people, and the model takes all: those of north are",
        "north": "Note: east has your people's labels, and scores with your part of those who",
        "south": "rows that never left",
    }
    for name, words in told.items():
        said = agreed(f"accept icu.toml icu.{name}.1-return", by=name).output
        assert words in in_a_line(said)
    said = agreed("predict icu.toml --part -o held.part", by="north").output
    assert "24 people's parts" in said
    agreed("predict icu.toml north.csv --part -o all.part", by="north")
    agreed("predict icu.toml east.csv --with all.part -o out.csv", by="east")
    rows = pl.read_csv(agreed.folder / "east.csv")
    kept = pl.Series(held_back(rows["patient"]))
    right = rows["sick"] == pl.read_csv(agreed.folder / "out.csv")["prediction"]
    found = agreed.json("score icu.toml --with held.part", by="east")["score"]
    assert found["n_rows"] == kept.sum() == 24
    assert found["together"]["accuracy"][0] == pytest.approx(right.filter(kept).mean())
    assert found["alone"]["accuracy"][0] < 1  # of the ward's columns
    assert found == agreed.json("score icu.toml --with all.part", by="east")["score"]
    said = in_a_line(agreed("score icu.toml --with held.part --send --yes", by="east").output)
    assert "Wrote icu.east.word" in said
    said = agreed("score icu.toml --with held.part", by="south", code=2).stderr
    assert "holds no part of other parties' people" in in_a_line(said)
    lab = pl.read_csv(agreed.folder / "north.csv")
    came = [name for name in map("came-{}".format, range(9)) if not held_back([name])[0]]
    more = lab.head(len(came)).with_columns(patient=pl.Series(came))
    pl.concat([lab, more]).write_csv(agreed.folder / "north.csv")
    said = agreed("predict icu.toml --part -o held.part", by="north").output
    assert "24 people's parts" in said  # nobody's who came later
    (agreed.folder / "north.csv").unlink()
    said = agreed("predict icu.toml --part -o gone.part", by="north", code=2).stderr
    assert "there is nobody who was held back. Name a table" in in_a_line(said)


def test_a_block_explains_and_exports_what_it_can(agreed):
    finished(agreed)
    agreed("predict icu.toml north.csv --part -o north.part", by="north")
    agreed("predict icu.toml east.csv --with north.part --explain -o why.csv", by="east")
    why = pl.read_csv(agreed.folder / "why.csv")
    added = why.select(pl.sum_horizontal("base", "why_a", "why_b", "why_part_of_north")).to_series()
    told = (why["probability_yes"] / why["probability_no"]).log()
    assert np.allclose(added, told)
    said = agreed("export icu.toml --surrogate east.csv --with north.part", by="east").output
    assert "meets the model with R2 0." in in_a_line(said)
    graphs = {}
    for name in HELD:
        agreed(f"export icu.toml -o {name}.onnx", by=name)
        graphs[name] = onnxruntime.InferenceSession(agreed.folder / f"{name}.onnx")
    rows = {name: pl.read_csv(agreed.folder / f"{name}.csv").sort("patient") for name in HELD}
    given = {name: rows[name].select(HELD[name]).to_dict(as_series=False) for name in HELD}
    inputs = {
        name: {column: np.array(cells)[:, np.newaxis] for column, cells in each.items()}
        for name, each in given.items()
    }
    inputs["north"]["sex"] = inputs["north"]["sex"].astype(object)
    part = graphs["north"].run(["part"], inputs["north"] | {"beside": np.zeros((80, 4))})[0]
    [scores] = graphs["east"].run(["scores"], inputs["east"] | {"beside": part})
    assert np.allclose(scores[:, 1], why.sort("patient")["probability_yes"], atol=1e-6)


def test_what_takes_a_whole_row_is_refused_at_a_party_that_holds_a_part(agreed):
    finished(agreed)
    predict = "predict icu.toml east.csv -o out.csv"
    agreed("predict icu.toml north.csv --part -o north.part", by="north")
    halves = ("", "--with east.part --with north.part", "--part --with north.part")
    lines = [f"{predict} {more}" for more in (*halves, "--explain", "--part --explain")]
    for line in (*lines, "score icu.toml east.csv", "score icu.toml"):
        said = agreed(line, by="east", code=2).stderr
        assert "those of north are needed as well" in " ".join(said.split())
    said = agreed("predict icu.toml south.csv --part -o out.csv", by="south", code=2).stderr
    assert "holds no part" in " ".join(said.split())
    said = agreed("export icu.toml --surrogate east.csv", by="east", code=2).stderr
    assert "those of north are needed as well" in in_a_line(said)
    said = agreed("export icu.toml --with north.part", by="east", code=2).stderr
    assert "--of and --with are of a surrogate" in in_a_line(said)
    said = agreed("predict icu.toml -o out.csv --with north.part", by="east", code=2).stderr
    assert "takes a table of new rows" in in_a_line(said)


def test_a_part_is_for_its_block_its_model_and_its_people(agreed, monkeypatch):
    finished(agreed)
    whole = pl.read_csv(agreed.folder / "north.csv")

    def refused(rows=whole, *, by="east", code=2):
        rows.write_csv(agreed.folder / "some.csv")
        agreed("predict icu.toml some.csv --part -o north.part", by="north")
        line = f"predict icu.toml {by}.csv --with north.part -o out.csv"
        return " ".join(agreed(line, by=by, code=code).stderr.split())

    assert "lacks 10 of 80 people" in refused(whole.head(70))
    assert not list(agreed.folder.rglob("part.parquet"))  # nothing plain is left
    assert "1 more than once" in refused(pl.concat([whole, whole.head(1)]))
    usable = predict.usable
    with monkeypatch.context() as before:  # as of a model that came before
        before.setattr(predict, "usable", lambda *a, **b: replace(usable(*a, **b), of="0" * 64))
        agreed("predict icu.toml north.csv --part -o old.part", by="north")
    said = agreed("predict icu.toml east.csv --with old.part -o out.csv", by="east", code=2).stderr
    assert "is of another model" in " ".join(said.split())
    assert (
        "is a part from 'north'" in agreed("accept icu.toml north.part", by="east", code=3).stderr
    )
    agreed("predict icu.toml east.csv --part -o own.part", by="east")
    agreed("predict icu.toml east.csv --with own.part -o out.csv", by="east", code=3)
    pl.read_csv(agreed.folder / "east.csv").write_csv(agreed.folder / "plain.part")
    agreed("predict icu.toml east.csv --with plain.part -o out.csv", by="east", code=3)


OTHERS = {
    "a person less": lambda rows: rows.filter(pl.col("patient") != "people-8"),
    "another person": lambda rows: rows.with_columns(
        patient=pl.col("patient").str.replace("people-8$", "people-800")
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_uploads_of_other_people_are_not_joined(case, agreed):
    ready(agreed, OTHERS[case])
    agreed.send()
    said = agreed.run(code=3).stderr
    assert "are not of the same people" in " ".join(said.split())
    said = agreed("run icu.toml --without north", by="lab", code=2).output
    assert "at least 2 are needed" in " ".join(said.split())


def test_no_part_is_sealed_for_a_key_that_was_revoked_nor_taken_from_it(agreed):
    finished(agreed)
    agreed("predict icu.toml north.csv --part -o north.part", by="north")
    for by in ("south", "lab"):
        agreed("key revoke icu.toml north --yes", by=by)
    agreed("accept icu.toml icu.news", by="east")
    for more in ("--part -o east.part", "--with north.part -o out.csv"):
        assert "[CB315]" in agreed(f"predict icu.toml east.csv {more}", by="east", code=2).stderr
    assert not (agreed.folder / "east.part").exists()


def test_a_party_that_leaves_takes_its_block_along(agreed):
    ready(agreed)
    agreed.send()
    agreed.run()
    said = " ".join(agreed("remove icu.toml north", by="lab", code=2).stderr.split())
    assert "1 would stay (south)" in said
