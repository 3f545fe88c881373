"""Regression tables of sums by files: a step an exchange, until no step is left to take."""

import polars as pl
import pytest

from cobasis import SumsTerms
from cobasis.errors import DifferenceError, EstimateError, ReplayError, StepError
from party_side import sites

WARD = sites.FEATURES[-1].model_copy(update={"base": "icu", "missing": "refuse"})
FIELDS = {"features": (sites.FEATURES[0], WARD), "model": "logit", "holdout": 0.0}
STEPS = SumsTerms(most_rows=300, most_rows_in_all=900, steps=8)


@pytest.fixture
def stepping(make):
    return make(**FIELDS, sums=STEPS)


def test_a_step_is_of_the_rows_and_parties_of_the_first(stepping):
    stepping.step()
    for change in (
        lambda table: table.head(140),
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
    assert made.message.exchange == 2
    assert "two-way table" in report["S3"].words
    assert report["S1"].grade == "red"  # 150 rows, eight steps of four numbers
    made = stepping.send("north")
    again = stepping.send("north")
    assert (again.again, again.digest) == (True, made.digest)
    with pytest.raises(ReplayError, match="is of exchange 1"):
        stepping.accept("north", number=1)


def test_rows_that_determine_nothing_end_without_a_return(make):
    sums = STEPS.model_copy(update={"steps": 2})
    site = make(**FIELDS, sums=sums)
    apart = lambda table: table.with_columns(died=(pl.col("age") > 0).cast(int))  # noqa: E731
    assert site.step(change=apart).table is None
    with pytest.raises(EstimateError, match="separation"):
        site.step(change=apart)
    assert not [*(site.root / "outbox").glob("*.2-return")]
