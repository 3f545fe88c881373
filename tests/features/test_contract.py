"""The column contract: what a number and a category may be, and the columns they become."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cobasis import NumericFeature, numeric_features
from cobasis.errors import FeatureError
from cobasis.features.contract import MISSING, UNKNOWN, CategoryFeature, width_of, word_of
from cobasis.features.encoder import encoded_columns
from features.frames import MIXED, SEX, WARD, WIDTH


def test_constants_may_differ_from_feature_to_feature():
    features = numeric_features(["age", "pulse"], centre=[60, 70], scale=[20, 10])
    assert features[1] == NumericFeature(name="pulse", centre=70.0, scale=10.0)


@pytest.mark.parametrize("constants", [{"centre": [1, 2, 3]}, {"scale": 0}, {"scale": np.nan}])
def test_constants_that_cannot_stand_are_refused(constants):
    with pytest.raises(FeatureError, match=r"these 2 features need names.*\[CB105\]$"):
        numeric_features(["age", "pulse"], **constants)


BAD_NUMBERS = [
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


BAD_CATEGORIES = [
    {"name": "x"},
    {"name": "x", "values": ()},
    {"name": "x", "values": ("",)},
    {"name": "x", "values": ("a", "a")},
    {"name": "x", "values": ["a"]},
    {"name": "x", "values": (1,)},
    {"name": "x", "values": tuple(f"w{i}" for i in range(1001))},
    {"name": "", "values": ("a",)},
    {"name": "x", "values": ("a",), "unknown": "drop"},
    {"name": "x", "values": ("a",), "missing": "fill"},
    {"name": "x", "values": ("a",), "kind": "number"},
    {"name": "x", "values": ("a",), "centre": 0.0},
]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        *((NumericFeature, fields) for fields in BAD_NUMBERS),
        *((CategoryFeature, fields) for fields in BAD_CATEGORIES),
    ],
    ids=lambda each: str(each)[:60],
)
def test_a_feature_is_strict_and_cannot_be_changed(kind, fields):
    with pytest.raises(ValidationError):
        kind(**fields)
    with pytest.raises(ValidationError, match="frozen"):
        NumericFeature(name="x").centre = 2.0


def test_a_thousand_words_are_a_vocabulary():
    assert len(CategoryFeature(name="x", values=tuple(f"w{i}" for i in range(1000))).levels) == 1000


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        ("icu", "icu"),
        ("007", "007"),
        (7, "7"),
        (7.0, "7"),
        (np.float32(7), "7"),
        (0.5, "0.5"),
        (True, "true"),
        (np.True_, "true"),
        ("", None),
        (None, None),
        (float("nan"), None),
        (float("inf"), "inf"),
    ],
    ids=repr,
)
def test_equal_things_are_one_word_whatever_type_they_have(cell, word):
    assert word_of(cell) == word


def test_each_cell_has_one_level_or_is_refused():
    assert [WARD.code(cell) for cell in ("icu", 7, True, "hall", None)] == [0, 1, 2, 3, 4]
    assert [SEX.code(cell) for cell in ("f", "m", "F", "")] == [0, 1, UNKNOWN, MISSING]
    only_missing = CategoryFeature(name="x", values=("a",), missing="level")
    assert [only_missing.code(cell) for cell in ("a", None, "b")] == [0, 1, UNKNOWN]
    only_other = CategoryFeature(name="x", values=("a",), unknown="other")
    assert [only_other.code(cell) for cell in ("a", "b", None)] == [0, 1, MISSING]


@given(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=8, unique=True), st.text())
def test_a_word_of_the_vocabulary_is_never_another(values, word):
    feature = CategoryFeature(name="x", values=tuple(values), unknown="other", missing="level")
    code = feature.code(word)
    assert feature.levels[code] == (word if word in values else None if word == "" else "")


def test_encoded_columns_describe_themselves_in_order():
    columns = encoded_columns(MIXED)
    assert len(columns) == width_of(MIXED) == WIDTH
    assert [each.name for each in columns] == [
        "age",
        "ward=icu",
        "ward=7",
        "ward=true",
        "ward: any other",
        "ward: missing",
        "lactate",
        "sex=f",
        "sex=m",
    ]
    assert [each.level for each in columns] == [None, 0, 1, 2, 3, 4, None, 0, 1]
    assert [each.feature.name for each in columns[:2]] == ["age", "ward"]
