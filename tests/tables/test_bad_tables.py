import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cobasis import numeric_features
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
from cobasis.linalg.arrays import gathered
from cobasis.tables import open_table
from cobasis.tables.sources import source_of
from tables.parties import frame, kept, site, uploaded

N_ROWS = 3_000


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


def with_(**columns):
    return lambda table: table.with_columns(**columns)


def where(rows, cell, name):
    return pl.when(rows).then(cell).otherwise(pl.col(name))


ROW = pl.int_range(pl.len())
REFUSED = [
    (lambda t: t.drop("x2", "x4"), FeatureError, "party 'north'.*missing: 'x2', 'x4'"),
    (lambda t: t.drop("died"), LabelError, "no column 'died'"),
    (lambda t: t.head(0), ShapeError, "party 'north' is empty: 0 rows"),
    (lambda t: t.head(2), DimensionError, r"2 row\(s\) for n_components=3"),
    (with_(x1=pl.lit("high")), DtypeError, "'x1' of .*of type String"),
    (with_(x1=pl.lit(None, pl.Int64)), NotFiniteError, "in 'x1'"),
    (with_(x1=where(ROW == 2_000, None, "x1") > 0), NotFiniteError, "in 'x1', so"),
    (
        with_(x1=where(ROW == 3, float("nan"), "x1"), x4=where(ROW == 200, None, "x4")),
        NotFiniteError,
        "party 'north'.* in 'x1', 'x4', so",
    ),
    (with_(x1=pl.col("x1") * 1e60), NotFiniteError, r"above 1e\+50"),
    (with_(died=pl.col("died").cast(pl.Date)), DtypeError, "has labels of type Date"),
    (with_(died=pl.lit(2)), LabelError, "none of the 2 agreed classes"),
    (with_(died=pl.lit("yes")), LabelError, "are integers"),
    (with_(died=pl.lit(None, pl.Int64)), LabelError, "rows without a label"),
]


@pytest.mark.parametrize(("change", "expected", "match"), REFUSED)
@pytest.mark.parametrize("kind", ["frame", "parquet"])
def test_a_table_that_is_not_the_agreements_is_refused(change, expected, match, kind, tmp_path):
    table = kept(kind, change(frame(N_ROWS)), tmp_path)
    attempt(table, tmp_path, expected=expected, match=match)


def test_what_is_left_out_not_finite_or_no_table_is_refused_by_any_basis(tmp_path):
    gone, numbers = pl.lit(float("nan")), site(task="regression", classes=())
    table = frame(N_ROWS).with_columns(stay=gone, x1=pl.lit(float("inf")))
    attempt(frame(N_ROWS), tmp_path, labels=None, expected=LabelError, match="are missing")
    attempt(table, tmp_path, labels="stay", expected=LabelError, match="finite", where=numbers)
    haar = site(basis="haar")
    attempt(table, tmp_path, expected=NotFiniteError, match="in 'x1'", where=haar)
    things = frame(N_ROWS).with_columns(died=pl.Series([{}] * N_ROWS, dtype=pl.Object))
    attempt(things, tmp_path, expected=DtypeError, match="has labels of type Object")
    attempt(tmp_path / "none.csv", tmp_path, expected=DiskError, match="cannot be read: No such")
    for table, match in (
        (np.zeros((3, 7)), "ndarray.*prepare"),
        (tmp_path, "is a folder, and"),
        (tmp_path / "a.xlsx", "in '.xlsx'"),
    ):
        attempt(table, tmp_path, expected=OptionError, match=match)


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("cell", [2**53 + 1, -(2**60)])
def test_integers_that_a_csv_file_would_lose_are_refused(cell, separator, tmp_path):
    """2**53 + 1 is read as 2**53, so that cannot be told from it."""
    x1 = pl.when(pl.int_range(pl.len()) == 2_000).then(cell).otherwise(7)
    frame(N_ROWS).with_columns(x1=x1).write_csv(tmp_path / "icu.csv", separator=separator)
    match = "'x1' of the table 'icu.csv'.*above 2\\*\\*53"
    attempt(tmp_path / "icu.csv", tmp_path, expected=DtypeError, match=match)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(",", ";").encode(),
        lambda text: text.replace(",", ";").replace(".", ",").encode(),
        lambda text: "\ufeff" + text.replace(",", "\t"),
        lambda text: text.replace("east", "\xf6st").encode("latin-1"),
        lambda text: text.replace("x1", "X1 "),
        lambda text: text.replace(",", ";").replace("\n", "\r\n"),
        lambda text: re.sub(r",(-?[0-9]+)\.([0-9]+)", r',"\1,\2"', text),
    ],
)
def test_what_spreadsheet_programs_also_call_csv_is_read_as_the_same_table(change, tmp_path):
    given, text = tmp_path / "icu.csv", frame(30).write_csv()
    changed = change(text)
    given.write_bytes(changed.encode() if isinstance(changed, str) else changed)
    (tmp_path / "plain.csv").write_text(text)
    for agreement in (site().agreement, site(task="regression", classes=()).agreement):
        label = "stay" if agreement.task == "regression" else "died"
        one, two = (
            open_table(path, agreement=agreement, party="north", labels=label)
            for path in (given, tmp_path / "plain.csv")
        )
        assert np.array_equal(gathered(one), gathered(two))
        assert np.array_equal(one.labels(), two.labels())


@pytest.mark.parametrize("parted", [",", ";"])
@pytest.mark.parametrize(
    ("first", "last", "value"),
    [("99.5", "1.234", 1.234), ("999", "7", 7), ("99.5", "", None), ("99.5", "NA", None)],
)
def test_numbers_are_read_as_text_only_where_it_is_needed(first, last, value, parted, tmp_path):
    lines = [f"x{parted}y", *[f"{first}{parted}0"] * 20_000, f"{last}{parted}1"]
    (tmp_path / "icu.csv").write_text("\n".join(lines))
    found = source_of(tmp_path / "icu.csv", party="north", features=numeric_features("x")).frame
    assert found.select("x").tail(1).collect().item() == value
    assert ("strip_chars" in found.explain()) == (last == "NA" or parted == ";")


def test_an_upload_never_takes_the_tables_place(tmp_path):
    path = kept("parquet", frame(N_ROWS), tmp_path)
    before = path.read_bytes()
    with pytest.raises(OptionError, match=r"the name of a table.*\[CB107\]"):
        uploaded(site().party(), path, labels="died", to=path)
    assert path.read_bytes() == before


def damaged(data):
    """With damage that only reading the rows shows: the footer is whole."""
    middle = len(data) // 2
    return data[:middle] + bytes(2000) + data[middle + 2000 :]


def semicolons(first, last):
    """A column whose last cell alone shows what its marks are, or that they are unclear."""
    return lambda _: "x1;died\n" + f"{first};0\n" * 20_000 + f"{last};1\n"


def tenth(change):
    def changed(text):
        lines = text.splitlines()
        return "\n".join([*lines[:9], change(lines[9]), *lines[10:]])

    return changed


UNREADABLE = {  # what a CSV file's text, or a Parquet file's bytes, become
    "no names": (lambda text: text.partition("\n")[2], "numbers in its first"),
    "names twice": (lambda text: text.partition("\n")[0] + "\n" + text, "names its columns twice"),
    "two separators": (lambda text: text.replace("x2,x1", "x2;x1"), "several separators in its"),
    "mixed separators": (lambda text: text.replace(",", ";").replace("0;e", "0,e"), "line [0-9]+"),
    "a cell too many": (tenth(lambda line: f"{line},7"), "line 10 has another number of fields"),
    "a cell too few": (tenth(lambda line: line.rpartition(",")[0]), "line 10 has another number"),
    "no cell": (tenth(lambda _: ""), "line 10 is empty"),
    "separators alone": (tenth(lambda line: "," * line.count(",")), "line 10 is empty"),
    "two people in a line": (tenth(lambda line: f"{line}\r{line}"), "line 10 has a carriage ret"),
    "lines of an old Mac": (lambda text: text.replace("\n", "\r"), "line 1 has a carriage return"),
    "thousands": (
        lambda text: re.sub(r"-?[0-9]+\.[0-9]+", "7.250", text.replace(",", ";")),
        "numbers like 1.234 alone",
    ),
    "a name twice": (lambda text: text.replace("x2", "x1"), "several columns 'x1'"),
    "mixed marks": (lambda text: re.sub(r"\d+\.\d+", '"1,5"', text, count=1), "comma, and"),
    "thousands far down": (semicolons("999", "1.234"), "like 1.234"),
    "thousands alone": (semicolons("1.234", "1.235"), "like 1.234"),
    "mixed marks far down": (semicolons("99.5", "1,5"), "comma, and others with a decimal point"),
    "empty": (lambda _: "", "cannot be read to its end"),
    "UTF-16": (lambda text: text.encode("utf-16"), "looks like a sheet, an archive or UTF-16"),
    "a line for Excel": (lambda text: f"sep=;\n{text.replace(',', ';')}", "line 2 has another"),
    "a quote not closed": (tenth(lambda line: f'"{line}'), "line 10 .*, and ends in line [0-9]+,"),
    "no letter of Windows": (lambda _: b"a,b\n\x81,2\n", "letters cannot be told"),
    "parquet of no bytes": (lambda _: b"", "cannot be read to its end"),
    "parquet, half": (lambda data: data[: len(data) // 2], "cannot be read to its end"),
    "parquet, its last bytes cut": (lambda data: data[:-9], "cannot be read to its end"),
    "parquet, damaged inside": (damaged, "cannot be read to its end"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_file_that_is_no_whole_table_or_can_be_read_in_two_ways_is_refused_by_name(
    what, tmp_path
):
    change, match = UNREADABLE[what]
    if what.startswith("parquet"):
        path = kept("parquet", frame(N_ROWS), tmp_path)
        changed = change(path.read_bytes())
    else:
        path, changed = tmp_path / "icu.csv", change(frame(30).write_csv())
    path.write_bytes(changed.encode() if isinstance(changed, str) else changed)
    attempt(path, tmp_path, expected=TableError, match=f"'{path.name}' of party 'north'.*{match}")


@pytest.mark.parametrize("step", ["reading rows for the basis", "projecting rows"])
def test_a_file_that_changes_under_way_is_refused(step, tmp_path):
    path = tmp_path / "icu.csv"
    frame(N_ROWS).write_csv(path)

    def grow(current, done, total):
        if current == step and done == total:
            with path.open("a") as file:
                file.write("0,1,1,1,1,1,1,1,0,east,1\n")

    attempt(path, tmp_path, expected=FileChangedError, match="changed while it was", report=grow)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_files_name_is_no_pattern(kind, tmp_path, monkeypatch):
    """Of ward[1].csv the rows are read, not of ward1.csv or of the home folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for height, folder in enumerate(("home", "ward1", "~", "ward[1]"), start=1):
        (tmp_path / folder).mkdir()
        made = Path(kept(kind, frame(height), tmp_path))
        made.rename(tmp_path / folder / made.name)
    for height, folder in ((3, "~"), (4, "ward[1]")):
        found = source_of(Path(folder, made.name), party="icu").collect(pl.len())
        assert found.item() == height


def test_a_word_far_down_a_column_that_nobody_agreed_on_stops_nothing(tmp_path):
    path = tmp_path / "icu.csv"
    path.write_text("x,note\n" + "1,2\n" * 20_000 + "3,none\n")
    found = source_of(path, party="north", features=numeric_features(["x"]))
    assert found.collect(pl.col("x").sum()).item() == 20_003


def test_a_cell_may_be_long_where_lines_are_counted_through(tmp_path):
    path = tmp_path / "icu.csv"
    path.write_text(f"note,a\n{'x' * 200_000},\nx,2\n")
    assert source_of(path, party="north").collect(pl.col("a").sum()).item() == 2
