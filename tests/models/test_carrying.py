"""Models that carry training rows are found however deep; why, and what resists the attack."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, OneClassSVM

from cobasis import simulate
from cobasis.errors import RowCarryingError
from cobasis.models.families import refuse_row_carrying
from cobasis.models.trainer import train

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(80, 4))
LABELS = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(int)

CARRYING = {
    **{
        type(each).__name__: each
        for each in (
            SVC(),
            NuSVC(),
            SVR(),
            OneClassSVM(),
            KNeighborsClassifier(),
            GaussianProcessClassifier(),
            KernelRidge(),
            LabelSpreading(),
            Nystroem(n_components=10),
            PLSRegression(2),
            KNNImputer(),
        )
    },
    "pipeline, first step": make_pipeline(Nystroem(n_components=10), LogisticRegression()),
    "one versus rest": OneVsRestClassifier(SVC()),
    "bagging in bagging": BaggingClassifier(make_pipeline(BaggingClassifier(SVC()))),
    "voting": VotingClassifier([("lr", LogisticRegression()), ("knn", KNeighborsClassifier())]),
    "stacking": StackingClassifier([("lr", LogisticRegression())], SVC()),
    "grid of estimators": GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()),
        {"logisticregression": [LogisticRegression(), SVC()]},
    ),
}


@pytest.mark.parametrize("name", CARRYING)
def test_families_that_store_rows_are_refused_unfitted_and_fitted_whatever_wraps_them(name):
    estimator = CARRYING[name]
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
    "a list of arrays": lambda X: [X[:3], X[3:5]],
    "a dictionary": lambda X: {"kept": {"deep": (X[5:9],)}},
    "an object array": lambda X: np.array([None, Inner(X)], dtype=object),
    "a hundredth": lambda X: np.vstack([X[:2], np.zeros((190, X.shape[1]))]),
    "an attribute of an attribute": lambda X: Inner(Inner(X)),
}
"""Arrays that hold rows of X, wherever they are."""


class Memory(ClassifierMixin, BaseEstimator):
    """A family that nobody listed; it keeps rows in one of several ways."""

    def __init__(self, *, keep="all"):
        self.keep = keep

    def fit(self, X, y):
        self.kept_ = {**WAYS, "nothing": lambda X: X.mean(axis=0)}[self.keep](X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


class Inner:
    """A plain object that holds something."""

    def __init__(self, held):
        self.held = held


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_family_that_keeps_rows_is_found_by_content(way):
    estimator = Memory(keep=way)
    refuse_row_carrying(estimator)
    with pytest.raises(RowCarryingError, match=r"Memory holds training rows in an array"):
        train(ROWS, LABELS, model=estimator, task="classification", seed=0)


PASSING = [
    Memory(keep="nothing"),
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


# ---------------------------------------------------------------- why they are refused

NAMES = ("attacker", "north", "south", "east")


@pytest.fixture(scope="module")
def rows():
    """Four parties of 60 digits each."""
    X, y = load_digits(return_X_y=True)
    picked = np.random.default_rng(0).permutation(len(X))[:240]
    return {
        name: (X[part] / 16, y[part])
        for name, part in zip(NAMES, picked.reshape(4, 60), strict=True)
    }


def attack(rows, model):
    """What the attacker finds in the model that came back, projected back to 64 pixels.

    It uses nothing but its own F_i, its own G_i and the model: every table inside the model
    that is as wide, or as high, as the aligned rows is a list of candidates.
    """
    done = simulate(
        rows, rng=np.random.default_rng(0), n_components=16, model=model, allow_row_carrying=True
    )
    attacker = done.parties["attacker"]
    map_in = attacker._basis._columns @ attacker._return.change_of_basis
    trained = attacker._return.model
    found = []
    tables = vars(trained.estimator) if model == "svm" else vars(trained.layers[0])
    axes = trained.axes if model == "svm" else np.eye(16)  # a chain's are multiplied in
    for value in tables.values():
        if isinstance(value, np.ndarray) and value.ndim == 2:
            found += [each for each in (value, value.T) if each.shape[1] == 16]
    return np.vstack(found) @ axes.T @ np.linalg.pinv(map_in)


def named(recovered, rows):
    """Share of the others' records for which some recovered row is nearest to that record
    among all records, and correlates with it by more than .8."""
    records = np.vstack([rows[name][0] for name in NAMES])
    centre = records.mean(axis=0)

    def unit(table):
        return (table - centre) / np.linalg.norm(table - centre, axis=1, keepdims=True)

    cosines = unit(recovered) @ unit(records).T
    best = cosines.argmax(axis=1)
    hits = {int(index) for index, row in zip(best, cosines, strict=True) if row[index] > 0.8}
    return len([index for index in hits if index >= 60]) / 180


def test_with_its_own_map_a_party_reads_the_others_records_out_of_support_vectors(rows):
    recovered = attack(rows, "svm")
    assert named(recovered, rows) > 0.3


def test_random_features_give_the_same_party_nobodys_record(rows):
    recovered = attack(rows, "rff")
    assert len(recovered) >= 1000
    assert named(recovered, rows) < 0.01


def test_the_measure_names_everybody_in_the_records_and_nobody_in_noise(rows):
    everything = np.vstack([rows[name][0] for name in NAMES])
    assert named(everything, rows) == 1.0
    noise = np.random.default_rng(1).normal(size=(1000, 64))
    assert named(noise, rows) < 0.01
