"""A round as people type it in which a ward and a laboratory hold columns of the same people."""

from dataclasses import replace

import numpy as np
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
    cobasis.draft(more="--basis svd --n-components 4 --holdout 0")
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
    assert "80 rows in the order of east, with a tag of whose they are" in said
    agreed.send()
    ran = agreed.run().output
    assert "east" in ran
    assert "140 rows" in ran
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


def test_what_takes_a_whole_row_is_refused_at_a_party_that_holds_a_part(agreed):
    ready(agreed)
    agreed.send()
    agreed.run()
    agreed.accept()
    predict = "predict icu.toml east.csv -o out.csv"
    agreed("predict icu.toml north.csv --part -o north.part", by="north")
    halves = ("", "--with east.part --with north.part", "--part --with north.part")
    reasons = ("--explain --with north.part", "--of 1 --with north.part", "--part --explain")
    for more in (*halves, *reasons):
        said = agreed(f"{predict} {more}", by="east", code=2).stderr
        assert "those of north are needed as well" in " ".join(said.split())
    said = agreed("predict icu.toml south.csv --part -o out.csv", by="south", code=2).stderr
    assert "holds no part" in " ".join(said.split())
    for more in ("", "--surrogate east.csv"):
        said = agreed(f"export icu.toml {more}", by="east", code=2).stderr
        assert "those of north are needed as well" in " ".join(said.split())
    said = agreed("score icu.toml east.csv", by="east").output
    assert "columns that other parties hold of your people" in " ".join(said.split())


def test_a_part_is_for_its_block_its_model_and_its_people(agreed, monkeypatch):
    ready(agreed)
    agreed.send()
    agreed.run()
    agreed.accept()
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
    "a person less": lambda rows: rows.head(79),
    "another person": lambda rows: rows.with_columns(
        patient=pl.col("patient").str.replace("people-7$", "people-700")
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
    ready(agreed)
    agreed.send()
    agreed.run()
    agreed.accept()
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
