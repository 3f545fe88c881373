import narwhals as nw
import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from cobasis import NumericFeature, numeric_features
from cobasis.errors import FeatureError
from cobasis.features.contract import MISSING, UNKNOWN, CategoryFeature, width_of, word_of
from cobasis.features.encoder import encoded_columns
from cobasis.features.problems import check
from features.frames import AGE, LACTATE, MIXED, SEX, WARD, WIDTH


def test_constants_may_differ_from_feature_to_feature_and_have_to_be_some():
    features = numeric_features(["age", "pulse"], centre=[60, 70], scale=[20, 10])
    assert features[1] == NumericFeature(name="pulse", centre=70.0, scale=10.0)
    for constants in ({"centre": [1, 2, 3]}, {"scale": 0}, {"scale": np.nan}):
        with pytest.raises(FeatureError, match=r"these 2 features need names.*\[CB105\]$"):
            numeric_features(["age", "pulse"], **constants)


X, WORDS = {"name": "x"}, {"name": "x", "values": ("a",)}
REFUSED = (
    *((NumericFeature, X | {"scale": scale}) for scale in (0.0, float("inf"))),
    *((NumericFeature, X | {"centre": centre}) for centre in (float("nan"), "0")),
    *((NumericFeature, X | other) for other in ({"fill": 1.0}, {"low": 2.0, "high": 1.0})),
    *((NumericFeature, X | {"knots": knots}) for knots in ((1.0, 2.0), (1.0, 1.0, 2.0))),
    (NumericFeature, X | {"unit": "days since 2000-13-01"}),
    *((CategoryFeature, X | {"values": values}) for values in ((), ("",), ("a", "a"), ["a"])),
    (CategoryFeature, X | {"values": tuple(f"w{i}" for i in range(1001))}),
    *((CategoryFeature, WORDS | {"base": base}) for base in ("c", "a")),
)


@pytest.mark.parametrize(("kind", "fields"), REFUSED, ids=lambda each: str(each)[:60])
def test_a_feature_is_strict(kind, fields):
    with pytest.raises(ValidationError):
        kind(**fields)


def test_equal_things_are_one_word_whatever_type_they_have():
    cells = ["icu", "007", 7, 7.0, np.float32(7), 0.5, True, np.True_, "", None, np.nan, np.inf]
    words = ["icu", "007", "7", "7", "7", "0.5", "true", "true", None, None, None, "inf"]
    assert list(map(word_of, cells)) == words


def test_each_cell_has_one_level_or_is_refused():
    assert [WARD.code(cell) for cell in ("icu", 7, True, "hall", None)] == [0, 1, 2, 3, 4]
    assert [SEX.code(cell) for cell in ("f", "m", "F", "")] == [0, 1, UNKNOWN, MISSING]


def test_encoded_columns_describe_themselves_in_order():
    columns = encoded_columns(MIXED)
    assert len(columns) == width_of(MIXED) == WIDTH
    names = "age,ward=icu,ward=7,ward=true,ward: any other,ward: missing,lactate,sex=m"
    assert [each.name for each in columns] == names.split(",")
    assert [each.level for each in columns] == [None, 0, 1, 2, 3, 4, None, 1]
    assert [each.feature.name for each in columns[:2]] == ["age", "ward"]


# ---------------------------------------------------------------- the check of a table


def checked(frame, features, *, batches=1):
    named = [each.name for each in features if each.name in frame.columns]
    parts = frame.select(named).iter_slices(-(-frame.height // batches))
    return check(map(nw.from_native, parts), features, columns=frame.columns)


def test_at_most_five_words_are_shown_the_most_frequent_first():
    words = [f"w{i}" for i in range(20) for _ in range(20 - i)]
    only, asked = checked(pl.DataFrame({"ward": words}), [WARD])
    assert (asked.problem, asked.asked) == ("words", True)
    assert only.words == asked.words == ("w0", "w1", "w2", "w3", "w4")
    assert only.n_rows == len(words)
    assert "w4" in only.counted
    assert "w5" not in only.counted
    assert "w0" not in only.text


def test_findings_count_rows_and_say_no_number_of_the_table():
    """The range, open on one side, is the agreement's; the value that breaks it stays unsaid."""
    ages, lactates = [654321.5, 7.25, None, float("inf")], [-98765.5, 1e9, 1.0, 1.0]
    frame = pl.DataFrame({"age": ages, "lactate": lactates, "sex": ["f", None, "", "m"]})
    told = checked(frame, [AGE, LACTATE, SEX])
    assert {(each.column, each.problem): (each.n_rows, each.refused) for each in told} == {
        ("age", "missing"): (1, True),
        ("age", "infinite"): (1, True),
        ("age", "range"): (1, True),
        ("lactate", "range"): (1, True),
        ("sex", "missing"): (2, True),
    }
    outside = "column '{}' has numbers outside the agreed range {}"
    texts = {outside.format("age", "0..120 years"), outside.format("lactate", "0.. mmol/l")}
    assert texts < {each.text for each in told}
    assert not [each for each in told if "654321" in each.counted or "98765" in each.counted]


HEIGHTS = NumericFeature(name="height", centre=170, scale=10, missing="fill", fill=170)
TALL = np.linspace(155, 190, 40)
WIDE = np.where(np.arange(40) < 3, 500.0, TALL)
BLANK = np.where(np.arange(40) < 10, np.nan, TALL)
ASKED = {
    "as agreed": (TALL, {}, None),
    "metres": (TALL / 100, {}, "centre"),
    "another centre, and hardly any spread": (TALL / 1000 + 185, {}, "spread"),
    "one value for all": (np.full(40, 185.0), {}, None),
    "some in another unit": (WIDE, {}, "spread"),
    "too few to tell": (TALL[:9] / 100, {}, None),
    "no value": (np.full(40, np.nan), {}, "blanks"),
    "blanks that nobody bounded": (BLANK, {}, None),
    "as many blanks as agreed": (BLANK, {"blanks_at_most": 0.25}, None),
    "more blanks than agreed": (BLANK, {"blanks_at_most": 0.2}, "blanks"),
    "what is refused anyway": (TALL / 100, {"low": 100.0}, None),
}


@pytest.mark.parametrize("what", ASKED)
def test_a_column_unlike_the_agreement_is_asked_about_and_not_refused(what):
    values, more, problem = ASKED[what]
    frame = pl.DataFrame({"height": values})
    told = checked(frame, [HEIGHTS.model_copy(update=more)], batches=3)
    asked = [each for each in told if each.asked]
    assert [each.problem for each in asked] == ([] if problem is None else [problem])
    assert not any(each.refused for each in asked)
    assert not any(str(each.n_rows) in each.text for each in asked)
