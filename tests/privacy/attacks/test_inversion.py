"""With its own map a party reads the others' records out of a model that stores rows."""

import numpy as np
import pytest
from experiments.attacks.inversion import ModelInversion, stored_rows
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from cobasis.errors import RowCarryingError
from cobasis.models.row_carrying import refuse_row_carrying
from cobasis.privacy.attacks.scores import nearest, score_content
from privacy.attacks.constructions import cancer, digits
from privacy.attacks.rounds import aligned_round


@pytest.fixture(scope="module")
def small():
    """Three parties of 60 digits."""
    return aligned_round(digits(), parties=3, n_rows=60, n_components=16)


def named(recovered, everybody, places):
    return float(np.mean(nearest(recovered.rows, among=everybody) == places))


SIZES = {
    "digits": (digits, {"parties": 4, "n_rows": 300, "n_components": 16}),
    "cancer": (cancer, {"parties": 3, "n_rows": 130, "n_components": 10}),
}
FOUND = [  # stored share, R2, re-identified
    ("digits", True, (0.48, 0.81, 0.93)),
    ("digits", False, (0.49, 0.77, 0.90)),
    ("cancer", True, (0.20, 0.90, 0.98)),
    ("cancer", False, (0.20, 0.86, 0.98)),
]


@pytest.mark.parametrize(("name", "shared", "found"), FOUND)
def test_support_vectors_give_the_others_records_away(name, shared, found):
    data, sizes = SIZES[name]
    done = aligned_round(data(), shared=shared, **sizes)
    model = done.fitted(SVC())
    support = model.estimator.support_
    others = np.flatnonzero(support >= sizes["n_rows"])
    back = ModelInversion(shared_map=done.shared_map).recover(model)
    everybody = np.vstack(done.rows)
    theirs = type(back)(rows=back.rows[others])
    measured = (
        len(others) / (len(everybody) - sizes["n_rows"]),
        score_content(theirs, everybody[support[others]]).explained.value,
        named(theirs, everybody, support[others]),
    )
    np.testing.assert_allclose(measured, found, atol=0.05)


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(),
        GaussianProcessRegressor(),
        GaussianProcessClassifier(),
        KernelRidge(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_neighbours_gaussian_processes_and_kernel_ridge_store_everybody(small, estimator):
    rows = stored_rows(small.fitted(estimator))
    np.testing.assert_allclose(rows, np.vstack(small.aligned), atol=1e-12)


WEIGHTS = [
    LogisticRegression(max_iter=2000),
    RidgeClassifier(),
    MLPClassifier(max_iter=500, tol=1e-2),
    make_pipeline(RBFSampler(random_state=0), RidgeClassifier()),
    HistGradientBoostingClassifier(max_iter=3),
]


@pytest.mark.parametrize("estimator", WEIGHTS, ids=lambda each: type(each).__name__)
def test_families_of_weights_give_nobody_away_to_it(small, estimator):
    model = small.fitted(estimator)
    refuse_row_carrying(model.estimator, np.vstack(small.aligned) @ model.axes)
    assert len(ModelInversion(shared_map=small.shared_map).recover(model).rows) == 0


def test_what_it_opens_is_refused(small):
    for estimator in (SVC(), KNeighborsClassifier(), GaussianProcessRegressor(), KernelRidge()):
        model = small.fitted(estimator)
        assert len(stored_rows(model)) > 50
        with pytest.raises(RowCarryingError):
            refuse_row_carrying(model.estimator)


def test_two_models_in_one_hand_say_who_came():
    done = aligned_round(digits(), parties=4, n_rows=300, n_components=16)
    before, after = done.fitted(SVC(), parties=3), done.fitted(SVC())
    came = ModelInversion(shared_map=done.shared_map).recover_newcomers(after, before)
    everybody = np.vstack(done.aligned) @ done.shared_map.T
    places = nearest(came.rows, among=everybody)
    assert np.mean(places >= 900) == pytest.approx(0.95, abs=0.04)
    assert np.sum(places >= 900) / 300 == pytest.approx(0.5, abs=0.06)


def test_nobody_came_between_a_model_and_itself(small):
    model = small.fitted(SVC())
    inversion = ModelInversion(shared_map=small.shared_map)
    assert len(inversion.recover_newcomers(model, model).rows) == 0
    everyone = inversion.recover_newcomers(model, small.fitted(RidgeClassifier()))
    assert len(everyone.rows) == len(stored_rows(model))
