import numpy as np
import polars as pl
import pytest

from cobasis.errors import DtypeError, OptionError
from cobasis.features.encoder import encode
from cobasis.tables import open_table
from tables.parties import (
    WARD_FEATURES,
    WARD_NAMES,
    WARD_WIDTH,
    kept,
    uploaded,
    ward_frame,
    ward_site,
)

N_ROWS = 2_900
KINDS = ["parquet", "csv", "frame", "lazy"]


def streamed(rows):
    parts = rows.over(lambda _, blocks: np.vstack([each.copy() for each in blocks]), step="")
    return np.vstack(list(parts))


def other_frame(library, table):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    columns = {series.name: series.to_list() for series in table}
    return module.DataFrame(columns) if library == "pandas" else module.table(columns)


@pytest.mark.parametrize("kind", [*KINDS, "pandas", "pyarrow"])
def test_a_streamed_table_has_the_bits_of_the_frame_in_memory(kind, tmp_path):
    """A column without a single number is filled, too."""
    for table in (ward_frame(N_ROWS), ward_frame(300).with_columns(lactate=pl.lit(None))):
        given = kept(kind, table, tmp_path) if kind in KINDS else other_frame(kind, table)
        rows = open_table(given, agreement=ward_site().agreement, party="north", labels="died")
        expected = encode(table.select(WARD_NAMES), WARD_FEATURES, party="north")
        assert rows.shape == expected.shape == (len(table), WARD_WIDTH)
        np.testing.assert_array_equal(streamed(rows), expected)
        assert (expected[:, 1:6].sum(axis=0) > 0).all()
    assert set(expected[:, 6]) == {(1.25 - 2) / 1.5}


def test_words_of_a_csv_file_keep_their_zeros(tmp_path):
    """A column of codes that all look like integers is text where a category is agreed on."""
    table, agreement = ward_frame(300), ward_site().agreement
    path = kept("csv", table.with_columns(ward=pl.lit("007")), tmp_path)
    for given, level in ((path, 1), (table.with_columns(ward=pl.lit(7)), 2)):
        rows = open_table(given, agreement=agreement, party="north")
        np.testing.assert_array_equal(streamed(rows)[:, 1:6], [np.eye(5)[level]] * 300)


def test_a_date_is_no_category_and_another_label_column_is_refused(tmp_path):
    table, north = ward_frame(300).with_columns(sex=pl.date(2026, 1, 1)), ward_site().party()
    with pytest.raises(DtypeError, match=r"'sex' of .* is of type Date"):
        uploaded(north, table, to=tmp_path / "north.safetensors")
    with pytest.raises(OptionError, match=r"labels='pulse', but.*'died'.*\[CB107\]"):
        uploaded(north, table, labels="pulse", to=tmp_path / "north.safetensors")


def plain(table, **changes):
    made = open_table(table, agreement=ward_site(**changes).agreement, party="north")
    return list(made.plain_rows())


def test_a_row_says_the_same_whatever_is_agreed_about_its_columns(tmp_path):
    """By it a row is known again: constants, order, a fill and the seventh digit do not count."""
    table = ward_frame(300)
    rows = plain(kept("csv", table, tmp_path))
    assert len(rows) == 300
    assert len(set(rows)) > 290
    changes = {"age": {"centre": 50.0}, "lactate": {"fill": 2.0}, "ward": {"values": ("7", "007")}}
    other = [each.model_copy(update=changes.get(each.name, {})) for each in WARD_FEATURES[::-1]]
    digits = table.with_columns(age=pl.col("age") * (1 + 1e-9), pulse=pl.col("pulse").cast(float))
    assert plain(kept("parquet", digits, tmp_path), features=tuple(other)) == rows
    changed = table.with_columns(age=pl.col("age") + 0.1)
    assert not {*plain(kept("csv", changed, tmp_path))} & {*rows}
