"""The check of a party's table: every finding at once, counts but no numbers."""

import narwhals as nw
import polars as pl
import pytest

from cobasis import NumericFeature
from cobasis.features.problems import check
from features.frames import AGE, LACTATE, MIXED, SEX, WARD, mixed


def checked(frame, features=MIXED, *, batches=1, **options):
    size = max(1, -(-frame.height // batches))
    named = [each.name for each in features if each.name in frame.columns]
    parts = [
        nw.from_native(frame.select(named)[start : start + size])
        for start in range(0, frame.height, size)
    ]
    return check(parts, features, columns=frame.columns, **options)


def found(frame, *options, **more):
    return {(each.column, each.problem): each for each in checked(frame, *options, **more)}


def test_a_table_as_agreed_is_told_only_what_is_filled_or_counted_as_other():
    told = found(mixed())
    assert set(told) == {("lactate", "missing"), ("ward", "missing"), ("ward", "vocabulary")}
    assert not any(each.refused for each in told.values())
    assert told["lactate", "missing"].text == (
        "2 of 4 cells of column 'lactate' are empty, and 1.25 mmol/l stands for them"
    )
    assert told["ward", "vocabulary"].words == ("hall",)


@pytest.mark.parametrize("batches", [1, 3, 40])
def test_counts_do_not_depend_on_how_the_table_is_cut(batches):
    frame = mixed(40).with_columns(
        age=pl.when(pl.int_range(pl.len()) < 7).then(-1.0).otherwise(pl.col("age")),
        sex=pl.when(pl.int_range(pl.len()) > 35).then(pl.lit("x")).otherwise(pl.col("sex")),
    )
    told = found(frame, batches=batches)
    assert {name: (each.n_rows, each.refused) for name, each in told.items()} == {
        ("age", "range"): (7, True),
        ("ward", "missing"): (10, False),
        ("ward", "vocabulary"): (10, False),
        ("lactate", "missing"): (20, False),
        ("sex", "vocabulary"): (4, True),
    }
    assert "outside the agreed range 0..120 years" in told["age", "range"].text


def test_columns_that_lack_or_are_not_agreed_are_named():
    frame = mixed().rename({"sex": "gender"}).with_columns(patient=pl.int_range(pl.len()))
    told = found(frame, used=["patient"])
    assert told["sex", "absent"].refused
    assert not told["gender", "unused"].refused
    assert not {name for name, _ in told} & {"patient"}
    assert found(mixed(), used=["patient"])["patient", "absent"].refused


@pytest.mark.parametrize(
    ("feature", "dtype"), [(AGE, pl.String), (AGE, pl.Int128), (SEX, pl.Date), (LACTATE, pl.Date)]
)
def test_a_type_that_is_not_read_is_named(feature, dtype):
    frame = pl.DataFrame({feature.name: pl.Series([1, 2]).cast(dtype)})
    [only] = checked(frame, [feature])
    assert (only.problem, only.refused, only.n_rows) == ("type", True, None)
    assert str(dtype) in only.text


def test_empty_cells_and_infinities_are_refused_where_nothing_stands_for_them():
    frame = pl.DataFrame({"age": [None, float("inf"), 50.0], "sex": ["f", None, ""]})
    told = found(frame, [AGE, SEX])
    assert {name: (each.n_rows, each.refused) for name, each in told.items()} == {
        ("age", "missing"): (1, True),
        ("age", "infinite"): (1, True),
        ("sex", "missing"): (2, True),
    }


def test_at_most_five_words_are_shown_the_most_frequent_first():
    words = [f"w{i}" for i in range(20) for _ in range(20 - i)]
    [only] = checked(pl.DataFrame({"ward": words}), [WARD])
    assert only.words == ("w0", "w1", "w2", "w3", "w4")
    assert only.n_rows == len(words)
    assert "w5" not in only.text


def test_no_number_of_the_table_is_in_any_finding():
    """The range is the agreement's; the value that breaks it stays unsaid."""
    frame = pl.DataFrame({"age": [654321.5, 7.25], "lactate": [-98765.5, 1.0]})
    told = checked(frame, [AGE, LACTATE])
    assert len(told) == 2
    assert not [each for each in told if "654321" in each.text or "98765" in each.text]


def test_a_range_may_be_open_on_one_side():
    [only] = checked(pl.DataFrame({"a": [-1.0, 1e9]}), [NumericFeature(name="a", low=0)])
    assert only.text == "1 of 2 cells of column 'a' are outside the agreed range 0.."
