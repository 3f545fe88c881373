"""Numeric features: names, order, and one centre and scale for all parties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pydantic import ValidationError

from cobasis import NumericFeature, numeric_features
from cobasis.errors import CobasisError, FeatureError, NotFiniteError, ShapeError
from cobasis.features.encoder import LARGEST, encode
from cobasis.features.raw_columns import refuse_names

TABLES = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(-1e6, 1e6),
)


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


@given(TABLES)
def test_encoding_looks_at_no_other_row(table):
    """No mean, no spread: a row's code is the same alone and among others."""
    features = numeric_features([f"x{c}" for c in range(table.shape[1])], centre=1.0, scale=3.0)
    alone = [encode(row[np.newaxis], features, party="north")[0] for row in table]
    np.testing.assert_array_equal(encode(table, features, party="north"), alone)


def test_constants_may_differ_from_feature_to_feature():
    features = numeric_features(["age", "pulse"], centre=[60, 70], scale=[20, 10])
    np.testing.assert_array_equal(encode([[80, 60]], features, party="north"), [[1.0, -1.0]])
    assert features[1] == NumericFeature(name="pulse", centre=70.0, scale=10.0)


@pytest.mark.parametrize("constants", [{"centre": [1, 2, 3]}, {"scale": 0}, {"scale": np.nan}])
def test_constants_that_cannot_stand_are_refused(constants):
    with pytest.raises(FeatureError, match=r"these 2 features need names.*\[CB105\]$"):
        numeric_features(["age", "pulse"], **constants)


BAD_FEATURES = [
    {"name": ""},
    {"name": 1},
    {"name": "x", "scale": 0.0},
    {"name": "x", "scale": -1.0},
    {"name": "x", "scale": float("inf")},
    {"name": "x", "centre": float("nan")},
    {"name": "x", "centre": "0"},
    {"name": "x", "colour": "red"},
    {"name": "x", "kind": "category"},
    {"name": "x", "missing": "fill"},
    {"name": "x", "fill": 1.0},
    {"name": "x", "missing": "mean"},
    {"name": "x", "missing": "fill", "fill": float("nan")},
    {"name": "x", "low": float("-inf")},
    {"name": "x", "low": 2.0, "high": 1.0},
    {},
]


@pytest.mark.parametrize("fields", BAD_FEATURES, ids=str)
def test_a_feature_is_strict(fields):
    with pytest.raises(ValidationError):
        NumericFeature(**fields)


def test_a_feature_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        NumericFeature(name="x").centre = 2.0


@pytest.mark.parametrize("value", [LARGEST * 10, -LARGEST * 10, np.finfo(float).max])
def test_numbers_whose_squares_overflow_are_refused_without_a_warning(value):
    with pytest.raises(NotFiniteError, match=r"party 'north'.*\[CB101\]$"):
        encode([[value]], numeric_features("x"), party="north")


def test_numbers_that_overflow_only_by_the_scale_are_refused_too():
    features = numeric_features("x", scale=1e-300)
    with pytest.raises(NotFiniteError):
        encode([[1e10]], features, party="north")
    assert encode([[1e-299]], features, party="north")[0, 0] == pytest.approx(10.0)


def test_the_width_is_the_number_of_features():
    with pytest.raises(ShapeError, match=r"party 'north' has 2 columns.*expected 3"):
        encode(np.ones((5, 2)), numeric_features("abc"), party="north")
    with pytest.raises(ShapeError, match="looks transposed"):
        encode(np.ones((3, 5)), numeric_features("abc"), party="north")


NAMES = st.lists(st.text(min_size=1, max_size=3), min_size=1, max_size=7, unique=True)


@given(NAMES, st.randoms(use_true_random=False))
def test_only_the_very_names_in_the_very_order_pass(names, random):
    refuse_names(names, names, party="north")
    shuffled = random.sample(names, len(names))
    for other in (shuffled, names[:-1], [*names, names[0]], [*names, "a new name"]):
        if other != names:
            with pytest.raises(FeatureError, match=r"(?s)party 'north'.*\[CB105\]$"):
                refuse_names(other, names, party="north")


class Frame:
    """The least of a data frame."""

    def __init__(self, values, columns):
        self.values, self.columns = np.asarray(values), columns

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=copy)


def test_names_are_compared_before_values_are_looked_at():
    frame = Frame([[np.nan, 1.0]], ["b", "a"])
    with pytest.raises(FeatureError, match="column 1 is 'b', agreed is 'a'"):
        encode(frame, numeric_features("ab"), party="north")
    with pytest.raises(NotFiniteError):
        encode(Frame(frame.values, ["a", "b"]), numeric_features("ab"), party="north")


def test_a_long_list_of_wrong_names_is_cut_short():
    wrong = [f"wrong{column}" for column in range(500)]
    with pytest.raises(CobasisError, match="and 495 more") as caught:
        refuse_names(wrong, ["x"], party="north")
    assert len(str(caught.value)) < 500
