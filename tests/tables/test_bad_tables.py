"""Tables that are not what they should be: one clear error, and no upload."""

import csv
import os

import numpy as np
import polars as pl
import pytest

from cobasis.errors import (
    DimensionError,
    DiskError,
    DtypeError,
    FeatureError,
    FileChangedError,
    LabelError,
    NotFiniteError,
    OptionError,
    ShapeError,
    StepError,
    TableError,
)
from cobasis.tables import open_table
from cobasis.tables.sources import source_of
from tables.parties import frame, site, uploaded

N_ROWS = 3_000


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr("cobasis.tables.table.BLOCK_CELLS", 1)


def attempt(table, folder, *, labels="died", expected, match, where=None, **options):
    """The error is raised, its code is in the message, and nothing is left of an upload."""
    north = where or site()
    party, to = north.party(), folder / "out" / "north.safetensors"
    to.parent.mkdir(exist_ok=True)
    with pytest.raises(expected, match=match) as raised:
        uploaded(party, table, labels=labels, to=to, **options)
    assert f"[{expected.code}]" in str(raised.value)
    assert not [path for path in to.parent.iterdir() if path.suffix in {".safetensors", ".part"}]
    with pytest.raises(StepError):
        _ = party.basis
    return str(raised.value)


@pytest.mark.parametrize(
    ("change", "expected", "match"),
    [
        (lambda t: t.drop("x2", "x4"), FeatureError, "party 'north'.*missing 'x2', 'x4'"),
        (lambda t: t.drop("died"), LabelError, "no column 'died'"),
        (lambda t: t.head(0), ShapeError, "party 'north' is empty: 0 rows"),
        (lambda t: t.head(2), DimensionError, "2 rows for n_components=3"),
        (
            lambda t: t.with_columns(x1=pl.lit("high"), x3=pl.lit(1).cast(pl.Decimal(9, 2))),
            DtypeError,
            r"no numbers: 'x1' \(String, the first text in row 1 below.*\), 'x3' \(Decimal.*\)",
        ),
        (lambda t: t.with_columns(x1=pl.lit(2**60)), DtypeError, "'x1'.*above 2\\*\\*53"),
        (lambda t: t.with_columns(x1=pl.lit(None, pl.Int64)), NotFiniteError, "3,000 cells"),
        (
            lambda t: t.with_columns(
                x1=pl.when(pl.int_range(pl.len()) == 2_000).then(None).otherwise(pl.col("x1") > 0)
            ),
            NotFiniteError,
            r"'x1' \(1 cells\)",
        ),
        (lambda t: t.with_columns(pl.col("died").cast(pl.Date)), DtypeError, "type Date in column"),
        (lambda t: t.with_columns(died=pl.lit(2)), LabelError, "none of the 2 agreed classes"),
        (lambda t: t.with_columns(died=pl.lit("yes")), LabelError, "are integers"),
        (lambda t: t.with_columns(died=pl.lit(None, pl.Int64)), LabelError, "in 3,000 of 3,000"),
        (lambda t: t.with_columns(x1=pl.col("x1") * 1e60), NotFiniteError, r"above 1e\+50"),
        (lambda t: t.select("died", *[pl.col("x0").alias(f"x{i}") for i in range(7)]),
         DimensionError, "too few independent rows"),
        *(
            (lambda t, dtype=dtype: t.with_columns(x1=pl.lit(1).cast(dtype)), DtypeError,
             rf"no numbers: 'x1' \({dtype}\)")
            for dtype in (pl.Int128, pl.UInt128)
        ),
        (lambda t: t.with_columns(pl.col("died").cast(pl.Int128)), DtypeError,
         "labels of type Int128 in column 'died'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_a_table_that_is_not_the_agreements_is_refused(change, expected, match, kind, tmp_path):
    table = change(frame(N_ROWS))
    if kind == "parquet":
        table.write_parquet(tmp_path / "icu.parquet")
        table = tmp_path / "icu.parquet"
    attempt(table, tmp_path, expected=expected, match=match)


@pytest.mark.parametrize("cell", [2**53 + 1, -(2**60)])
def test_integers_that_a_csv_file_would_lose_are_refused(cell, tmp_path):
    """2**53 + 1 is read as 2**53, so that cannot be told from it."""
    x1 = pl.when(pl.int_range(pl.len()) == 2_000).then(cell).otherwise(7)
    frame(N_ROWS).with_columns(x1=x1).write_csv(tmp_path / "icu.csv")
    match = "'x1' of the table 'icu.csv'.*above 2\\*\\*53"
    attempt(tmp_path / "icu.csv", tmp_path, expected=DtypeError, match=match)


@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_a_schema_that_cannot_be_read_any_more_is_a_table_error(kind, tmp_path, monkeypatch):
    """Whenever it is asked for: when parts are cut, and when missing cells are counted."""
    table = frame(N_ROWS).with_columns(x1=pl.lit(float("nan")))
    if kind == "parquet":
        table.write_parquet(tmp_path / "icu.parquet")
        table = tmp_path / "icu.parquet"
    rows = open_table(table, agreement=site().agreement, party="north")

    def gone(_):
        msg = "a schema with a secret in it"
        raise pl.exceptions.ComputeError(msg)

    monkeypatch.setattr(pl.LazyFrame, "collect_schema", gone)
    with pytest.raises(TableError, match="ComputeError") as raised:
        list(rows.over(lambda _, blocks: list(blocks), step=""))
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("kind", ["itself", "roundabout", "link", "hard link"])
def test_an_upload_never_takes_the_tables_place(kind, tmp_path):
    path, other = tmp_path / "icu.parquet", tmp_path / "out.parquet"
    frame(N_ROWS).write_parquet(path)
    before = path.read_bytes()
    if kind == "link":
        other.symlink_to(path)
    elif kind == "hard link":
        other.hardlink_to(path)
    elif kind == "roundabout":
        (tmp_path / "sub").mkdir()
    ways = {"itself": path, "roundabout": tmp_path / "sub" / ".." / "icu.parquet"}
    with pytest.raises(OptionError, match=r"the name of a table.*\[CB107\]"):
        uploaded(site().party(), str(path), labels="died", to=ways.get(kind, other))
    assert path.read_bytes() == before
    assert {each.suffix for each in tmp_path.iterdir()} <= {".parquet", ""}


def test_missing_numbers_are_counted_by_column_over_the_whole_table(tmp_path):
    """One NaN in the first part, two empty cells in the last, and no value in the message."""
    x1 = pl.when(pl.int_range(pl.len()) == 3).then(float("nan")).otherwise(pl.col("x1"))
    x4 = pl.when(pl.int_range(pl.len()) > N_ROWS - 3).then(None).otherwise(pl.col("x4"))
    frame(N_ROWS).with_columns(x1=x1, x4=x4).write_parquet(tmp_path / "icu.parquet")
    attempt(
        tmp_path / "icu.parquet",
        tmp_path,
        expected=NotFiniteError,
        match=r"'icu.parquet' of party 'north'.* 'x1' \(1 cells\), 'x4' \(2 cells\) of 3,000 rows",
    )


def test_missing_numbers_are_found_without_a_first_pass_too(tmp_path):
    table, where = frame(N_ROWS).with_columns(x1=pl.lit(float("inf"))), site(basis="haar")
    attempt(table, tmp_path, expected=NotFiniteError, match="3,000 cells", where=where)


def test_labels_that_are_left_out_or_not_finite_are_refused(tmp_path):
    attempt(frame(N_ROWS), tmp_path, labels=None, expected=LabelError, match="gave no labels")
    table = frame(N_ROWS).with_columns(stay=pl.lit(float("nan")))
    where = site(task="regression", classes=())
    attempt(table, tmp_path, labels="stay", expected=LabelError, match="finite real", where=where)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_truncated_parquet_file_is_refused(share, tmp_path):
    path = tmp_path / "icu.parquet"
    frame(N_ROWS).write_parquet(path)
    os.truncate(path, int(path.stat().st_size * share))
    attempt(path, tmp_path, expected=TableError, match="'icu.parquet'.*no whole Parquet file")


def test_a_parquet_file_with_damage_inside_is_refused(tmp_path):
    """The footer is whole, so that only reading the rows shows it."""
    path = tmp_path / "icu.parquet"
    frame(N_ROWS).write_parquet(path, row_group_size=500)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = bytes(2000)
    path.write_bytes(data)
    attempt(path, tmp_path, expected=TableError, match="no whole Parquet file")


RAGGED = "'icu.csv'.*line 1235 has another number"
LINES = {
    "a cell too many": (lambda line: f"{line},7", RAGGED),
    "a cell too few": (lambda line: line.rpartition(",")[0], RAGGED),
    "no cell": (lambda _: "", RAGGED),
    "a word": (
        lambda line: ",".join([line.partition(",")[0], "secretword", *line.split(",")[2:]]),
        "in row 1,234 below the names, column 'ward' has text",
    ),
}


@pytest.mark.parametrize("what", LINES)
def test_a_bad_line_far_down_a_csv_file_is_named_and_not_shown(what, tmp_path, monkeypatch):
    (change, match), path = LINES[what], tmp_path / "icu.csv"
    monkeypatch.setattr("cobasis.tables.sources.INFERRED_ROWS", 100)
    table = frame(N_ROWS).with_columns(ward=pl.lit(1))
    table.select("died", "ward", *[f"x{i}" for i in range(7)]).write_csv(path)
    lines = path.read_text().splitlines()
    lines[1234] = change(lines[1234])
    path.write_text("\n".join(lines))
    assert "secretword" not in attempt(path, tmp_path, expected=TableError, match=match)


def test_a_file_without_a_byte_is_said_to_be_empty(tmp_path):
    (tmp_path / "icu.csv").touch()
    match = "'icu.csv'.*not even a line of column names"
    attempt(tmp_path / "icu.csv", tmp_path, expected=TableError, match=match)


def test_lines_are_counted_through_once_and_those_of_a_changed_file_again(tmp_path, monkeypatch):
    path = tmp_path / "icu.csv"
    path.write_text("a,b\n1,2\n3,\n")  # an empty last cell, which a short line would be read as
    counted = []
    reader = csv.reader
    monkeypatch.setattr(csv, "reader", lambda file: counted.append(file.name) or reader(file))
    source = source_of(path, party="icu")
    for _ in range(3):
        assert source.collect(pl.col("a").sum()).item() == 4
    assert len(counted) == 1
    path.write_text("a,b\n1,2\n3,\n4\n")
    with pytest.raises(TableError, match="line 4 has another number"):
        source_of(path, party="icu").collect(pl.col("a").sum())
    assert len(counted) == 2


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "icu.xlsx").write_bytes(b"")
    attempt(tmp_path / "icu.xlsx", tmp_path, expected=OptionError, match="ends in '.xlsx'")
    attempt(tmp_path / "none.csv", tmp_path, expected=DiskError, match="cannot be read: No such")
    rows = np.zeros((3, 7))
    attempt(rows, tmp_path, expected=OptionError, match="ndarray.*prepare")


@pytest.mark.parametrize("step", ["reading rows for the basis", "projecting rows"])
def test_a_file_that_changes_under_way_is_refused(step, tmp_path):
    path = tmp_path / "icu.csv"
    frame(N_ROWS).write_csv(path)

    def grow(current, done, total):
        if current == step and done == total:
            with path.open("a") as file:
                file.write("0,1,1,1,1,1,1,1,0,east,1\n")

    attempt(path, tmp_path, expected=FileChangedError, match="changed while it was", report=grow)


def test_a_frame_that_gives_other_rows_the_second_time_is_refused(tmp_path):
    heights = iter([N_ROWS, N_ROWS, N_ROWS - 1, N_ROWS - 1])
    table = frame(N_ROWS)

    def shrinking(_):
        return table.head(next(heights))

    lazy = table.lazy().map_batches(shrinking, schema=table.schema)
    attempt(lazy, tmp_path, expected=TableError, match="had 3,000 rows and now has 2,999")


def test_a_disk_that_fills_up_leaves_no_upload(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    attempt(frame(N_ROWS), tmp_path, expected=DiskError, match="No space left on device")
