"""`check_table`: a party's file held against the agreement, all findings at once."""

import polars as pl
import pytest

from cobasis.errors import TableError
from cobasis.tables import check_table
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
