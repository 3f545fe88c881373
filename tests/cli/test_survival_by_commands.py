"""A round of survival curves as people type it: three hospitals' lung cancers, one sum."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from lifelines.datasets import load_lung

from cli.round_by_commands import NAMES
from cobasis.protocol.baseline import BaselineTable
from protocol.test_curves import largest_gap

OUTCOME = "time=days,event=died,weight=w,grid=30/60/../720,horizons=365"


def lung():
    data = load_lung()
    place = np.nan_to_num(data["inst"].to_numpy(), nan=1.0).astype(int)
    return pl.DataFrame(
        {
            "patient": [f"p{at}" for at in range(len(data))],
            "age": data["age"].to_numpy(float),
            "sex": np.where(data["sex"] == 1, "male", "female"),
            "days": data["time"].to_numpy(),
            "died": data["status"].to_numpy(int),
            "w": (place % 3 != NAMES.index("north")).astype(int),
            "hospital": np.array(NAMES)[place % 3],
        }
    )


def written(change=lambda rows: rows):
    for name in NAMES:
        change(lung().filter(hospital=name).drop("hospital")).write_csv(f"{name}.csv")


BAD = (
    ("'days'", lambda rows: rows.drop("days")),  # no column of times
    ("not above 0", lambda rows: rows.with_columns(days=-pl.col("days"))),
    ("with a weight above 1", lambda rows: rows.with_columns(w=pl.lit(1.1))),
    ("'days'", lambda rows: rows.with_columns(days=pl.when(pl.col("age") < 60).then("days"))),
)


def test_three_hospitals_get_the_curves_of_all_patients_by_one_command_each(cobasis):
    said = cobasis.signed_on(
        "--numbers age:low=18,high=100,missing=fill --label sex "
        f"--classes female,male --id patient --purpose study --task table --outcome {OUTCOME} "
        "--sums most_rows=200,most_rows_in_all=600,most_weight=1 "
        "--holdout 0 --retention-days 30 --yes"
    )
    assert "24 intervals of 'days'" in said
    assert "cells of few people and of one included" in said
    for words, change in BAD:  # refused before anything leaves
        written(change)
        cobasis.refused("send icu.toml north.csv --dry-run", words, "does not fit the agreement")
        cobasis.refused("send icu.toml north.csv --yes --signed-by Officer", words)
        assert not Path("icu.north.1-sums").exists()
    written(lambda rows: rows.with_columns(age=pl.when(pl.col("age") > 50).then("age")))
    asked = "column 'w' is 0 in every row"
    told = ("behind it is not counted [CB104]", "they are counted as blank (", f"asked: {asked}")
    cobasis.said("send icu.toml north.csv --dry-run", *told)
    cobasis.refused("send icu.toml north.csv --yes --signed-by Officer", asked, "[CB108]")
    cobasis.send(more="--checked w")
    ran = cobasis.run().stdout
    cobasis.accept()
    assert cobasis.json("status icu.toml", by="north")["next"] == ""  # no model was trained
    cobasis.refused("predict icu.toml north.csv -o out.csv", "was for a table")
    assert len({Path(f"icu.{name}.table/table.json").read_bytes() for name in NAMES}) == 1
    table = BaselineTable.read(Path("icu.north.table/table.json").read_bytes())
    rows, found = lung(), table.survival
    named = rows.rename({"sex": "group", "days": "time", "died": "event"})
    assert largest_gap(table, named) < 1e-10
    assert [mean.until for mean in found.groups[0].means] == [365.0]
    assert f"p = {found.log_rank.p:.4f}" in ran
    assert len(pl.read_csv("icu.north.table/survival.csv")) == 3 * len(found.times)
    page = Path("icu.north.table/table.html").read_text()
    assert page.count("<svg") == 3
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    "task",
    [
        "--task survival --outcome event=died,compare_parties=yes",
        "--task effect --outcome treatment=drug",
        "--task effect --outcome treatment=drug,event=died,horizons=10,estimators=weighting",
    ],
)
def test_few_people_with_an_event_or_a_treatment_are_a_small_class_and_lone_times_are_counted(
    cobasis, monkeypatch, task
):
    """Two of them stand out whatever their label is, and no green says that nothing is sent."""
    said = cobasis.signed_on(
        "--numbers age:centre=60,scale=10 --category sex=female,male --label days --id patient "
        f"{task} --purpose study --holdout 0 --retention-days 30 --yes"
    )
    two = (pl.int_range(pl.len()) < 2).cast(int)
    written(lambda rows: rows.with_columns(died=two, drug=two))
    monkeypatch.setattr("cobasis.party_side.audit.sample_size", lambda *_: 40)
    found = cobasis.json("audit icu.toml north.csv -o audit.html")
    finding = {each["id"]: each for each in found["findings"]}
    assert finding["H3"]["figures"]["smallest_class"] == 2
    assert "H3" in found["to_sign"]
    names = [each["name"] for each in found["effects"]]
    assert not any("component" in each for each in names)  # which all columns take
    if "survival" in task:
        times = pl.read_csv("north.csv")["days"]
        assert finding["H6"]["figures"] == {"times_alone": times.is_unique().mean()}
        assert "Others get the model, cox, and EACH PARTY'S OWN ESTIMATES: north" in said
        page = Path("audit.html").read_text("utf-8")
        assert "Who gets the model, and each party&#39;s own estimates" in page
        found = cobasis.json("audit icu.toml north.csv --sensitive died")
        assert "H6" in found["to_sign"]  # the event leaves as the time does
