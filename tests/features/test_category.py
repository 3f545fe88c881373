"""Categories: a closed vocabulary, one column for each of its levels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cobasis.features.category import MISSING, UNKNOWN, CategoryFeature, word_of
from cobasis.features.encoder import encoded_columns, width_of
from features.frames import MIXED, SEX, WARD, WIDTH

BAD = [
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


@pytest.mark.parametrize("fields", BAD, ids=lambda fields: str(fields)[:60])
def test_a_category_is_strict(fields):
    with pytest.raises(ValidationError):
        CategoryFeature(**fields)


def test_a_thousand_words_are_a_vocabulary():
    assert len(CategoryFeature(name="x", values=tuple(f"w{i}" for i in range(1000))).levels) == 1000


@pytest.mark.parametrize(
    ("cell", "word"),
    [
        ("icu", "icu"),
        (" icu", " icu"),
        ("007", "007"),
        (7, "7"),
        (7.0, "7"),
        (np.float32(7), "7"),
        (np.int64(-7), "-7"),
        (0.5, "0.5"),
        (True, "true"),
        (np.True_, "true"),
        (False, "false"),
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
