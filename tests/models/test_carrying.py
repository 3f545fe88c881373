"""Models that carry training rows are found by family and by content, however deep."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, RadiusNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

from cobasis.errors import RowCarryingError
from cobasis.models.row_carrying import refuse_row_carrying, stored_bytes
from cobasis.models.trainer import train

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(80, 4))
LABELS = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(int)

CARRYING = [
    SVC(),
    SVC(kernel="linear"),
    NuSVC(),
    SVR(),
    OneClassSVM(),
    KNeighborsClassifier(),
    KNeighborsRegressor(),
    RadiusNeighborsClassifier(),
    GaussianProcessClassifier(),
    GaussianProcessRegressor(),
    KernelRidge(),
    LabelSpreading(),
    Nystroem(n_components=10),
]

WRAPPED = {
    "pipeline": make_pipeline(StandardScaler(), SVC()),
    "pipeline, first step": make_pipeline(Nystroem(n_components=10), LogisticRegression()),
    "grid search": GridSearchCV(SVC(), {"C": [1.0, 10.0]}),
    "grid search over a pipeline": GridSearchCV(
        make_pipeline(StandardScaler(), SVC()), {"svc__C": [1.0]}
    ),
    "one versus rest": OneVsRestClassifier(SVC()),
    "one versus one": OneVsOneClassifier(KNeighborsClassifier()),
    "bagging": BaggingClassifier(SVC(), n_estimators=3),
    "voting": VotingClassifier([("lr", LogisticRegression()), ("knn", KNeighborsClassifier())]),
    "stacking": StackingClassifier([("lr", LogisticRegression())], SVC()),
    "calibrated": CalibratedClassifierCV(SVC()),
    "grid of estimators": GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()),
        {"logisticregression": [LogisticRegression(), SVC()]},
    ),
}


def name_of(estimator):
    return f"{type(estimator).__name__}{estimator.get_params().get('kernel', '')}"


@pytest.mark.parametrize("estimator", CARRYING, ids=name_of)
def test_families_that_store_rows_are_refused_unfitted_and_fitted(estimator):
    with pytest.raises(RowCarryingError, match=r"stores training rows.*\[CB401\]$"):
        refuse_row_carrying(estimator)
    with pytest.raises(RowCarryingError):
        refuse_row_carrying(clone(estimator).fit(ROWS, LABELS), ROWS)


@pytest.mark.parametrize("wrapper", WRAPPED)
def test_a_wrapper_hides_none_of_them(wrapper):
    estimator = WRAPPED[wrapper]
    with pytest.raises(RowCarryingError):
        refuse_row_carrying(estimator)
    with pytest.raises(RowCarryingError):
        refuse_row_carrying(clone(estimator).fit(ROWS, LABELS), ROWS)


class Memory(ClassifierMixin, BaseEstimator):
    """A family that nobody listed; it keeps rows in one of several ways."""

    def __init__(self, *, keep="all"):
        self.keep = keep

    def fit(self, X, y):
        ways = {
            "all": X,
            "a copy": X.copy(),
            "Fortran order": np.asfortranarray(X),
            "one": X[:1],
            "a list of arrays": [X[:3], X[3:5]],
            "a dictionary": {"kept": {"deep": (X[5:9],)}},
            "an object array": np.array([None, Ridge().fit(X, y), Inner(X)], dtype=object),
            "among others": np.vstack([X[:5], np.zeros((200, X.shape[1]))]),
            "an attribute of an attribute": Inner(Inner(X)),
            "nothing": X.mean(axis=0),
        }
        self.kept_ = ways[self.keep]
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Inner:
    """A plain object that holds something."""

    def __init__(self, held):
        self.held = held


WAYS = [
    "all",
    "a copy",
    "Fortran order",
    "one",
    "a list of arrays",
    "a dictionary",
    "an object array",
    "among others",
    "an attribute of an attribute",
]


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_family_that_keeps_rows_is_found_by_content(way):
    estimator = Memory(keep=way)
    refuse_row_carrying(estimator)
    with pytest.raises(RowCarryingError, match=r"Memory holds training rows in an array"):
        refuse_row_carrying(estimator.fit(ROWS, LABELS), ROWS)
    with pytest.raises(RowCarryingError):
        train(ROWS, LABELS, model=Memory(keep=way), task="classification", seed=0)


def test_what_keeps_no_rows_passes_the_search_by_content():
    refuse_row_carrying(Memory(keep="nothing").fit(ROWS, LABELS), ROWS)


PASSING = [
    LogisticRegression(),
    Ridge(),
    SGDClassifier(),
    LinearSVC(),
    MLPClassifier(hidden_layer_sizes=(4,), max_iter=500, tol=1e-1),
    HistGradientBoostingClassifier(max_iter=5),
    make_pipeline(RBFSampler(n_components=20), LogisticRegression()),
    make_pipeline(StandardScaler(), LogisticRegression()),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}),
    OneVsRestClassifier(LogisticRegression()),
    BaggingClassifier(LogisticRegression(), n_estimators=3),
]


@pytest.mark.parametrize("estimator", PASSING, ids=lambda each: type(each).__name__)
def test_weights_thresholds_and_random_features_pass(estimator):
    refuse_row_carrying(estimator)
    refuse_row_carrying(clone(estimator).fit(ROWS, LABELS), ROWS)


def test_the_flag_lets_a_row_carrying_model_through_and_only_the_flag():
    with pytest.raises(RowCarryingError):
        train(ROWS, LABELS, model="svm", task="classification", seed=0)
    options = {"task": "classification", "seed": 0, "allow_row_carrying": True}
    for model in ("svm", SVC(), Memory()):
        assert train(ROWS, LABELS, model=model, **options).predict(ROWS).shape == (80,)


def test_the_message_names_the_way_out():
    with pytest.raises(RowCarryingError, match="'rff'") as caught:
        refuse_row_carrying(SVC())
    assert caught.value.exit_code == 2


def test_stored_bytes_counts_each_array_once():
    held = Inner(np.zeros(100))
    held.again = held.held
    held.more = [np.zeros((2, 3)), {"deep": np.zeros(1, dtype=np.float32)}, "text", 7]
    held.itself = held
    assert stored_bytes(held) == 800 + 48 + 4
    fitted = LogisticRegression().fit(ROWS, LABELS)
    least = fitted.coef_.nbytes + fitted.intercept_.nbytes
    assert least <= stored_bytes(fitted) < least + 200


def test_nesting_hides_nothing():
    model = SVC()
    for _ in range(4):
        model = make_pipeline(BaggingClassifier(model))
    with pytest.raises(RowCarryingError):
        refuse_row_carrying(model)


@pytest.mark.parametrize("model", [PLSRegression(2), KNNImputer()], ids=str)
def test_families_that_store_rows_under_another_name_are_refused(model):
    with pytest.raises(RowCarryingError, match="stores training rows"):
        refuse_row_carrying(model)


@pytest.mark.parametrize("turn", [np.asarray, np.transpose], ids=["rows", "columns"])
def test_a_hundredth_of_an_array_is_enough_whichever_way_it_lies(turn):
    rows = np.random.default_rng(0).normal(size=(1000, 5))
    held = np.vstack([rows[:10], np.zeros((990, 5))])
    keeper = type("Keeper", (), {})()
    keeper.kept_ = turn(held)
    with pytest.raises(RowCarryingError, match="holds training rows"):
        refuse_row_carrying(keeper, rows)
