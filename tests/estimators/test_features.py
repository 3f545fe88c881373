import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV

from cobasis import CategoryFeature, NumericFeature
from cobasis.errors import FeatureError, ShapeError
from cobasis.estimators import CollaborativeClassifier, CollaborativeTransformer

FEATURES = (
    NumericFeature(name="age", centre=55.0, scale=20.0),
    NumericFeature(name="lactate", centre=2.0, missing="fill", fill=2.0),
    CategoryFeature(name="ward", values=("icu", "surgery"), missing="level"),
)


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "id": np.arange(300),
            "ward": rng.choice(["icu", "surgery", None], 300),
            "lactate": np.where(rng.random(300) < 0.1, np.nan, rng.normal(2, 1, 300)),
            "age": rng.uniform(20, 90, 300),
            "site": rng.choice(["east", "north", "south"], 300),
        }
    )


@pytest.fixture(scope="module")
def sick(patients):
    risk = (patients["age"] - 55) / 20 + (patients["ward"] == "icu").fill_null(value=False)
    return np.where(risk > 0.4, "ill", "well")


def model(**options):
    told = {"estimator": "ridge", "n_components": 5, "basis": "haar", "random_state": 0}
    return CollaborativeClassifier(features=FEATURES, **told, **options)


def test_columns_are_taken_by_name_others_are_left_alone_and_one_may_name_parties(patients, sick):
    found = model().fit(patients, sick, parties=patients["site"])
    assert found.round_.agreement.features == FEATURES
    assert found.n_features_in_ == 5
    assert found.feature_names_in_.tolist() == patients.columns
    expected = found.predict(patients, parties=patients["site"])
    assert np.mean(expected == sick) > 0.9
    turned = patients.select("site", "age", "ward", "lactate").with_columns(other=pl.lit("x"))
    np.testing.assert_array_equal(found.predict(turned, parties=turned["site"]), expected)
    with pytest.raises(FeatureError, match=r"X has no column ward, which features= names"):
        found.predict(patients.drop("ward"), parties=patients["site"])
    with pytest.raises(ShapeError, match=r"shape \(300, 3\), and 5 columns are expected"):
        found.predict(np.zeros((300, 3)), parties=patients["site"])
    bound = model(party_column="site").fit(patients, sick)
    np.testing.assert_array_equal(bound.predict(patients), expected)


def test_tools_take_a_frame_with_words_and_blanks_that_says_whose_row_each_is(patients, sick):
    """Permutation importance makes an array of objects of the frame, without its names."""
    bound = model(party_column="site").fit(patients, sick)
    drops = permutation_importance(bound, patients, sick, n_repeats=3, random_state=0)
    found = dict(zip(patients.columns, drops.importances_mean, strict=True))
    assert found["age"] == max(found.values())
    assert found["ward"] > found["id"] == 0
    search = GridSearchCV(bound, {"n_components": [1, 5]}, cv=2, error_score="raise")
    assert search.fit(patients, sick).best_params_ == {"n_components": 5}


def test_a_number_names_the_column_of_a_frame_that_is_called_so(small):
    frame = pd.DataFrame(small.X, columns=[5, 4, 3, 2, 1, 9])
    frame.insert(6, 0, np.arange(90) % 3)
    found = CollaborativeTransformer(party_column=0, random_state=0).fit(frame)
    assert found.parties_.tolist() == [0, 1, 2]
    parties = np.arange(90) % 3
    expected = clone(found).set_params(party_column=None).fit_transform(small.X, parties=parties)
    np.testing.assert_array_equal(found.transform(frame), expected)


LABELS = [
    ([3, 10], ["3", "10"]),
    ([("north", 1), ("north", 2)], ["('north', 1)", "('north', 2)"]),
    (pl.Series(["north", "south"], dtype=pl.Categorical), ["north", "south"]),
    ([1, "1"], ["party 0", "party 1"]),  # written alike
    (["A1", "a1"], ["party 0", "party 1"]),
    (["a" * 101, "b" * 101], ["party 0", "party 1"]),
]


@pytest.mark.parametrize(("labels", "names"), LABELS)
def test_a_party_has_any_label_with_a_hash(small, labels, names):
    turns, found = np.arange(90) % 2, CollaborativeTransformer(n_components=3, random_state=0)
    words = isinstance(labels, pl.Series)
    parties = labels[turns] if words else [labels[turn] for turn in turns]
    aligned = found.fit_transform(small.X, parties=parties)
    assert list(found.round_.parties) == names
    assert set(found.parties_.tolist()) == {*labels}
    by_text = clone(found).fit_transform(small.X, parties=np.array(["p0", "p1"])[turns])
    np.testing.assert_array_equal(aligned, by_text)
