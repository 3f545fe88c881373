"""Arrays and frames of both kinds of features, encoded by one rule."""

import numpy as np
import polars as pl
import pytest

from cobasis import NumericFeature, numeric_features
from cobasis.errors import DtypeError, FeatureError, NotFiniteError, ShapeError
from cobasis.features.category import CategoryFeature
from cobasis.features.encoder import Encoder, encode
from features.frames import ENCODED, MIXED, SEX, mixed

FILLED = (
    NumericFeature(name="a", centre=1.0, scale=2.0, missing="fill", fill=5.0),
    NumericFeature(name="b"),
)


def test_numbers_and_words_become_the_agreed_columns():
    np.testing.assert_array_equal(encode(mixed(), MIXED, party="north"), ENCODED)


def test_a_row_is_encoded_the_same_alone_and_among_others():
    alone = [encode(mixed()[row], MIXED, party="north")[0] for row in range(4)]
    np.testing.assert_array_equal(encode(mixed(), MIXED, party="north"), alone)


@pytest.mark.parametrize(
    "dtype", [pl.Categorical, pl.Enum(["icu", "hall", "7"]), pl.String], ids=str
)
def test_words_may_be_of_any_type_of_text(dtype):
    frame = mixed().with_columns(pl.col("ward").cast(dtype))
    np.testing.assert_array_equal(encode(frame, MIXED, party="north"), ENCODED)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float32, pl.Float64], ids=str)
def test_numbers_may_be_words(dtype):
    feature = CategoryFeature(name="grade", values=("1", "2"), missing="level")
    frame = pl.DataFrame({"grade": pl.Series([2, 1, None]).cast(dtype)})
    np.testing.assert_array_equal(
        encode(frame, [feature], party="north"), [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    )


def test_booleans_may_be_words_and_numbers():
    frame = pl.DataFrame({"alive": [True, None, False]})
    words = CategoryFeature(name="alive", values=("false", "true"), missing="level")
    assert encode(frame, [words], party="north").argmax(axis=1).tolist() == [1, 2, 0]
    number = NumericFeature(name="alive", missing="fill", fill=0.5)
    assert encode(frame, [number], party="north").ravel().tolist() == [1.0, 0.5, 0.0]


@pytest.mark.parametrize("dtype", [pl.Int16, pl.Int64, pl.UInt8, pl.Float32, pl.Float64], ids=str)
def test_a_frame_of_numbers_gives_the_bits_of_an_array(dtype):
    rng = np.random.default_rng(0)
    table = rng.integers(0, 100, size=(50, 3))
    features = numeric_features("abc", centre=[0.1, 0.0, 7.7], scale=[3.3, 1.0, 0.7])
    frame = pl.DataFrame(table, schema=["a", "b", "c"]).cast(dtype)
    found = encode(frame, features, party="north")
    expected = encode(table.astype(frame["a"].to_numpy().dtype), features, party="north")
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.float64


def test_a_missing_number_is_what_was_agreed_in_arrays_and_frames():
    table = np.array([[np.nan, 1.0], [3.0, 2.0]])
    expected = [[2.0, 1.0], [1.0, 2.0]]
    np.testing.assert_array_equal(encode(table, FILLED, party="north"), expected)
    frame = pl.DataFrame({"a": [None, 3], "b": [1, 2]})
    np.testing.assert_array_equal(encode(frame, FILLED, party="north"), expected)
    assert np.isnan(table[0, 0])
    never = pl.DataFrame({"a": [None, None], "b": [1, 2]})
    assert encode(never, FILLED, party="north")[:, 0].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf])
def test_a_fill_stands_for_no_infinity_and_for_no_other_column(cell):
    column = 1 if np.isnan(cell) else 0
    table = np.ones((3, 2))
    table[1, column] = cell
    with pytest.raises(NotFiniteError, match=r"party 'north'.*\[CB101\]$"):
        encode(table, FILLED, party="north")
    frame = pl.DataFrame(table, schema=["a", "b"])
    name = "ab"[column]
    with pytest.raises(NotFiniteError, match=rf"'{name}' \(1 cells\) of 3 rows"):
        encode(frame, FILLED, party="north")


def test_numbers_whose_squares_overflow_are_refused_in_frames_too():
    frame = pl.DataFrame({"a": [1e60], "b": [0.0]})
    with pytest.raises(NotFiniteError, match=r"above 1e\+50"):
        encode(frame, FILLED, party="north")


REFUSED = {
    "an unknown word": (pl.col("sex").replace("m", "male"), FeatureError, "words that are not"),
    "an empty cell": (pl.col("sex").replace("m", None), FeatureError, "'sex'.*has empty cells"),
    "an empty text": (pl.col("sex").replace("m", ""), FeatureError, "'sex'.*has empty cells"),
    "a date": (pl.lit("2026-01-01").str.to_date().alias("sex"), DtypeError, "'sex'.*Date"),
    "text for a number": (pl.lit("60").alias("age"), DtypeError, "'age'.*String"),
    "a decimal": (pl.col("age").cast(pl.Decimal(9, 2)), DtypeError, "'age'.*Decimal"),
    "a large integer": (pl.lit(2**60).alias("age"), DtypeError, r"'age'.*2\*\*53"),
    "a wide integer": (pl.col("age").cast(pl.Int128), DtypeError, "'age'.*Int128"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_cells_that_the_agreement_has_no_place_for_are_refused_and_not_shown(kind):
    change, expected, match = REFUSED[kind]
    with pytest.raises(expected, match=match) as caught:
        encode(mixed().with_columns(change), MIXED, party="north")
    assert "party 'north'" in str(caught.value)
    assert "male" not in str(caught.value)


def test_a_large_integer_beside_an_empty_cell_is_not_rounded_silently():
    frame = pl.DataFrame({"a": [2**53 + 1, None], "b": [1, 2]})
    with pytest.raises(DtypeError, match=r"'a'.*2\*\*53"):
        encode(frame, FILLED, party="north")


def test_columns_of_a_frame_are_compared_by_name_and_order():
    with pytest.raises(FeatureError, match="column 2 is 'lactate', agreed is 'ward'"):
        encode(mixed().select("age", "lactate", "ward", "sex"), MIXED, party="north")
    with pytest.raises(FeatureError, match="missing 'sex'"):
        encode(mixed().drop("sex"), MIXED, party="north")


def test_an_array_has_no_place_for_categories():
    with pytest.raises(FeatureError, match=r"no data frame.*'sex'.*\[CB105\]$"):
        encode([["f"], ["m"]], [SEX], party="north")


def test_a_frame_without_rows_is_refused():
    with pytest.raises(ShapeError, match="0 rows"):
        encode(mixed().head(0), MIXED, party="north")


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_frames_of_other_libraries_are_encoded_the_same(library):
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    columns = {
        name: series.to_list() for name, series in zip(mixed().columns, mixed(), strict=True)
    }
    make = module.DataFrame if library == "pandas" else module.table
    np.testing.assert_array_equal(encode(make(columns), MIXED, party="north"), ENCODED)


def test_floats_that_follow_each_other_are_encoded_as_each_alone():
    """They are copied and scaled as one table; a whole number or a word between ends a run."""
    features = [
        NumericFeature(name="a", centre=0.1, scale=3.0),
        NumericFeature(name="b"),
        NumericFeature(name="c", centre=-7.0, missing="fill", fill=0.3),
        NumericFeature(name="n", scale=7.0),
        NumericFeature(name="d", scale=1e-3),
        NumericFeature(name="e", centre=1e6, missing="fill", fill=1.0),
    ]
    random = np.random.default_rng(0)
    frame = pl.DataFrame({each.name: random.normal(size=50) for each in features}).select(
        "a",
        pl.col("b").cast(pl.Float32),
        pl.when(pl.int_range(50) % 7 > 0).then("c"),
        pl.col("n").cast(pl.Int8),
        "d",
        pl.when(pl.int_range(50) % 9 > 0).then(pl.col("e").cast(pl.Float32)),
    )
    together = encode(frame, features, party="north")
    for position, feature in enumerate(features):
        alone = encode(frame.select(feature.name), [feature], party="north")
        np.testing.assert_array_equal(together[:, [position]], alone)
        cells = frame[feature.name].cast(pl.Float64).fill_null(feature.fill or 0.0).to_numpy()
        by_hand = (cells - feature.centre) / feature.scale
        np.testing.assert_array_equal(alone[:, 0], by_hand)


@pytest.mark.parametrize("columns", [[np.zeros((2, 3))], [np.zeros((2, 3)), np.zeros(3)]])
def test_columns_of_another_number_are_no_table(columns):
    """What no column was written to would hold whatever was in memory."""
    four, out = Encoder(numeric_features("abcd")), np.zeros((4, 3))
    with pytest.raises(ValueError, match="in place of 4"):
        four.put(columns, out)
    assert four.put([*columns, np.zeros((4 - sum(len(np.atleast_2d(x)) for x in columns), 3))], out)
