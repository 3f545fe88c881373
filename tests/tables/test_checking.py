from datetime import date, datetime

import polars as pl
import pytest

from cobasis.errors import TableError
from cobasis.features.contract import CategoryFeature, NumericFeature, numeric_features
from cobasis.features.mapping import Mapping
from cobasis.tables import check_table, open_table
from cobasis.tables.cells import AgreedColumns
from cobasis.tables.sources import source_of
from tables.parties import kept, ward_frame, ward_site

KINDS = ["parquet", "csv", "frame", "lazy"]


def told(table, **changes):
    """What is found; progress goes to the last row."""
    agreement, seen = ward_site(**changes).agreement, []
    report = {"report": lambda *step: seen.append(step)}
    found = check_table(table, agreement=agreement, party="north", **report)
    assert seen[-1:] in ([], [("checking rows", found.n_rows, found.n_rows)])
    return found


def refused(checked):
    return {(each.column, each.problem): each.n_rows for each in checked.findings if each.refused}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_as_agreed_fits_and_is_told_what_is_filled(kind, tmp_path):
    table = ward_frame(1_000)
    found = told(kept(kind, table, tmp_path))
    assert found.fits
    assert found.n_rows == 1_000
    assert {(each.column, each.problem): each.n_rows for each in found.findings} == {
        ("ward", "missing"): table["ward"].null_count(),
        ("ward", "vocabulary"): (table["ward"] == "hall").sum(),
        ("lactate", "missing"): table["lactate"].null_count(),
        ("pulse", "missing"): table["pulse"].null_count(),
        ("note", "unused"): None,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_wrong_is_told_at_once(kind, tmp_path):
    row = pl.int_range(pl.len())
    table = (
        ward_frame(1_000)
        .with_columns(
            age=pl.when(row < 3).then(200.0).otherwise(pl.col("age")),
            sex=pl.when(row > 990).then(pl.lit("unknown")).otherwise(pl.col("sex")),
            died=pl.when(row == 7).then(5).when(row == 8).then(None).otherwise(pl.col("died")),
            pulse=pl.lit("fast"),
        )
        .drop("lactate", "patient")
    )
    found = told(kept(kind, table, tmp_path))
    assert not found.fits
    assert refused(found) == {
        ("age", "range"): 3,
        ("sex", "vocabulary"): 9,
        ("died", "vocabulary"): 1,
        ("died", "missing"): 1,
        ("pulse", "type"): None,
        ("lactate", "absent"): None,
        ("patient", "absent"): None,
    }


NUMBER, DAYS = NumericFeature(name="x"), NumericFeature(name="x", unit="days since 2026-01-01")
CODE = CategoryFeature(name="x", values=("7",), unknown="other", missing="level")
# half past midnight in Berlin is the day before in UTC, by which a file keeps times
ZONED = pl.Series([datetime(2026, 1, 3, 0, 30)]).dt.replace_time_zone("Europe/Berlin")  # noqa: DTZ001 -- it gets one
FAR, NEAR = [date(2026, 1, 3), date(1900, 1, 1)], [date(2026, 1, 1), date(2025, 12, 23)]
MAPPED = [  # cells, the feature, steps of a mapping, what they become; from any file unless named
    ([20.0, -9.0, 999.5], NUMBER, 'blanks = ["-9", "999,50"], factor = 2', [40.0, None, None], ""),
    (["20", "-9.0", "no"], NUMBER, 'blanks = ["-9", "no"], factor = 2', [40.0, None, None], "csv"),
    ([20.0, 30.0], NUMBER, 'blanks = ["20,000"]', [20.0, 30.0], ""),
    ([7.0, -9.0], CODE, 'blanks = ["-9"]', ["7", None], ""),
    (FAR, NUMBER, 'blanks = ["1900-01-01"], days_since = 2026-01-01', [2.0, None], ""),
    # a day that is so many days away is not the number that stands for none
    (NEAR, NUMBER, 'blanks = ["0", "-9"], days_since = 2026-01-01, factor = 2', [0.0, -18.0], ""),
    # integers are not rounded to look for it, and single precision has no 99.9
    ([2**53 + 1, -9], NUMBER, 'blanks = ["-9"]', [2**53 + 1, None], "parquet"),
    (pl.Series([0.5, 99.9], dtype=pl.Float32), NUMBER, 'blanks = ["99.9"]', [0.5, None], "parquet"),
    (ZONED, DAYS, "", [2.0], "parquet"),
]


@pytest.mark.parametrize("case", MAPPED, ids=str)
def test_a_column_becomes_what_is_agreed(case, tmp_path):
    cells, feature, steps, expected, only = case
    mapping = Mapping.of_toml(f"x = {{ {steps} }}", what="map")
    for kind in [only] if only else ["parquet", "csv"]:
        path = kept(kind, pl.DataFrame({"x": cells}), tmp_path)
        read = source_of(path, party="north", features=(feature,), mapping=mapping).frame
        assert read.collect()["x"].to_list() == expected


def test_booleans_beside_semicolons_are_numbers(tmp_path):
    (tmp_path / "icu.csv").write_text("smokes;age\ntrue;61,5\nfalse;70\n")
    features = (NumericFeature(name="smokes"), NumericFeature(name="age"))
    found = source_of(tmp_path / "icu.csv", party="north", features=features).frame.collect()
    assert found["smokes"].to_list() == [True, False]
    assert found["age"].to_list() == [61.5, 70.0]


@pytest.mark.parametrize("cell", ["2020", "20200131", "1.2", "31.12.20"])
def test_what_is_no_day_among_days_is_no_number_of_days(cell, tmp_path):
    (tmp_path / "icu.csv").write_text(f"seen\n{cell}\n31.12.2020\nNA\n")
    days = (NumericFeature(name="seen", unit="days since 2020-12-01"),)
    for lenient, expected in ((False, [cell, None, None]), (True, [float("inf"), 30.0, None])):
        source = source_of(tmp_path / "icu.csv", party="north", features=days, lenient=lenient)
        assert source.frame.collect()["seen"].to_list() == expected


def test_a_column_of_an_agreed_name_or_a_mapped_one_is_no_other_agreed_columns():
    def own(names, found, **mapped):
        steps = {name: {"column": column} for name, column in mapped.items()}
        told = {"mapping": Mapping(steps), "lenient": False, "what": "the table", "dialect": None}
        return AgreedColumns(features=numeric_features(names), **told).own(found)

    assert own(["Age", "age"], ["Age"]) == own(["age", "Age"], ["Age"]) == {"Age": "Age"}
    assert own(["age", "years"], ["Age"], years="Age") == {"years": "Age"}
    assert own(["age", "Age"], ["Age", "x"], Age="x") == {"age": "Age", "Age": "x"}
    assert own(["age"], ["Age", "AGE"]) == {}
    with pytest.raises(TableError, match="no column 'years', which your mapping takes for 'age'"):
        own(["age"], ["age"], age="years")  # which may be in another unit


@pytest.mark.parametrize("died", [True, 1, 1.0, "1"])
def test_labels_that_fit_are_read(died, tmp_path):
    classes = ("true", "no") if died is True else ("1", "0")
    agreement = ward_site(classes=classes).agreement
    path = kept("parquet", ward_frame(20).with_columns(died=pl.lit(died)), tmp_path)
    assert check_table(path, agreement=agreement, party="north").fits
    assert not open_table(path, agreement=agreement, party="north").labels().any()


def test_labels_are_held_against_the_classes_type_and_a_table_may_lack_everything():
    table = ward_frame(100)
    assert told(table.with_columns(pl.col("died").cast(pl.Float64))).fits  # 1.0 is 1
    halves = told(table.with_columns(died=pl.col("died") / 2))
    assert {problem for _, problem in refused(halves)} <= {"vocabulary"}
    assert told(table, task="regression", classes=()).fits
    assert refused(told(table, classes=("no", "yes"))) == {("died", "vocabulary"): 100}
    found = told(pl.DataFrame({"x": [1, 2]}))
    assert {problem for _, problem in refused(found)} == {"absent"}
    assert ("died", "absent") in refused(found)
    assert found.n_rows == 2
    assert told(table.head(0)).n_rows == 0
