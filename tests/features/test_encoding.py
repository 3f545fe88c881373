import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from aligners import STEADY
from cobasis import NumericFeature, numeric_features
from cobasis.errors import DtypeError, FeatureError, NotFiniteError, ShapeError
from cobasis.features.contract import CategoryFeature
from cobasis.features.encoder import LARGEST, encode, refuse_names
from features.frames import ENCODED, MIXED, SEX, mixed

TABLES = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-1e6, 1e6),
)


@STEADY
@given(TABLES, st.floats(-100, 100), st.floats(0.01, 100))
def test_encoding_is_undone_by_the_agreements_constants(table, centre, scale):
    features = numeric_features(
        [f"x{column}" for column in range(table.shape[1])], centre=centre, scale=scale
    )
    before = table.copy()
    encoded = encode(table, features, party="north")
    np.testing.assert_allclose(encoded * scale + centre, table, atol=1e-8, rtol=1e-12)
    np.testing.assert_array_equal(table, before)
    assert not np.shares_memory(encoded, table)


FILLED = (
    NumericFeature(name="a", centre=1.0, scale=2.0, missing="fill", fill=5.0),
    NumericFeature(name="b"),
)


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["icu", "hall", "7"]), pl.String])
def test_numbers_and_words_of_any_type_of_text_become_the_agreed_columns(dtype):
    frame = mixed().with_columns(pl.col("ward").cast(dtype))
    np.testing.assert_array_equal(encode(frame, MIXED, party="north"), ENCODED)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float32, pl.Boolean], ids=str)
def test_numbers_and_booleans_may_be_words_and_booleans_numbers(dtype):
    words = ("false", "true") if dtype == pl.Boolean else ("0", "1")
    feature = CategoryFeature(name="grade", values=words, missing="level")
    frame = pl.DataFrame({"grade": pl.Series([1, 0, None]).cast(dtype)})
    found = encode(frame, [feature], party="north")
    np.testing.assert_array_equal(found, [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    number = NumericFeature(name="grade", missing="fill", fill=0.5)
    assert encode(frame, [number], party="north").ravel().tolist() == [1.0, 0.0, 0.5]


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
    name = "b" if np.isnan(cell) else "a"
    table = pl.DataFrame({"a": [1.0], "b": [1.0]}).with_columns(pl.lit(cell).alias(name))
    for rows in (table, table.to_numpy()):
        with pytest.raises(NotFiniteError, match=rf"party 'north'.* in '{name}', so.*\[CB101\]$"):
            encode(rows, FILLED, party="north")


REFUSED = {
    "an unknown word": (pl.col("sex").replace("m", "male"), FeatureError, "words that are not"),
    "an empty cell": (pl.col("sex").replace("m", None), FeatureError, "'sex'.*has empty cells"),
    "an empty text": (pl.col("sex").replace("m", ""), FeatureError, "'sex'.*has empty cells"),
    "a date": (pl.lit("2026-01-01").str.to_date().alias("sex"), DtypeError, "'sex'.*Date"),
    "text for a number": (pl.lit("60").alias("age"), DtypeError, "'age'.*String"),
    "a decimal": (pl.col("age").cast(pl.Decimal(9, 2)), DtypeError, "'age'.*Decimal"),
    "a large integer": (pl.lit(2**60).alias("age"), DtypeError, r"'age'.*2\*\*53"),
    "one beside none": (pl.Series("age", [2**53 + 1, None, 1, 1]), DtypeError, r"'age'.*2\*\*53"),
    "a wide integer": (pl.col("age").cast(pl.Int128), DtypeError, "'age'.*Int128"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_cells_that_the_agreement_has_no_place_for_are_refused_and_not_shown(kind):
    change, expected, match = REFUSED[kind]
    with pytest.raises(expected, match=match) as caught:
        encode(mixed().with_columns(change), MIXED, party="north")
    assert "party 'north'" in str(caught.value)
    assert "male" not in str(caught.value)


def test_tables_of_another_shape_or_without_a_place_for_categories_are_refused():
    with pytest.raises(FeatureError, match=r"no data frame.*'sex'.*\[CB105\]$"):
        encode([["f"], ["m"]], [SEX], party="north")
    with pytest.raises(ShapeError, match="0 rows"):
        encode(mixed().head(0), MIXED, party="north")


@pytest.mark.parametrize(("value", "scale"), [(LARGEST * 10, 1.0), (1e10, 1e-300)])
def test_numbers_whose_squares_overflow_are_refused_without_a_warning(value, scale):
    """Also those that are too large only on the agreed scale."""
    with pytest.raises(NotFiniteError, match=r"party 'north'.*above 1e\+50.*\[CB101\]$"):
        encode([[value]], numeric_features("x", scale=scale), party="north")


@pytest.mark.parametrize("names", ["bac", "ab", "abca", "abcd", "aab", ""])
def test_only_the_very_names_in_the_very_order_pass(names):
    refuse_names(["a", "b", "c"], "abc", party="north")
    with pytest.raises(FeatureError, match=r"party 'north'.*\[CB105\]$"):
        refuse_names(names, "abc", party="north")
