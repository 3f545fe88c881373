"""A baseline table by files: the same at every party, and the next agreement is made of it."""

import polars as pl
import pytest

from cobasis import Mixed, NumericFeature, SumsTerms
from cobasis.bundle.messages import enclose
from cobasis.cli.questions import asked
from cobasis.errors import AgreementError, BundleError, DifferenceError, MessageError, OptionError
from cobasis.features.outcome import Outcome
from cobasis.report.table import rows_of, small_cells, write_table
from party_side.sites import FEATURES

COUNTED = (
    *(
        each.model_copy(update={"low": -20.0, "high": 20.0, "fill": -60.0})
        for each in FEATURES[:-1]
    ),
    FEATURES[-1],
)
FIELDS = {
    "task": "table",
    "model": None,
    "features": COUNTED,
    "sums": SumsTerms(n_bins=40, most_rows=200, most_rows_in_all=800),
}


@pytest.fixture
def counting(make):
    return make(**FIELDS)


def test_ones_own_small_cells_are_counted_before_anything_leaves(counting):
    looked, report = counting.looked()
    assert report.about["n_features"] == len(looked.message.words)  # those of each group
    assert report["S3"].grade == "amber"
    assert "interval of time, if any is agreed on" in report["S3"].words
    assert report["S3"].figures["small_cells"] == looked.party.small_cells > 0


def test_a_model_may_follow_a_table_without_label_or_with_classes_in_another_order(make):
    make(**{**FIELDS, "label": "", "classes": ()}).send()
    make(round_id="icu-2027", classes=(1, 0)).send()
    last = make(round_id="icu-2028")
    with pytest.raises(DifferenceError, match="labels of the same rows changed"):
        last.send("north", change=lambda frame: frame.with_columns(died=1 - pl.col("died")))
    last.send("north")


def test_times_that_changed_since_an_earlier_table_are_refused(make):
    def timed(frame, later=0):
        return frame.with_columns(days=1 + later + pl.int_range(pl.len()) % 70, dead=pl.lit(1))

    fields = {**FIELDS, "outcome": Outcome(time="days", event="dead", grid=(30.0, 60.0))}
    make(**fields).send(change=timed)
    with pytest.raises(DifferenceError, match="labels of the same rows changed"):
        make(round_id="icu-2027", **fields).send("north", change=lambda x: timed(x, later=1))


def test_a_return_with_a_wrong_total_or_none_is_refused(counting, monkeypatch):
    counting.sent()
    with pytest.raises(AgreementError, match="none, since task='table' trains no model"):
        counting.run(model="logistic")
    wrong = {"none": None, "short": slice(0, 4), "impossible": slice(None)}
    for kind, part in wrong.items():

        def enclosed(returned, kind=kind, part=part, **more):
            total = None if part is None else returned.total[part] + (kind == "impossible")
            object.__setattr__(returned, "total", total)
            return enclose(returned, **more)

        monkeypatch.setattr("cobasis.analyst_side.returns.enclose", enclosed)
        counting.run(anew=True)
        with pytest.raises((BundleError, MessageError)):
            counting.accept()
        assert counting.session("north").round.accepted() is None


def test_a_table_is_written_and_the_next_agreement_takes_scales_and_knots_from_it(
    counting, tmp_path
):
    table = counting.step().table
    page, folder = write_table(table, tmp_path / "table").read_text(), tmp_path / "table"
    csv = pl.read_csv(folder / "table.csv")
    assert csv.columns[1:] == ["all", "0", "1", "difference"]
    assert len(csv) + 1 == len([*rows_of(table)])
    assert f"{small_cells(table)} cells or bins" in page
    assert "http" not in page
    told = {"from_sums": folder, "task": "classification", "label": "died", "id": "patient"}
    told |= {"classes": "0,1", "purpose": "study", "leave_out": "weight"}
    told |= {"sums": "maps=mixed,waves=10,most_rows=200,most_rows_in_all=800"}
    fields = asked(told, 4)
    assert fields["minimum_parties"] == 4
    age, *_, ward = fields["features"]
    found = table.columns[0]
    assert isinstance(age, NumericFeature)
    assert age.centre == pytest.approx(found.means[0], rel=1e-2, abs=1e-3)
    assert age.scale == pytest.approx(found.deviations[0], rel=1e-2)
    assert (age.low, age.high) == (-20.0, 20.0)
    assert age.missing == "refuse"  # the table has no blanks
    assert ward.values == ("icu", "surgery")
    assert "weight" not in {each.name for each in fields["features"]}
    [mixed] = fields["sums"].maps
    assert isinstance(mixed, Mixed)
    middle = mixed.knots[0][16] * age.scale + age.centre
    assert middle == pytest.approx(found.quantile(0.5), abs=1.0)
    with pytest.raises(OptionError, match="is no baseline table"):
        asked({**told, "from_sums": tmp_path / "nowhere"}, 4)
