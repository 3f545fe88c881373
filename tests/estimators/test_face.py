"""The estimators are a face on `simulate`: same round, rows in the callers' order."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import cobasis.estimators
from cobasis import ODC, Round, simulate
from cobasis.errors import LabelError, RowCarryingError
from cobasis.estimators import (
    CollaborativeClassifier,
    CollaborativeRegressor,
    CollaborativeTransformer,
)


def ridge(**options):
    return CollaborativeClassifier(**{"estimator": "ridge", "random_state": 0} | options)


def test_the_public_names_are_sorted_and_complete():
    names = cobasis.estimators.__all__
    assert names == sorted(names)
    assert set(names) == {
        "CollaborativeClassifier",
        "CollaborativeRegressor",
        "CollaborativeTransformer",
    }


def test_together_is_far_better_than_what_a_party_reaches_alone(digits):
    """Alone: the same family on one party's raw rows."""
    model = ridge(n_components=24).fit(digits.X, digits.y, parties=digits.parties)
    together = model.score(digits.X_test, digits.y_test, parties=digits.parties_test)
    alone = []
    for name in model.parties_:
        own = digits.parties == name
        own_model = clone(LogisticRegression(max_iter=2000)).fit(digits.X[own], digits.y[own])
        alone.append(own_model.score(digits.X_test, digits.y_test))
    assert together > np.mean(alone) + 0.07
    assert together > 0.87


def test_fit_is_the_round_that_simulate_runs(small):
    model = CollaborativeRegressor(n_components=6, random_state=3)
    model.fit(small.X, small.target, parties=small.parties)
    rows = {
        str(name): (small.X[small.parties == name], small.target[small.parties == name])
        for name in np.unique(small.parties)
    }
    direct = simulate(rows, rng=np.random.default_rng(3), n_components=6, task="regression")
    expected = direct.parties["north"].predict(small.X)
    found = model.predict(small.X, parties=np.full(90, "north"))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_everything_in_the_round_is_marked_as_simulated(small):
    model = ridge().fit(small.X, small.y, parties=small.parties)
    party = model.round_.parties["east"]
    assert party.prepare(small.X, small.y).simulated


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "transform"])
def test_results_come_in_the_order_of_the_rows_when_parties_are_mixed(small, method):
    model = CollaborativeClassifier(n_components=3, estimator=LogisticRegression(), random_state=0)
    call = getattr(model.fit(small.X, small.y, parties=small.parties), method)
    mixed = call(small.X, parties=small.parties)
    one_by_one = [
        call(small.X[i : i + 1], parties=small.parties[i : i + 1])[0] for i in range(len(small.X))
    ]
    np.testing.assert_allclose(mixed, one_by_one, rtol=1e-9, atol=1e-12)
    assert len(np.unique(np.round(np.ravel(mixed), 6))) > 1


def test_a_row_is_predicted_with_the_basis_of_the_party_that_it_is_given_to(digits):
    model = ridge(n_components=16).fit(digits.X, digits.y, parties=digits.parties)
    first, second = (
        model.transform(digits.X_test, parties=np.full(500, name)) for name in model.parties_[:2]
    )
    assert np.abs(first - second).max() > 0.1
    by_hand = model.round_.parties["clinic1"].transform(digits.X_test)
    np.testing.assert_allclose(second, by_hand, rtol=1e-12, atol=1e-12)


LABELS = {
    "text": np.array(["no", "yes"]),
    "text as objects": np.array(["no", "yes"], dtype=object),
    "integers": np.array([-3, 8]),
    "small integers": np.array([1, 2], dtype=np.uint8),
    "booleans": np.array([False, True]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_in_the_type_they_had(small, kind):
    words = LABELS[kind]
    model = ridge(n_components=6).fit(small.X, words[small.y], parties=small.parties)
    found = model.predict(small.X, parties=small.parties)
    assert found.dtype == words.dtype
    assert model.classes_.dtype == words.dtype
    np.testing.assert_array_equal(model.classes_, words)
    assert np.mean(found == words[small.y]) > 0.9


def test_the_agreement_writes_booleans_as_zero_and_one(small):
    model = ridge().fit(small.X, small.y == 1, parties=small.parties)
    assert model.round_.agreement.classes == (0, 1)


def test_score_is_accuracy_or_r2_and_takes_weights(small):
    weights = np.linspace(0.1, 3, 90)
    classifier = ridge(n_components=1, basis="haar").fit(small.X, small.y, parties=small.parties)
    regressor = CollaborativeRegressor(n_components=2, basis="haar", random_state=0)
    regressor.fit(small.X, small.target, parties=small.parties)
    for model, truth, metric in (
        (classifier, small.y, accuracy_score),
        (regressor, small.target, r2_score),
    ):
        predicted = model.predict(small.X, parties=small.parties)
        plain = model.score(small.X, truth, parties=small.parties)
        weighted = model.score(small.X, truth, parties=small.parties, sample_weight=weights)
        assert plain == pytest.approx(metric(truth, predicted))
        assert weighted == pytest.approx(metric(truth, predicted, sample_weight=weights))
        assert weighted != plain


def test_labels_of_another_length_cannot_be_scored(small):
    model = ridge().fit(small.X, small.y, parties=small.parties)
    with pytest.raises(LabelError, match=r"\(89,\) for 90 rows"):
        model.score(small.X, small.y[:-1], parties=small.parties)


@pytest.mark.parametrize(
    ("estimator", "methods"),
    [
        (None, {"predict_proba"}),
        ("logistic", {"predict_proba"}),
        ("ridge", {"decision_function"}),
        ("mlp", {"predict_proba"}),
        (LogisticRegression(), {"predict_proba", "decision_function"}),
        (make_pipeline(StandardScaler(), SVC()), {"decision_function"}),
        (KNeighborsClassifier(), {"predict_proba"}),
        ("nothing", set()),
    ],
)
def test_scores_are_offered_where_the_model_has_them(estimator, methods):
    model = CollaborativeClassifier(estimator=estimator)
    offered = {each for each in ("predict_proba", "decision_function") if hasattr(model, each)}
    assert offered == methods


def test_scores_are_offered_as_the_fitted_model_has_them(small):
    model = ridge().fit(small.X, small.y, parties=small.parties)
    model.set_params(estimator=KNeighborsClassifier())
    assert hasattr(model, "decision_function")
    assert not hasattr(model, "predict_proba")


def test_probabilities_have_a_column_per_class_and_follow_the_predictions(digits):
    model = CollaborativeClassifier(n_components=20, estimator=LogisticRegression(max_iter=500))
    model.fit(digits.X, digits.y, parties=digits.parties)
    shares = model.predict_proba(digits.X_test, parties=digits.parties_test)
    assert shares.shape == (500, 10)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    predicted = model.predict(digits.X_test, parties=digits.parties_test)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], predicted)


def test_any_estimator_or_pipeline_can_be_inside(small):
    inside = make_pipeline(StandardScaler(), Ridge(alpha=1e-3))
    model = CollaborativeRegressor(estimator=inside, n_components=6, random_state=0)
    model.fit(small.X, small.target, parties=small.parties)
    assert model.score(small.X, small.target, parties=small.parties) > 0.95
    assert not hasattr(inside[-1], "coef_")


@pytest.mark.parametrize("estimator", ["svm", SVC(), KNeighborsClassifier()])
def test_a_model_that_stores_rows_needs_to_be_allowed(small, estimator):
    model = CollaborativeClassifier(estimator=estimator, n_components=6, random_state=0)
    with pytest.raises(RowCarryingError, match=r"CB401"):
        model.fit(small.X, small.y, parties=small.parties)
    model.set_params(allow_row_carrying=True).fit(small.X, small.y, parties=small.parties)
    assert model.score(small.X, small.y, parties=small.parties) > 0.9


def test_the_transformer_needs_no_labels_and_trains_no_model(small):
    model = CollaborativeTransformer(n_components=4, random_state=0)
    aligned = model.fit_transform(small.X, parties=small.parties)
    assert aligned.shape == (90, 4)
    np.testing.assert_array_equal(aligned, model.transform(small.X, parties=small.parties))
    assert model.round_.agreement.task == "representation"
    assert not hasattr(model, "predict")
    assert not hasattr(model, "score")


def test_columns_of_the_representation_have_names(small):
    model = CollaborativeTransformer(n_components=2).fit(small.X, parties=small.parties)
    expected = ["collaborativetransformer0", "collaborativetransformer1"]
    assert model.get_feature_names_out().tolist() == expected


@pytest.mark.parametrize(("n_features", "expected"), [(6, 3), (5, 2), (1, 1)])
def test_half_the_features_are_the_default_number_of_components(small, n_features, expected):
    model = CollaborativeTransformer().fit(small.X[:, :n_features], parties=small.parties)
    assert model.round_.agreement.n_components == expected
    assert model.n_components is None


def test_an_aligner_with_other_options_is_accepted(small):
    model = ridge(aligner=ODC(reference="south"), n_components=6)
    model.fit(small.X, small.y, parties=small.parties)
    assert model.round_.analyst.alignment.target.shaped_by == ("south",)


@pytest.mark.filterwarnings("ignore::cobasis.PrivacyWarning")
def test_public_rows_are_used_by_public_bases_and_anchors_only(small):
    public = np.random.default_rng(1).normal(size=(40, 6))
    asked = {"basis": "svd"}, {"basis": "public"}, {"basis": "consensus"}, {"anchor": "smote"}
    for options in asked:
        model = ridge(n_components=3, public_rows=public, **options)
        model.fit(small.X, small.y, parties=small.parties)
        digest = model.round_.agreement.public_rows_sha256
        assert (digest is not None) == (options in ({"basis": "public"}, {"anchor": "smote"}))


def test_fitted_attributes_say_what_was_seen(small):
    model = ridge().fit(small.X, small.y, parties=small.parties.tolist())
    assert model.n_features_in_ == 6
    assert not hasattr(model, "feature_names_in_")
    assert model.parties_.tolist() == ["east", "north", "south"]
    assert isinstance(model.round_, Round)
    assert set(model.round_.analyst.certificate.parties) == {"east", "north", "south"}


def test_column_names_are_kept_and_go_into_the_agreement(small, frame):
    names = ["age", "pulse", "lactate", "ph", "sodium", "potassium"]
    model = ridge().fit(frame(small.X, names), small.y, parties=small.parties)
    assert model.feature_names_in_.tolist() == names
    assert model.round_.agreement.columns == tuple(names)
    model.fit(frame(small.X, range(6)), small.y, parties=small.parties)
    assert not hasattr(model, "feature_names_in_")


def test_one_random_state_gives_one_model_and_none_gives_another_each_time(small):
    def aligned(random_state):
        model = CollaborativeTransformer(n_components=3, random_state=random_state)
        return model.fit_transform(small.X, parties=small.parties)

    np.testing.assert_array_equal(aligned(5), aligned(5))
    np.testing.assert_array_equal(aligned(np.int64(5)), aligned(5))
    twins = (np.random.RandomState(5), np.random.RandomState(5))
    np.testing.assert_array_equal(aligned(twins[0]), aligned(twins[1]))
    for one, other in ((5, 6), (None, None), (twins[0], twins[0])):
        assert np.abs(aligned(one) - aligned(other)).max() > 1e-3


def test_no_random_state_means_fresh_entropy_whatever_the_global_state(small):
    results = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 -- what a careless caller does
        model = CollaborativeTransformer(n_components=3)
        results.append(model.fit_transform(small.X, parties=small.parties))
    assert np.abs(results[0] - results[1]).max() > 1e-3
