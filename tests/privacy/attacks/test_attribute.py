"""Knowing one fact of twenty people is enough to read it of everybody else."""

import numpy as np
import pytest

from cobasis.errors import OptionError, ShapeError
from cobasis.privacy.attacks.attribute import KnownAttribute, infer_attribute
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.scores import score_decision
from privacy.attacks.constructions import cancer, digits, own_basis, released

FOUND = [  # known people; AUC from rows, from labels alone
    (cancer, 280, 5, 20, (0.90, 0.70)),
    (cancer, 280, 5, 100, (0.94, 0.70)),
    (digits, 800, 8, 20, (0.83, 0.70)),
    (digits, 800, 8, 100, (0.89, 0.78)),
]


def tried(data, *, n_rows, n_components, n_known):
    """The mean over features that split people, of which every third is taken."""
    rows, labels = data()[0][:n_rows], data()[1][:n_rows]
    release = released(rows, own_basis(rows, n_components), labels=labels)
    splitting = np.flatnonzero(np.mean(rows > np.median(rows, axis=0), axis=0) >= 0.2)[::3]
    found = [
        infer_attribute(
            release, rows[:, column], rng=np.random.default_rng(column), n_known=n_known, draws=3
        )
        for column in splitting
    ]
    return np.mean([(each.auc, each.from_labels) for each in found], axis=0)


@pytest.mark.parametrize(("data", "n_rows", "n_components", "n_known", "found"), FOUND)
def test_a_few_known_people_give_everybodys_attribute_away(
    data, n_rows, n_components, n_known, found
):
    measured = tried(data, n_rows=n_rows, n_components=n_components, n_known=n_known)
    np.testing.assert_allclose(measured, found, atol=0.05)


def toy(labels=None):
    rows = np.random.default_rng(1).normal(size=(200, 3))
    return Release(rows=rows, labels=labels)


def test_an_attribute_that_has_nothing_to_do_with_the_rows_is_not_inferred():
    coin = np.random.default_rng(2).normal(size=200)
    found = infer_attribute(toy(), coin, rng=np.random.default_rng(0))
    assert abs(found.auc - 0.5) < 0.06
    assert found.from_labels == 0.5


@pytest.mark.parametrize("kind", [int, float])
def test_what_the_labels_say_anyway_is_no_gain(kind):
    release = toy((np.random.default_rng(3).normal(size=200) > 0).astype(kind))
    found = infer_attribute(release, release.labels, rng=np.random.default_rng(0))
    assert found.from_labels == 1
    assert found.gain < -0.4


def test_a_column_of_the_release_is_read_whatever_the_rotation_and_the_scale():
    release = toy()
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    turned = Release(rows=release.rows @ turn * 1000)
    places = np.arange(40)
    known = KnownAttribute(places=places, values=release.rows[:40, 0] > 0)
    scores = known.decide(turned)
    np.testing.assert_allclose(scores, known.decide(release), atol=1e-3)
    assert score_decision(scores[40:], release.rows[40:, 0] > 0).auc.value > 0.97


def test_where_most_people_have_the_highest_value_the_others_are_looked_for():
    release = toy()
    column = (release.rows[:, 0] > -0.7).astype(float)
    assert np.median(column) == 1
    assert infer_attribute(release, column, rng=np.random.default_rng(0)).auc > 0.9


def test_what_cannot_be_asked_is_refused():
    release, rng = toy(), np.random.default_rng(0)
    with pytest.raises(ShapeError, match="one value in this column"):
        infer_attribute(release, np.ones(200), rng=rng)
    with pytest.raises(ShapeError, match="200 people were released"):
        infer_attribute(release, np.ones(199), rng=rng)
    with pytest.raises(ShapeError, match="smaller n_known"):
        infer_attribute(release, np.arange(200.0), rng=rng, n_known=200)
    with pytest.raises(OptionError, match="at least 2 people and 1 draw"):
        infer_attribute(release, np.arange(200.0), rng=rng, n_known=1)
    with pytest.raises(OptionError, match="at least 2 people and 1 draw"):
        infer_attribute(release, np.arange(200.0), rng=rng, draws=0)
    for places, values in (([0, 1], [True, True]), ([0, 1], [True]), ([0, 200], [True, False])):
        with pytest.raises(ShapeError, match="both kinds of people"):
            KnownAttribute(places=np.array(places), values=np.array(values)).decide(release)
