"""Regression tables of sums by files: a step an exchange, until no step is left to take."""

import numpy as np
import polars as pl
import pytest

from cobasis import CategoryFeature, NumericFeature, SumsTerms
from cobasis.errors import DifferenceError, EstimateError, ReplayError, StepError
from party_side.summing import NAMES

FEATURES = (
    NumericFeature(name="age", low=0.0, high=120.0, centre=55.0, scale=10.0),
    CategoryFeature(name="ward", values=("icu", "surgery"), base="icu"),
)
STEPS = SumsTerms(most_rows=300, most_rows_in_all=900, steps=8)


def people(name):
    rng = np.random.default_rng(NAMES.index(name))
    age, ward = rng.normal(60, 12, 200).clip(0, 120).round(), rng.integers(0, 2, 200)
    died = rng.random(200) < 1 / (1 + np.exp(4.5 - 0.07 * age - 0.8 * ward))
    words = [("icu", "surgery")[each] for each in ward]
    told = {"patient": [f"{name}-{at}" for at in range(200)], "age": age, "ward": words}
    return pl.DataFrame({**told, "died": died.astype(int)})


@pytest.fixture
def stepping(make):
    found = make(features=FEATURES, model="logit", holdout=0.0, sums=STEPS)
    found.table = lambda name, change=None: written(found, name, change)
    return found


def written(site, name, change):
    path = site.root / name / "data.csv"
    (people(name) if change is None else change(people(name))).write_csv(path)
    return path


def finished(site):
    while (concluded := site.step()).table is None:
        pass
    return concluded


def test_a_step_is_of_the_rows_and_parties_of_the_first(stepping):
    stepping.step()
    for change in (
        lambda table: table.head(190),
        lambda table: table.with_columns(died=1 - pl.col("died")),
    ):
        with pytest.raises((DifferenceError, StepError), match=r"\[CB(706|305)\]"):
            stepping.send("north", change=change)
    with pytest.raises(StepError, match="sums were added up on"):
        stepping.run(without=["west"])
    stepping.attempt()
    with pytest.raises(StepError, match="is of the sums of east, north, south, west"):
        stepping.send("north")


def test_a_step_is_audited_and_one_file_and_an_older_return_is_none_behind_it(stepping):
    stepping.step()
    made, report = stepping.looked()
    assert made.sums.exchange == 2
    assert "two-way table" in report["S3"].words
    assert report["S1"].grade == "amber"  # 200 rows, eight steps of three numbers
    made = stepping.send("north")
    again = stepping.send("north")
    assert (again.again, again.digest) == (True, made.digest)
    with pytest.raises(ReplayError, match="is of exchange 1"):
        stepping.accept("north", number=1)


def test_rows_that_determine_nothing_end_without_a_return(make):
    sums = STEPS.model_copy(update={"steps": 2})
    stepping = make(features=FEATURES, model="logit", holdout=0.0, sums=sums)
    apart = lambda table: table.with_columns(died=(pl.col("age") > 60).cast(int))  # noqa: E731
    stepping.table = lambda name: written(stepping, name, apart)
    with pytest.raises(EstimateError, match="separation"):
        finished(stepping)
    assert not [*(stepping.root / "outbox").glob("*.2-return")]
