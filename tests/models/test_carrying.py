"""Models that carry training rows are found however deep, and refused; attacks show why."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier, StackingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, SVR, NuSVC, OneClassSVM

from cobasis.errors import RowCarryingError
from cobasis.models.trainer import train
from cobasis.models.tuning import refuse_row_carrying

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(80, 4))
LABELS = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(int)

CARRYING = [
    SVC(),
    NuSVC(),
    SVR(),
    OneClassSVM(),
    KNeighborsClassifier(),
    GaussianProcessClassifier(),
    KernelRidge(),
    LabelSpreading(),
    PLSRegression(2),
    KNNImputer(),
    make_pipeline(Nystroem(n_components=10), LogisticRegression()),
    BaggingClassifier(make_pipeline(BaggingClassifier(SVC()))),
    StackingClassifier([("lr", LogisticRegression())], SVC()),
    GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()),
        {"logisticregression": [LogisticRegression(), SVC()]},
    ),
]


@pytest.mark.parametrize("estimator", CARRYING, ids=lambda each: type(each).__name__)
def test_families_that_store_rows_are_refused_unfitted_and_fitted_whatever_wraps_them(estimator):
    told = r"stores training rows.*'rff'.*\[CB401\]$"
    with pytest.raises(RowCarryingError, match=told) as caught:
        refuse_row_carrying(estimator)
    assert caught.value.exit_code == 2
    with pytest.raises(RowCarryingError):
        refuse_row_carrying(clone(estimator).fit(ROWS, LABELS), ROWS)


WAYS = {
    "all": lambda X: X,
    "Fortran order": np.asfortranarray,
    "turned round": np.transpose,
    "one": lambda X: X[:1],
    "a dictionary": lambda X: {"kept": {"deep": (X[5:9],)}},
    "an object array": lambda X: np.array([None, Inner(X)], dtype=object),
    "a hundredth": lambda X: np.vstack([X[:2], np.zeros((190, X.shape[1]))]),
}
"""Arrays that hold rows of X, wherever they are."""


class Memory(ClassifierMixin, BaseEstimator):
    def __init__(self, *, keep="all"):
        self.keep = keep

    def fit(self, X, y):
        self.kept_ = {**WAYS, "nothing": lambda X: X.mean(axis=0)}[self.keep](X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Inner:
    def __init__(self, held):
        self.held = held


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_family_that_keeps_rows_is_found_by_content_and_only_a_flag_lets_it_pass(way):
    estimator = Memory(keep=way)
    refuse_row_carrying(estimator)
    told = {"model": estimator, "task": "classification", "seed": 0}
    with pytest.raises(RowCarryingError, match=r"Memory holds training rows in an array"):
        train(ROWS, LABELS, **told)
    assert train(ROWS, LABELS, **told, allow_row_carrying=True).predict(ROWS).shape == (80,)


PASSING = [
    Memory(keep="nothing"),
    LogisticRegression(),
    MLPClassifier(hidden_layer_sizes=(4,), max_iter=500, tol=1e-1),
    HistGradientBoostingClassifier(max_iter=5),
    make_pipeline(RBFSampler(n_components=20), LogisticRegression()),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}),
    BaggingClassifier(LogisticRegression(), n_estimators=3),
]


@pytest.mark.parametrize("estimator", PASSING, ids=lambda each: type(each).__name__)
def test_weights_thresholds_and_random_features_pass(estimator):
    refuse_row_carrying(estimator)
    refuse_row_carrying(clone(estimator).fit(ROWS, LABELS), ROWS)
