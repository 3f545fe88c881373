"""scikit-learn's own checks, and what follows from secrets that do not travel."""

import copy
import pickle
from collections import defaultdict

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from cobasis import numeric_features
from cobasis.errors import DtypeError, LabelError, SecretError
from cobasis.estimators import (
    CollaborativeClassifier,
    CollaborativeRegressor,
    CollaborativeTransformer,
)


def only(X, parties):
    """Give all rows to one party, because scikit-learn's checks know of none."""
    if parties is not None:
        return parties
    return np.full(X.shape[0] if len(getattr(X, "shape", ())) else len(np.asarray(X)), "only")


class Only:
    """Supplies `parties`, and changes nothing else."""

    def fit(self, X, y=None, *, parties=None):
        return super().fit(X, y, parties=only(X, parties))

    def fit_transform(self, X, y=None, *, parties=None):
        return super().fit_transform(X, y, parties=only(X, parties))

    def transform(self, X, *, parties=None):
        return super().transform(X, parties=only(X, parties))


class OnlyTransformer(Only, CollaborativeTransformer):
    pass


class OnlyPredictor(Only):
    def predict(self, X, *, parties=None):
        return super().predict(X, parties=only(X, parties))

    def score(self, X, y, *, parties=None, sample_weight=None):
        return super().score(X, y, parties=only(X, parties), sample_weight=sample_weight)

    def __sklearn_tags__(self):
        """Half of a check's two features is one component: no accuracy to speak of."""
        tags = super().__sklearn_tags__()
        for task in (tags.classifier_tags, tags.regressor_tags):
            if task is not None:
                task.poor_score = True
        return tags


class OnlyRegressor(OnlyPredictor, CollaborativeRegressor):
    pass


class OnlyScores(OnlyPredictor, CollaborativeClassifier):
    """For models without probabilities."""

    def decision_function(self, X, *, parties=None):
        return super().decision_function(X, parties=only(X, parties))


class OnlyClassifier(OnlyScores):
    """For models with both."""

    def predict_proba(self, X, *, parties=None):
        return super().predict_proba(X, parties=only(X, parties))


PICKLE = {
    "check_estimators_pickle": (SecretError, "a fitted estimator holds secrets (decision 0006)")
}
OBJECT = {
    "check_dtype_object": (DtypeError, "numbers in an object array would be cast silently"),
}
COLUMN = {
    "check_supervised_y_2d": (LabelError, "a column of labels would be reshaped silently"),
}
FLOATS = {
    "check_estimators_nan_inf": (LabelError, "its classes are floats, ours text or integers"),
}
CHECKED = [
    (OnlyTransformer(), PICKLE | OBJECT),
    (OnlyRegressor(), PICKLE | OBJECT | COLUMN),
    (OnlyScores(estimator="ridge"), PICKLE | OBJECT | COLUMN | FLOATS),
    (OnlyClassifier(estimator=LogisticRegression()), PICKLE | OBJECT | COLUMN | FLOATS),
]
SKIPPED = {
    "check_array_api_input": "runs only where SCIPY_ARRAY_API is set",
    "check_classifier_data_not_an_array": "ends early where pandas is not installed",
    "check_regressor_data_not_an_array": "the same",
}


@pytest.mark.parametrize(
    ("estimator", "expected"), CHECKED, ids=["transformer", "regressor", "family", "classifier"]
)
def test_scikit_learns_checks_pass_but_for_those_listed_with_a_reason(estimator, expected):
    reasons = {name: reason for name, (_, reason) in expected.items()}
    results = check_estimator(estimator, expected_failed_checks=reasons, on_fail=None, on_skip=None)
    failed, by_status = defaultdict(set), defaultdict(set)
    for result in results:
        by_status[result["status"]].add(result["check_name"])
        if result["status"] == "xfail":
            failed[result["check_name"]].add(type(result["exception"]))
    assert by_status["failed"] == set()
    assert by_status["skipped"] <= set(SKIPPED)
    assert failed == {name: {error} for name, (error, _) in expected.items()}
    assert not by_status["passed"] & set(expected)
    assert len(by_status["passed"]) > 35


FACES = [
    CollaborativeClassifier(estimator="ridge", n_components=4, random_state=0),
    CollaborativeRegressor(n_components=4, random_state=0),
    CollaborativeTransformer(n_components=4, random_state=0),
]


@pytest.mark.parametrize("face", FACES, ids=lambda face: type(face).__name__)
@pytest.mark.parametrize("travel", [pickle.dumps, copy.deepcopy])
def test_a_fitted_estimator_does_not_travel(small, face, travel):
    fitted = clone(face).fit(small.X, small.y, parties=small.parties)
    with pytest.raises(SecretError, match=r"does not travel.*\[CB301\]"):
        travel(fitted)


@pytest.mark.parametrize("face", FACES, ids=lambda face: type(face).__name__)
def test_an_unfitted_clone_travels_and_fits_again(small, face):
    fitted = clone(face).fit(small.X, small.y, parties=small.parties)
    other = pickle.loads(pickle.dumps(clone(fitted)))  # noqa: S301 -- our own bytes
    assert not hasattr(other, "round_")
    assert other.get_params() == face.get_params()
    other.fit(small.X, small.y, parties=small.parties)
    np.testing.assert_allclose(
        other.transform(small.X, parties=small.parties),
        fitted.transform(small.X, parties=small.parties),
        rtol=1e-9,
        atol=1e-12,
    )


OPTIONS = {
    "n_components": 5,
    "aligner": "whitened",
    "anchor": "gaussian",
    "n_anchor_rows": 50,
    "basis": "haar",
    "public_rows": None,
    "features": numeric_features(["age", "pulse"]),
    "party_column": "site",
    "random_state": 11,
}
MODEL = {"estimator": LogisticRegression(C=3), "allow_row_carrying": True}


@pytest.mark.parametrize(
    ("face", "options"),
    [
        (CollaborativeClassifier, OPTIONS | MODEL),
        (CollaborativeRegressor, OPTIONS | MODEL),
        (CollaborativeTransformer, OPTIONS),
    ],
)
def test_parameters_are_all_there_and_can_be_set(face, options):
    plain = face()
    assert set(plain.get_params(deep=False)) == set(options)
    assert plain.set_params(**options).get_params(deep=False) == options
    assert face(**options).get_params(deep=False) == options


def test_parameters_of_the_model_inside_can_be_reached():
    model = CollaborativeClassifier(estimator=LogisticRegression())
    assert model.set_params(estimator__C=7).estimator.C == 7


def test_fit_edits_no_parameter(small):
    inside, state = LogisticRegression(), np.random.RandomState(3)
    model = CollaborativeClassifier(estimator=inside, random_state=state)
    before = model.get_params()
    model.fit(small.X, small.y, parties=small.parties)
    after = model.get_params()
    assert all(after[name] is before[name] for name in before)
    assert not hasattr(inside, "coef_")


def test_fit_and_predict_edit_no_input(small):
    rows, labels, parties = small.X.copy(), small.y.copy(), small.parties.copy()
    model = CollaborativeClassifier(estimator="ridge").fit(rows, labels, parties=parties)
    model.predict(rows, parties=parties)
    np.testing.assert_array_equal(rows, small.X)
    np.testing.assert_array_equal(labels, small.y)
    np.testing.assert_array_equal(parties, small.parties)


def test_options_are_named_and_never_positional():
    with pytest.raises(TypeError, match="positional"):
        CollaborativeClassifier("ridge")
