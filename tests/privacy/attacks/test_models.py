"""What a model shows a party: the others' records, who was trained on, who lies in a span."""

from dataclasses import replace

import numpy as np
import pytest
from experiments.attacks.models import ModelInversion, by_fit, by_span, by_stored_rows, stored_rows
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from cobasis.errors import RowCarryingError
from cobasis.models.tuning import refuse_row_carrying
from cobasis.privacy.attacks.scores import nearest, score_content, told_apart
from privacy.attacks.constructions import (
    aligned_round,
    cancer,
    digits,
    fitted,
    members_told,
    own_basis,
)


@pytest.fixture(scope="module")
def small():
    return aligned_round(digits(), 3, 60, 16)


def likened(rows, done):
    """The share of the others' records that a row goes with by .8, and with none more."""
    everybody, n_own = np.vstack(done.rows), len(done.rows[0])
    average = everybody.mean(axis=0)
    likeness = cosine_similarity(rows - average, everybody - average)
    best = likeness.argmax(axis=1)[likeness.max(axis=1) > 0.8]
    return len({*best[best >= n_own]}) / (len(everybody) - n_own)


@pytest.mark.parametrize(
    ("data", "sizes", "shared", "found"),  # stored share, R2, re-identified
    [
        (digits, (4, 300, 16), False, (0.49, 0.77, 0.90)),
        (cancer, (3, 130, 10), True, (0.20, 0.90, 0.98)),
    ],
)
def test_support_vectors_give_the_others_records_away(data, sizes, shared, found):
    parties, n_rows, n_components = sizes
    done = aligned_round(data(), parties, n_rows, n_components, shared=shared)
    model, everybody = fitted(done, SVC()), np.vstack(done.rows)
    support = model.estimator.support_
    others = np.flatnonzero(support >= n_rows)
    back = ModelInversion(shared_map=done.shared_map).recover(model)
    theirs, places = replace(back, rows=back.rows[others]), support[others]
    measured = (
        len(others) / (len(everybody) - n_rows),
        score_content(theirs, everybody[places]).explained.value,
        np.mean(nearest(theirs.rows, among=everybody) == places),
    )
    np.testing.assert_allclose(measured, found, atol=0.05)
    with pytest.raises(RowCarryingError):
        refuse_row_carrying(model.estimator)


STORING = (
    *(KNeighborsClassifier, KernelRidge),
    *(GaussianProcessRegressor, GaussianProcessClassifier),
)


@pytest.mark.parametrize("family", STORING)
def test_neighbours_gaussian_processes_and_kernel_ridge_store_everybody_and_are_refused(
    small, family
):
    model = fitted(small, family())
    np.testing.assert_allclose(stored_rows(model), np.vstack(small.aligned), atol=1e-12)
    with pytest.raises(RowCarryingError):
        refuse_row_carrying(model.estimator)


OF_WEIGHTS = (
    MLPClassifier(max_iter=500, tol=1e-2),
    RidgeClassifier(),
    HistGradientBoostingClassifier(max_iter=3),
)


@pytest.mark.parametrize("estimator", OF_WEIGHTS, ids=lambda each: type(each).__name__)
def test_families_of_weights_give_nobody_away_to_it(small, estimator):
    model = fitted(small, estimator)
    refuse_row_carrying(model.estimator, np.vstack(small.aligned) @ model.axes)
    attack = ModelInversion(shared_map=small.shared_map)
    assert len(attack.recover(model).rows) == 0
    if not isinstance(estimator, HistGradientBoostingClassifier):  # columns of weights are no rows
        columns = getattr(model.estimator, "coefs_", None)
        first = model.axes @ (columns[0] if columns else model.estimator.coef_.T)
        assert likened(first.T @ np.linalg.pinv(small.shared_map), small) < 0.01
        assert likened(attack.recover(fitted(small, SVC())).rows, small) > 0.3
        assert likened(np.vstack(small.rows), small) == 1


def test_two_models_in_one_hand_say_who_came(small):
    done = aligned_round(digits(), 4, 300, 16)
    before, after = fitted(done, SVC(), parties=3), fitted(done, SVC())
    came = ModelInversion(shared_map=done.shared_map).recover_newcomers(after, before)
    everybody = np.vstack(done.aligned) @ done.shared_map.T
    places = nearest(came.rows, among=everybody)
    assert np.mean(places >= 900) == pytest.approx(0.95, abs=0.04)
    assert np.sum(places >= 900) / 300 == pytest.approx(0.5, abs=0.06)
    model, inversion = fitted(small, SVC()), ModelInversion(shared_map=small.shared_map)
    assert len(inversion.recover_newcomers(model, model).rows) == 0


@pytest.mark.parametrize(
    ("data", "width", "times", "found", "spread"),
    [  # n / l; AUC, true positives at 1 %, and how far seeds spread
        (digits, 16, 1, (1, 1), 1e-9),
        (digits, 16, 3, (0.94, 0.36), 0.04),
        (digits, 16, 6, (0.77, 0.06), 0.05),
        (cancer, 10, 5, (0.72, 0.10), 0.06),
    ],
)
def test_a_shared_span_of_one_party_tells_its_people_from_others(data, width, times, found, spread):
    told, count = [], times * width
    for seed in range(10):
        rows = np.random.default_rng(seed).permutation(data()[0])[: 2 * count]
        scores = by_span(own_basis(rows[:count], width), rows)
        told.append(members_told(scores, np.arange(2 * count) < count))
    np.testing.assert_array_less(np.abs(np.mean(told, axis=0) - found), (spread, 0.1))


@pytest.fixture(scope="module", params=[(digits, 4, 200, 16), (cancer, 3, 90, 10)])
def asked(request):
    """A round, and people of whom half were in it: all but the attacker's own."""
    data, parties, n_rows, n_components = request.param
    done = aligned_round(data(), parties, n_rows, n_components)
    order = np.random.default_rng(0).permutation(len(data()[0]))
    outside = order[parties * n_rows : 2 * parties * n_rows]
    records = np.vstack([*done.rows[1:], data()[0][outside]])
    labels = np.concatenate([*done.labels[1:], data()[1][outside]])
    members = np.arange(len(records)) < (parties - 1) * n_rows
    return done, records @ done.shared_map, labels, members


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")  # the network need not converge
@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(max_iter=2000), MLPClassifier((256,), max_iter=60, random_state=0)],
    ids=lambda each: type(each).__name__,
)
def test_models_of_weights_hardly_tell_who_trained_them(asked, estimator):
    done, aligned, labels, members = asked
    auc, at_one_percent = members_told(by_fit(fitted(done, estimator), aligned, labels), members)
    assert 0.45 < auc < 0.58
    assert at_one_percent < 0.06


def test_stored_rows_tell_without_any_label(asked):
    """And with labels a model that fits by heart."""
    done, aligned, labels, members = asked
    by_heart = by_fit(fitted(done, SVC(C=1e6, gamma=30.0)), aligned, labels)
    assert told_apart(by_heart, members) > 0.6
    auc, at_one_percent = members_told(by_stored_rows(fitted(done, SVC()), aligned), members)
    assert auc > 0.53
    assert at_one_percent > 0.12
