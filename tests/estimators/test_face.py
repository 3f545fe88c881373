import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cobasis import ODC
from cobasis.errors import OptionError, RowCarryingError
from cobasis.estimators import (
    CollaborativeClassifier,
    CollaborativeRegressor,
    CollaborativeTransformer,
)
from features.frames import Frame


def ridge(**options):
    return CollaborativeClassifier(**{"estimator": "ridge", "random_state": 0} | options)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "transform"])
def test_results_come_in_the_order_of_the_rows_when_parties_are_mixed(small, method):
    model = CollaborativeClassifier(n_components=3, estimator=LogisticRegression(), random_state=0)
    call = getattr(model.fit(small.X, small.y, parties=small.parties), method)
    mixed = call(small.X, parties=small.parties)
    some = range(0, len(small.X), 9)
    one_by_one = [call(small.X[[i]], parties=small.parties[[i]])[0] for i in some]
    np.testing.assert_allclose(mixed[::9], one_by_one, rtol=1e-9, atol=1e-12)
    assert len(np.unique(np.round(np.ravel(mixed), 6))) > 1


def test_a_row_is_predicted_with_the_basis_of_the_party_that_it_is_given_to(small):
    model = ridge(n_components=4).fit(small.X, small.y, parties=small.parties)
    first, second = (
        model.transform(small.X, parties=np.full(90, name)) for name in model.parties_[:2]
    )
    assert np.abs(first - second).max() > 0.1
    by_hand = model.round_.parties["north"].transform(small.X)
    np.testing.assert_allclose(second, by_hand, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("words", [["no", "yes"], [-3, 8], [False, True]])
def test_labels_come_back_in_the_type_they_had(small, words):
    words = np.array(words)
    model = ridge(n_components=6).fit(small.X, words[small.y], parties=small.parties)
    found = model.predict(small.X, parties=small.parties)
    assert found.dtype == words.dtype
    assert model.classes_.dtype == words.dtype
    np.testing.assert_array_equal(model.classes_, words)
    assert np.mean(found == words[small.y]) > 0.9
    assert (model.round_.agreement.classes == (0, 1)) == (words.dtype == bool)


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


def offered(model):
    return {each for each in ("predict_proba", "decision_function") if hasattr(model, each)}


@pytest.mark.parametrize(
    ("estimator", "methods"),
    [
        (None, {"predict_proba"}),
        ("ridge", {"predict_proba"}),
        (LogisticRegression(), {"predict_proba", "decision_function"}),
        (make_pipeline(StandardScaler(), SVC()), {"decision_function"}),
        (KNeighborsClassifier(), {"predict_proba"}),
    ],
)
def test_scores_are_offered_where_the_model_has_them_fitted_or_not(small, estimator, methods):
    model = CollaborativeClassifier(estimator=estimator)
    assert offered(model) == methods
    model = ridge().fit(small.X, small.y, parties=small.parties)
    assert offered(model.set_params(estimator=estimator)) == {"predict_proba"}


FOREST = RandomForestClassifier(random_state=0)


@pytest.mark.parametrize("estimator", ["svm", KNeighborsClassifier(), FOREST])
def test_a_model_that_stores_rows_needs_to_be_allowed_and_a_forest_does_not(small, estimator):
    """A forest that has no tree yet is falsy, and asking whether it is raises."""
    model = CollaborativeClassifier(estimator=estimator, n_components=6, random_state=0)
    if estimator is not FOREST:
        with pytest.raises(RowCarryingError, match=r"CB401"):
            model.fit(small.X, small.y, parties=small.parties)
        model.set_params(allow_row_carrying=True)
    model.fit(small.X, small.y, parties=small.parties)
    assert model.score(small.X, small.y, parties=small.parties) > 0.9


def test_the_transformer_needs_no_labels_trains_no_model_and_halves_the_features(small):
    model = CollaborativeTransformer(n_components=4, random_state=0)
    aligned = model.fit_transform(small.X, parties=small.parties)
    assert aligned.shape == (90, 4)
    assert model.round_.agreement.task == "representation"
    assert not {"predict", "score"} & set(dir(model))
    names = [f"collaborativetransformer{number}" for number in range(4)]
    assert model.get_feature_names_out().tolist() == names
    for n_features, expected in ((6, 3), (5, 2), (1, 1)):
        model = CollaborativeTransformer().fit(small.X[:, :n_features], parties=small.parties)
        assert model.round_.agreement.n_components == expected


@pytest.mark.filterwarnings("ignore::cobasis.PrivacyWarning")
def test_public_rows_are_used_by_public_bases_and_anchors_only(small):
    public = np.random.default_rng(1).normal(size=(40, 6))
    asked = {"basis": "svd"}, {"basis": "public"}, {"basis": "consensus"}, {"anchor": "smote"}
    for options in asked:
        model = ridge(n_components=3, public_rows=public, **options)
        model.fit(small.X, small.y, parties=small.parties)
        digest = model.round_.agreement.public_rows_sha256
        assert (digest is not None) == (options in ({"basis": "public"}, {"anchor": "smote"}))


def test_fitted_attributes_and_the_agreement_say_what_was_seen(small):
    model = ridge(aligner=ODC(reference="south"))
    model.fit(small.X, small.y, parties=small.parties.tolist())
    assert model.round_.analyst.alignment.target.shaped_by == ("south",)
    assert (model.n_features_in_, hasattr(model, "feature_names_in_")) == (6, False)
    assert model.parties_.tolist() == ["east", "north", "south"]
    assert set(model.round_.analyst.certificate.parties) == {"east", "north", "south"}
    model.fit(Frame(small.X, "abcdef"), small.y, parties=small.parties)
    assert tuple(model.feature_names_in_) == model.round_.agreement.columns == (*"abcdef",)
    model.fit(Frame(small.X, range(6)), small.y, parties=small.parties)
    assert not hasattr(model, "feature_names_in_")


def test_one_random_state_gives_one_model_and_none_gives_another_each_time(small):
    def aligned(random_state):
        np.random.seed(0)  # noqa: NPY002 -- what a careless caller does: it changes nothing
        model = CollaborativeTransformer(n_components=3, random_state=random_state)
        return model.fit_transform(small.X, parties=small.parties)

    np.testing.assert_array_equal(aligned(np.int64(5)), aligned(5))
    state = np.random.RandomState(5)
    for one, other in ((5, 6), (None, None), (state, state)):
        assert np.abs(aligned(one) - aligned(other)).max() > 1e-3


def test_a_round_of_sums_predicts_scores_and_is_searched(small):
    X, y, parties = small.X, small.y, small.parties
    sums = CollaborativeClassifier(release="sums", random_state=0).fit(X, y, parties=parties)
    assert sums.score(X, y, parties=parties) > 0.9
    assert sums.decision_function(X, parties=parties).shape[0] == len(X)
    assert not hasattr(sums, "predict_proba")
    assert sums.transform(X, parties=parties).shape == X.shape
    assert sums.round_.result.total.n_rows == len(X)
    assert len(sums.get_feature_names_out()) == X.shape[1]
    with pytest.raises(OptionError, match="basis 'haar' is for rows"):
        clone(sums).set_params(basis="haar").fit(X, y, parties=parties)
