"""Who was trained on, and who lies in a shared span, by simple thresholds."""

import warnings

import numpy as np
import pytest
from experiments.attacks.membership import (
    MembershipByFit,
    MembershipBySpan,
    MembershipByStoredRows,
)
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from cobasis.errors import OptionError, ShapeError
from cobasis.models.sources import read_chain
from cobasis.models.trainer import TrainedModel
from cobasis.privacy.attacks.scores import score_decision
from privacy.attacks.constructions import cancer, digits, own_basis
from privacy.attacks.rounds import aligned_round

SPANS = [  # n / l; AUC, true positives at 1 %, and how far seeds spread
    (digits, 16, 3, (0.94, 0.36), 0.04),
    (digits, 16, 6, (0.77, 0.06), 0.05),
    (digits, 16, 50, (0.53, 0.01), 0.03),
    (cancer, 10, 5, (0.72, 0.10), 0.06),
]


def by_span(data, *, n_components, n_rows, seed):
    rows = np.random.default_rng(seed).permutation(data()[0])
    members, others = rows[:n_rows], rows[n_rows : 2 * n_rows]
    scores = MembershipBySpan(records=np.vstack([members, others])).decide(
        own_basis(members, n_components)
    )
    return score_decision(scores, np.arange(2 * n_rows) < n_rows)


@pytest.mark.parametrize(("data", "width", "times", "found", "spread"), SPANS)
def test_a_shared_span_of_one_party_tells_its_people_from_others(data, width, times, found, spread):
    told = [
        by_span(data, n_components=width, n_rows=times * width, seed=seed) for seed in range(10)
    ]
    measured = np.mean([(each.auc.value, each.at_one_percent.value) for each in told], axis=0)
    assert measured[0] == pytest.approx(found[0], abs=spread)
    assert measured[1] == pytest.approx(found[1], abs=0.1)


@pytest.mark.parametrize("data", [digits, cancer])
def test_it_is_exact_where_a_party_has_no_more_rows_than_components(data):
    told = by_span(data, n_components=16, n_rows=16, seed=0)
    assert (told.auc.value, told.at_one_percent.value) == (1, 1)


@pytest.fixture(scope="module", params=[(digits, 4, 200, 16), (cancer, 3, 90, 10)])
def asked(request):
    """A round, and people of whom half were in it: all but the attacker's own."""
    data, parties, n_rows, n_components = request.param
    done = aligned_round(data(), parties=parties, n_rows=n_rows, n_components=n_components)
    order = np.random.default_rng(0).permutation(len(data()[0]))
    outside = order[parties * n_rows : 2 * parties * n_rows]
    records = np.vstack([*done.rows[1:], data()[0][outside]])
    labels = np.concatenate([*done.labels[1:], data()[1][outside]])
    members = np.arange(len(records)) < (parties - 1) * n_rows
    return done, records, labels, members


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(max_iter=2000), MLPClassifier((256,), max_iter=60, random_state=0)],
    ids=lambda each: type(each).__name__,
)
def test_models_of_weights_hardly_tell_who_trained_them(asked, estimator):
    done, records, labels, members = asked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the network need not converge
        model = done.fitted(estimator)
    attack = MembershipByFit(shared_map=done.shared_map, records=records, labels=labels)
    told = score_decision(attack.decide(model), members)
    assert 0.45 < told.auc.value < 0.58
    assert told.at_one_percent.value < 0.06


def test_a_model_that_fits_by_heart_tells(asked):
    done, records, labels, members = asked
    model = done.fitted(SVC(C=1e6, gamma=30.0))
    attack = MembershipByFit(shared_map=done.shared_map, records=records, labels=labels)
    assert score_decision(attack.decide(model), members).auc.value > 0.6


def test_stored_rows_tell_without_any_label(asked):
    done, records, _, members = asked
    model = done.fitted(SVC())
    scores = MembershipByStoredRows(shared_map=done.shared_map, records=records).decide(model)
    told = score_decision(scores, members)
    assert told.auc.value > 0.53
    assert told.at_one_percent.value > 0.12


def test_a_regression_is_asked_for_its_error(asked):
    done, records, _, _ = asked
    target = records @ np.ones(records.shape[1])
    rows = records @ done.shared_map
    model = TrainedModel(axes=np.eye(rows.shape[1]), estimator=Ridge().fit(rows, target))
    attack = MembershipByFit(shared_map=done.shared_map, records=records, labels=target)
    np.testing.assert_allclose(attack.decide(model), -((model.predict(rows) - target) ** 2))


@pytest.mark.parametrize("kind", [LogisticRegression(max_iter=2000), RidgeClassifier(), Ridge()])
def test_a_model_that_came_as_a_chain_tells_as_much_and_stores_no_row(asked, kind):
    done, records, labels, _ = asked
    model, regresses = done.fitted(kind), isinstance(kind, Ridge)
    chain = read_chain(
        model, task="regression" if regresses else "classification", n_classes=labels.max() + 1
    )
    known = {"shared_map": done.shared_map, "records": records}
    attack = MembershipByFit(**known, labels=labels)
    np.testing.assert_allclose(attack.decide(chain), attack.decide(model), rtol=1e-9)
    with pytest.raises(ShapeError, match="stores no rows"):
        MembershipByStoredRows(**known).decide(chain)


def test_what_does_not_fit_is_refused(asked):
    done, records, labels, _ = asked
    model = done.fitted(LogisticRegression(max_iter=2000))
    known = {"shared_map": done.shared_map, "records": records}
    with pytest.raises(OptionError, match="no classes of the model"):
        MembershipByFit(**known, labels=labels + 90).decide(model)
    with pytest.raises(ShapeError, match="Give one for each"):
        MembershipByFit(**known, labels=labels[:-1]).decide(model)
    with pytest.raises(ShapeError, match="stores no rows"):
        MembershipByStoredRows(**known).decide(model)
