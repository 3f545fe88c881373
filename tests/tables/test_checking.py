"""`check_table`: a party's file held against the agreement, all findings at once."""

from datetime import date, datetime

import polars as pl
import pytest

from cobasis.errors import TableError
from cobasis.features.contract import CategoryFeature, NumericFeature
from cobasis.features.mapping import Mapping
from cobasis.tables import check_table, open_table
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


MAPPED = """
age = { blanks = ["-9", "999,50", "20,000", "not done"], factor = 2 }
ward = { blanks = ["-9"] }
seen = { blanks = ["1900-01-01"], days_since = 2026-01-01 }
"""


@pytest.mark.parametrize(("kind", "text"), [("parquet", False), ("csv", False), ("csv", True)])
def test_a_number_that_stands_for_no_value_is_none_however_its_column_is_read(kind, text, tmp_path):
    table = pl.DataFrame(
        {
            "age": [20.0, -9.0, 999.5, 40.0],
            "ward": [7.0, -9.0, 7.0, -9.0],
            "seen": [date(2026, 1, 3), date(1900, 1, 1)] * 2,
        }
    )
    if text:
        table = table.with_columns(age=pl.Series(["20", "-9.0", "999.50", "not done"]))
    features = (
        NumericFeature(name="age"),
        CategoryFeature(name="ward", values=("7",), unknown="other", missing="level"),
        NumericFeature(name="seen"),
    )
    path, mapping = kept(kind, table, tmp_path), Mapping.of_toml(MAPPED, what="map")
    found = source_of(path, party="north", features=features, mapping=mapping).frame.collect()
    last = None if text else 80.0
    assert found["age"].to_list() == [40.0, None, None, last]
    assert found["ward"].to_list() == ["7", None, "7", None]
    assert found["seen"].to_list() == [2.0, None, 2.0, None]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_day_that_is_so_many_days_away_is_not_the_number_that_stands_for_none(kind, tmp_path):
    table = pl.DataFrame({"seen": [date(2026, 1, 1), date(2026, 1, 3), date(2025, 12, 23)]})
    path, features = kept(kind, table, tmp_path), (NumericFeature(name="seen"),)
    words = 'seen = { blanks = ["0", "-9"], days_since = 2026-01-01, factor = 0.5 }'
    mapping = Mapping.of_toml(words, what="map")
    found = source_of(path, party="north", features=features, mapping=mapping).frame.collect()
    assert found["seen"].to_list() == [0.0, 1.0, -4.5]


@pytest.mark.parametrize(("kind", "number"), [(pl.Int64, 2**53 + 1), (pl.Float32, 0.5)])
def test_what_stands_for_none_is_told_by_the_digits_that_a_column_has(kind, number, tmp_path):
    """Single precision has no 99.9; and integers are not rounded to look for it."""
    blank = {pl.Int64: -9, pl.Float32: 99.9}[kind]
    table = pl.DataFrame({"age": pl.Series([number, blank], dtype=kind)})
    mapping = Mapping.of_toml(f'age = {{ blanks = ["{blank}"] }}', what="map")
    told = {"party": "north", "features": (NumericFeature(name="age"),), "mapping": mapping}
    found = source_of(kept("parquet", table, tmp_path), **told).frame.collect()
    assert found["age"].to_list() == [number, None]


def test_booleans_beside_semicolons_are_numbers(tmp_path):
    (tmp_path / "icu.csv").write_text("smokes;age\ntrue;61,5\nfalse;70\n")
    features = (NumericFeature(name="smokes"), NumericFeature(name="age"))
    found = source_of(tmp_path / "icu.csv", party="north", features=features).frame.collect()
    assert found["smokes"].to_list() == [True, False]
    assert found["age"].to_list() == [61.5, 70.0]


def test_the_day_of_a_time_is_that_of_its_zone(tmp_path):
    """Half past midnight in Berlin is the day before in UTC, by which a file keeps times."""
    seen = pl.Series([datetime(2026, 1, 3, 0, 30)]).dt.replace_time_zone("Europe/Berlin")  # noqa: DTZ001 -- it gets one
    path = kept("parquet", pl.DataFrame({"seen": seen}), tmp_path)
    features = (NumericFeature(name="seen", unit="days since 2026-01-01"),)
    source = source_of(path, party="north", features=features)
    assert source.frame.collect()["seen"].to_list() == [2.0]


@pytest.mark.parametrize("cell", ["2020", "20200131", "1.2", "31.12.20"])
def test_what_is_no_day_among_days_is_no_number_of_days(cell, tmp_path):
    (tmp_path / "icu.csv").write_text(f"seen\n{cell}\n31.12.2020\nNA\n")
    told = {
        "party": "north",
        "features": (NumericFeature(name="seen", unit="days since 2020-12-01"),),
    }
    read = [source_of(tmp_path / "icu.csv", **told, lenient=each).frame for each in (False, True)]
    assert [each.collect()["seen"].to_list() for each in read] == [
        [cell, None, None],
        [float("inf"), 30.0, None],
    ]


def test_a_mapping_to_a_column_that_is_not_there_stops(tmp_path):
    """The table's own column of the agreed name may be in another unit."""
    path, mapping = kept("csv", ward_frame(20), tmp_path), Mapping().adding("age", column="years")
    with pytest.raises(TableError, match="no column 'years', which your mapping takes for 'age'"):
        check_table(path, agreement=ward_site().agreement, party="north", mapping=mapping)


@pytest.mark.parametrize("died", [True, 1, 1.0, "1"])
def test_labels_that_fit_are_read(died, tmp_path):
    classes = ("true", "no") if died is True else ("1", "0")
    table, agreement = (
        ward_frame(20).with_columns(died=pl.lit(died)),
        ward_site(classes=classes).agreement,
    )
    path = kept("parquet", table, tmp_path)
    assert check_table(path, agreement=agreement, party="north").fits
    assert not open_table(path, agreement=agreement, party="north").labels().any()


def test_labels_are_held_against_the_classes_type_and_a_table_may_lack_everything(tmp_path):
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
    path = tmp_path / "icu.parquet"
    path.write_bytes(b"")
    with pytest.raises(TableError, match="no whole Parquet file"):
        told(path)
