"""A round of survival curves as people type it: three hospitals' lung cancers, one sum."""

import csv

import numpy as np
import polars as pl
import pytest
from lifelines.datasets import load_lung

from cli.round_by_commands import NAMES
from cobasis.protocol.baseline import BaselineTable
from protocol.test_curves import largest_gaps

OUTCOME = "time=days,event=died,grid=30/60/../720,horizons=365"


def lung():
    """The patients of R's lung, by institution at three hospitals."""
    data = load_lung()
    place = np.nan_to_num(data["inst"].to_numpy(), nan=1.0).astype(int)
    return pl.DataFrame(
        {
            "patient": [f"p{at}" for at in range(len(data))],
            "age": data["age"].to_numpy(float),
            "sex": np.where(data["sex"] == 1, "male", "female"),
            "days": data["time"].to_numpy(),
            "died": data["status"].to_numpy(int),
            "hospital": np.array(NAMES)[place % 3],
        }
    )


def written(folder, change=None):
    for name in NAMES:
        some = lung().filter(hospital=name).drop("hospital")
        (some if change is None else change(some)).write_csv(folder / f"{name}.csv")


@pytest.fixture
def agreed(cobasis):
    said = cobasis.signed_on(
        "--numbers age:low=18,high=100 --label sex "
        f"--classes female,male --id patient --purpose study --task table --outcome {OUTCOME} "
        "--sums most_rows=200,most_rows_in_all=600 --holdout 0 --retention-days 30 --yes"
    )
    assert "24 intervals of 'days'" in said
    assert "cells of few people and of one included" in said
    return cobasis


def test_three_hospitals_get_the_curves_of_all_patients_by_one_command_each(agreed):
    written(agreed.folder)
    found = agreed.json("audit icu.toml north.csv", by="north")
    [cells] = [each for each in found["findings"] if each["id"] == "S3"]
    assert cells["figures"]["few_leavers"] > 10
    agreed.send()
    ran = agreed.run().stdout
    agreed.accept()
    told = agreed.json("status icu.toml", by="north")
    assert (told["next"], told["now"]) == ("", False)  # no model was trained
    table = BaselineTable.read((agreed.folder / "icu.north.table" / "table.json").read_bytes())
    rows, found = lung(), table.survival
    assert (
        max(
            largest_gaps(
                table, rows.rename({"sex": "group", "days": "time", "died": "event"})
            ).values()
        )
        < 1e-10
    )
    assert [mean.until for mean in found.groups[0].means] == [365.0]
    assert f"p = {found.log_rank.p:.4f}" in ran
    assert "median days of female" in ran
    with (agreed.folder / "icu.north.table" / "survival.csv").open() as file:
        assert len([*csv.reader(file)]) == 1 + 3 * len(found.times)
    page = (agreed.folder / "icu.north.table" / "table.html").read_text()
    assert page.count("<svg") == 2
    assert "http://" not in page.replace("http://www.w3.org", "")


BAD = {
    "no column of times": (lambda rows: rows.drop("days"), "'days'"),
    "a time below zero": (lambda rows: rows.with_columns(days=-pl.col("days")), "not above 0"),
    "an event of 2": (lambda rows: rows.with_columns(died=pl.lit(2)), "neither 0 nor 1"),
    "an empty time": (
        lambda rows: rows.with_columns(days=pl.when(pl.col("age") < 60).then("days")),
        "'days'",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_table_without_a_right_time_or_event_is_refused_before_anything_leaves(kind, agreed):
    change, words = BAD[kind]
    written(agreed.folder, change)
    said = agreed("send icu.toml north.csv --yes --signed-by Officer", by="north", code=2).stderr
    assert words in " ".join(said.split())
    assert not (agreed.folder / "icu.north.1-sums").exists()
