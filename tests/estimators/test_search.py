"""Cross-validation and search pass `parties` on by `score`; a column of parties goes anywhere."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.metrics import ConfusionMatrixDisplay, accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from cobasis.errors import OptionError
from cobasis.estimators import (
    CollaborativeClassifier,
    CollaborativeRegressor,
    CollaborativeTransformer,
)


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def model():
    return CollaborativeClassifier(estimator="ridge", n_components=24, random_state=0)


def folds(digits, n_splits=5):
    """Stratified by party, so that every party trains and predicts in every fold."""
    return list(StratifiedKFold(n_splits).split(digits.X, digits.parties))


def scored(estimator, digits, **options):
    return cross_val_score(
        estimator,
        digits.X,
        digits.y,
        params={"parties": digits.parties},
        cv=folds(digits),
        **options,
    )


def test_importing_us_leaves_metadata_routing_as_it_was():
    assert not sklearn.get_config()["enable_metadata_routing"]


@pytest.mark.parametrize(
    ("face", "methods"),
    [
        (
            CollaborativeClassifier,
            {"fit", "predict", "score", "transform", "predict_proba", "decision_function"},
        ),
        (CollaborativeRegressor, {"fit", "predict", "score", "transform"}),
        (CollaborativeTransformer, {"fit", "transform"}),
    ],
)
def test_parties_are_requested_by_default(face, methods):
    requests = face().get_metadata_routing()
    requested = {
        method
        for method in methods | {"partial_fit", "inverse_transform"}
        if getattr(requests, method).requests.get("parties") is True
    }
    assert requested == methods


@pytest.mark.usefixtures("routed")
def test_cross_validation_scores_every_fold(digits, model):
    scores = scored(model, digits)
    assert scores.shape == (5,)
    assert scores.min() > 0.75
    assert scores.mean() > 0.88


@pytest.mark.usefixtures("routed")
def test_a_search_compares_components_aligners_and_bases(digits, model):
    grid = {
        "n_components": np.array([8, 24]),
        "aligner": ["odc", "whitened"],
        "basis": ["svd", "consensus"],
    }
    search = GridSearchCV(model, grid, cv=folds(digits)[:2], error_score="raise")
    search.fit(digits.X, digits.y, parties=digits.parties)
    assert search.best_params_["n_components"] == 24
    assert search.best_score_ > 0.9
    assert len(set(search.cv_results_["mean_test_score"])) > 2
    found = search.best_estimator_.predict(digits.X_test, parties=digits.parties_test)
    assert np.mean(found == digits.y_test) > 0.87
    tested = search.score(digits.X_test, digits.y_test, parties=digits.parties_test)
    assert tested == pytest.approx(np.mean(found == digits.y_test))


@pytest.mark.usefixtures("routed")
def test_a_search_in_two_processes_gives_the_same_scores(small):
    """Unfitted estimators travel to workers; fitted ones stay where they are."""
    model = CollaborativeClassifier(estimator="ridge", random_state=0)
    results = []
    for n_jobs in (1, 2):
        search = GridSearchCV(model, {"n_components": [2, 6]}, cv=2, n_jobs=n_jobs)
        search.fit(small.X, small.y, parties=small.parties)
        results.append(search.cv_results_["mean_test_score"])
    np.testing.assert_allclose(results[0], results[1])


@pytest.mark.usefixtures("routed")
def test_a_pipeline_passes_parties_to_its_last_step(digits, model):
    halved = make_pipeline(FunctionTransformer(lambda rows: rows / 2), model)
    halved.fit(digits.X, digits.y, parties=digits.parties)
    assert halved.score(digits.X_test, digits.y_test, parties=digits.parties_test) > 0.87
    np.testing.assert_array_equal(
        halved.predict(digits.X_test, parties=digits.parties_test),
        halved[-1].predict(digits.X_test / 2, parties=digits.parties_test),
    )


@pytest.mark.usefixtures("routed")
@pytest.mark.parametrize(
    "scoring",
    ["accuracy", make_scorer(accuracy_score)],
    ids=["a name", "a scorer"],
)
def test_scorers_of_scikit_learn_cannot_pass_parties_to_predict(digits, model, scoring):
    with pytest.raises(OptionError, match=r"parties is missing.*scoring='accuracy' does not"):
        scored(model, digits, scoring=scoring, error_score="raise")


@pytest.mark.usefixtures("routed")
def test_a_scorer_that_requests_parties_gives_them_to_the_metric_and_not_to_predict(digits, model):
    scoring = make_scorer(accuracy_score).set_score_request(parties=True)
    with pytest.raises(OptionError, match="parties is missing"):
        scored(model, digits, scoring=scoring, error_score="raise")


@pytest.mark.usefixtures("routed")
def test_a_plain_function_gets_no_parties(digits, model):
    def scoring(estimator, X, y, parties):
        return accuracy_score(y, estimator.predict(X, parties=parties))

    with pytest.raises(TypeError, match="'parties'"):
        scored(model, digits, scoring=scoring, error_score="raise")


@pytest.mark.usefixtures("routed")
def test_a_named_scorer_says_so_in_a_warning_where_errors_are_scores(digits, model):
    with pytest.warns(UserWarning, match=r"parties is missing") as caught:
        scores = scored(model, digits, scoring="accuracy")
    assert len(caught) == 5
    assert np.isnan(scores).all()


@pytest.mark.usefixtures("routed")
def test_cross_val_predict_has_no_way_to_pass_parties(digits, model):
    with pytest.raises(OptionError, match="parties is missing"):
        cross_val_predict(
            model, digits.X, digits.y, params={"parties": digits.parties}, cv=folds(digits)
        )


@pytest.fixture
def carried(digits, model):
    """The table with each row's party in a first column, and a model that finds it there."""
    numbers = np.unique(digits.parties, return_inverse=True)[1]
    return clone(model).set_params(party_column=0), np.c_[numbers, digits.X]


@pytest.mark.usefixtures("routed")
def test_cross_validation_is_the_same_where_rows_carry_their_party(digits, model, carried):
    bound, table = carried
    plain = scored(model, digits, error_score="raise")
    found = cross_val_score(bound, table, digits.y, cv=folds(digits), error_score="raise")
    np.testing.assert_allclose(found, plain)


def test_where_rows_carry_their_party_every_tool_works_without_routing(digits, carried):
    bound, table = carried
    found = cross_val_predict(bound, table, digits.y, cv=folds(digits))
    assert np.mean(found == digits.y) > 0.88
    options = {"cv": folds(digits), "error_score": "raise"}
    by_name = cross_validate(bound, table, digits.y, scoring=["accuracy"], **options)
    assert by_name["test_accuracy"].mean() == pytest.approx(np.mean(found == digits.y))
    search = GridSearchCV(bound, {"n_components": [8, 24]}, scoring="accuracy", **options)
    search.fit(table, digits.y)
    assert search.predict(table[:5]).shape == (5,)
    shown = ConfusionMatrixDisplay.from_estimator(search.best_estimator_, table, digits.y)
    assert shown.confusion_matrix.sum() == 500


def test_permutation_importance_works_with_a_column_of_parties_and_with_a_scorer(small):
    model = CollaborativeRegressor(n_components=6, random_state=0)
    drops = permutation_importance(
        model.fit(small.X, small.target, parties=small.parties),
        small.X,
        small.target,
        scoring=lambda each, X, y: each.score(X, y, parties=small.parties),
        random_state=0,
    ).importances_mean
    assert drops.argmax() == 0
    assert drops[:3].min() > 10 * np.abs(drops[3:]).max()
    numbers = np.unique(small.parties, return_inverse=True)[1]
    bound, table = clone(model).set_params(party_column=6), np.c_[small.X, numbers]
    bound.fit(table, small.target)
    again = permutation_importance(bound, table, small.target, random_state=0).importances_mean
    assert again[:6].argmax() == 0


def test_without_metadata_routing_scores_fail_instead_of_being_wrong(digits, model):
    with pytest.raises(OptionError, match="parties is missing"):
        scored(model, digits, error_score="raise")
