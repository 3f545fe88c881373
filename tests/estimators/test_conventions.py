"""scikit-learn's own checks, and what follows from secrets that do not travel."""

import copy
import pickle
from collections import defaultdict
from functools import wraps

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from cobasis.errors import DtypeError, LabelError, SecretError
from cobasis.estimators import (
    CollaborativeClassifier,
    CollaborativeRegressor,
    CollaborativeTransformer,
)


def alone(method):
    """Give all rows to one party, because scikit-learn's checks know of none."""

    @wraps(method)
    def call(self, X, *y, parties=None, **options):
        if parties is None:
            shape = getattr(X, "shape", ()) or np.asarray(X).shape
            parties = np.full(shape[0] if shape else 0, "only")
        return method(self, X, *y, parties=parties, **options)

    return call


def tags(self):
    """Half of a check's two features is one component: no accuracy to speak of."""
    found = super(type(self), self).__sklearn_tags__()
    for task in (found.classifier_tags, found.regressor_tags):
        if task is not None:
            task.poor_score = True
    return found


def lone(name, face, *methods):
    """An estimator whose methods need no `parties`, and nothing else is changed."""
    named = ("fit", "fit_transform", "transform", *methods)
    changed = {each: alone(getattr(face, each)) for each in named}
    return type(name, (face,), {**changed, "__sklearn_tags__": tags, "__module__": __name__})


PREDICTS = ("predict", "score")
OnlyTransformer = lone("OnlyTransformer", CollaborativeTransformer)
OnlyRegressor = lone("OnlyRegressor", CollaborativeRegressor, *PREDICTS)
OnlyScores = lone("OnlyScores", CollaborativeClassifier, *PREDICTS, "decision_function")
OnlyClassifier = lone(
    "OnlyClassifier", CollaborativeClassifier, *PREDICTS, "decision_function", "predict_proba"
)

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


@pytest.mark.parametrize(
    "face",
    [CollaborativeClassifier(estimator="ridge"), CollaborativeRegressor(), OnlyTransformer()],
    ids=lambda face: type(face).__name__,
)
def test_a_fitted_estimator_does_not_travel_and_an_unfitted_clone_does(small, face):
    given = {"parties": small.parties}
    face = face.set_params(random_state=0)
    fitted = clone(face).fit(small.X, small.y, **given)
    for travel in (pickle.dumps, copy.deepcopy):
        with pytest.raises(SecretError, match=r"does not travel.*\[CB301\]"):
            travel(fitted)
    other = pickle.loads(pickle.dumps(clone(fitted)))  # noqa: S301 -- our own bytes
    assert not hasattr(other, "round_")
    assert other.get_params() == face.get_params()
    found = other.fit(small.X, small.y, **given).transform(small.X, **given)
    np.testing.assert_allclose(found, fitted.transform(small.X, **given), rtol=1e-9, atol=1e-12)


def test_fit_and_predict_edit_no_parameter_and_no_input(small):
    inside, state = LogisticRegression(), np.random.RandomState(3)
    model = CollaborativeClassifier(estimator=inside, random_state=state)
    before, given = model.get_params(), (small.X.copy(), small.y.copy(), small.parties.copy())
    rows, labels, parties = given
    model.fit(rows, labels, parties=parties).predict(rows, parties=parties)
    assert all(value is before[name] for name, value in model.get_params().items())
    assert not hasattr(inside, "coef_")
    for found, kept in zip(given, (small.X, small.y, small.parties), strict=True):
        np.testing.assert_array_equal(found, kept)


def test_parameters_of_the_model_inside_can_be_reached():
    model = CollaborativeClassifier(estimator=LogisticRegression())
    assert model.set_params(estimator__C=7).estimator.C == 7


def test_options_are_named_and_never_positional():
    with pytest.raises(TypeError, match="positional"):
        CollaborativeClassifier("ridge")
