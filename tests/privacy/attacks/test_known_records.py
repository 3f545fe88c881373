"""A few known people give away the others, as the notes measured it, and more of them more."""

import numpy as np
import pytest

from aligners import haar
from cobasis.errors import ShapeError
from cobasis.privacy.attacks import Release
from cobasis.privacy.attacks.known_records import KnownRecords, fewest_known, infer_attribute
from cobasis.privacy.attacks.scores import score_content, score_linkage
from privacy.attacks.constructions import cancer, digits, haar_basis, own_basis, released

CANCER, DIGITS = cancer()[0][:280], digits()[0][:800]
DRAWS = 4
RNG = np.random.default_rng


def attacked(rows, release, known, *, draw):
    places = RNG(draw).permutation(len(rows))[:known]
    return KnownRecords(places=places, records=rows[places]).recover(release), places


def averaged(rows, basis, known):
    """Return R2, cells and re-identification over draws of who is known."""
    found = []
    release = Release(rows=rows @ basis)
    for draw in range(DRAWS):
        recovered, places = attacked(rows, release, known, draw=draw)
        content = score_content(recovered, rows, known=places)
        found.append([content.explained.value, content.cells.value, content.named.value])
    return np.mean(found, axis=0)


NOTES = [  # rows, l, known; R2, cells, re-identification; slack for so few people and splits
    (CANCER, 10, 5, (0.54, 0.74, 0.16), (0.20, 0.08, 0.2)),
    (CANCER, 10, 20, (0.90, 0.94, 0.97), (0.04, 0.03, 0.05)),
    (CANCER, 20, 20, (0.97, 0.99, 1.00), (0.03, 0.02, 0.02)),
    (DIGITS, 16, 5, (0.05, 0.45, 0.006), (0.15, 0.04, 0.03)),
    (DIGITS, 16, 8, (0.26, 0.46, 0.03), (0.15, 0.06, 0.08)),
    (DIGITS, 16, 16, (0.58, 0.53, 0.39), (0.06, 0.04, 0.1)),
    (DIGITS, 16, 32, (0.73, 0.58, 0.74), (0.03, 0.03, 0.06)),
]


@pytest.mark.parametrize(("rows", "size", "known", "printed", "slack"), NOTES)
def test_known_records_get_what_the_notes_measured(rows, size, known, printed, slack):
    found = averaged(rows, own_basis(rows, size), known)
    np.testing.assert_array_less(np.abs(found - printed), slack)


@pytest.mark.parametrize("basis", [own_basis(DIGITS, 16), haar_basis(64, 16)], ids=["svd", "haar"])
def test_more_known_people_are_never_much_worse(basis):
    """Unpenalised least squares are: at k = l its error explodes."""
    found = [averaged(DIGITS, basis, known)[0] for known in (2, 5, 10, 14, 16, 18, 24, 32)]
    assert min(np.diff(found)) > -0.06
    assert found[-1] - found[0] > 0.5


def test_rows_are_exact_with_l_known_people_where_l_is_the_number_of_features():
    basis = haar(9, 30)
    recovered, _ = attacked(CANCER, Release(rows=CANCER @ basis), 60, draw=0)
    np.testing.assert_allclose(recovered.rows, CANCER, atol=1e-4)
    np.testing.assert_allclose(recovered.basis, basis, atol=1e-6)


def test_a_handful_of_known_people_is_enough_to_link_a_list_of_candidates():
    """Linkage comes long before content: ten known people of 280, breast cancer, l = 10."""
    release = Release(rows=CANCER @ own_basis(CANCER, 10))
    basis = attacked(CANCER, release, 10, draw=1)[0].basis
    linked = score_linkage(release.rows, basis, candidates=CANCER, places=np.arange(280))
    assert linked.value > 0.95
    assert linked.chance == 1 / 280


def test_known_records_of_unrelated_rows_score_at_chance():
    noise = RNG(5).normal(size=(800, 16))
    recovered, places = attacked(DIGITS, Release(rows=noise), 64, draw=0)
    found = score_content(recovered, DIGITS, known=places)
    assert found.named.value < 0.01
    assert found.explained.value < 0.02


def test_one_record_and_records_that_are_equal_still_give_numbers():
    release = Release(rows=CANCER @ own_basis(CANCER, 5))
    one = KnownRecords(places=np.array([3]), records=CANCER[[3]]).recover(release)
    np.testing.assert_allclose(one.rows[3], CANCER[3])
    assert np.isfinite(one.basis).all()
    nothing = Release(rows=np.zeros((10, 3)))
    zeros = KnownRecords(places=np.arange(4), records=np.zeros((4, 6))).recover(nothing)
    assert not zeros.rows.any()


def test_the_fewest_known_people_are_where_the_bars_are_crossed():
    found = fewest_known(released(DIGITS, own_basis(DIGITS, 16)), DIGITS, rng=RNG(0), draws=5)
    assert found.tried == 32
    assert 9 <= found.explained <= 18
    assert 6 <= found.named <= 13
    assert averaged(DIGITS, own_basis(DIGITS, 16), found.explained + 4)[0] > 0.45


def test_the_fewest_known_people_are_none_where_even_the_most_are_too_few():
    found = fewest_known(released(DIGITS, own_basis(DIGITS, 4)), DIGITS, rng=RNG(0), draws=5)
    assert (found.explained, found.named, found.tried) == (None, None, 8)


FOUND = [  # known people; AUC from rows, from labels alone
    (cancer, 280, 5, 20, (0.90, 0.70)),
    (cancer, 280, 5, 100, (0.94, 0.70)),
    (digits, 800, 8, 20, (0.83, 0.70)),
    (digits, 800, 8, 100, (0.89, 0.78)),
]


@pytest.mark.parametrize(("data", "n_rows", "n_components", "n_known", "found"), FOUND)
def test_a_few_known_people_give_everybodys_attribute_away(
    data, n_rows, n_components, n_known, found
):
    """The mean over features that split people, of which every third is taken."""
    rows, labels = data()[0][:n_rows], data()[1][:n_rows]
    release = released(rows, own_basis(rows, n_components), labels=labels)
    splitting = np.flatnonzero(np.mean(rows > np.median(rows, axis=0), axis=0) >= 0.2)[::3]
    inferred = [
        infer_attribute(release, rows[:, each], rng=RNG(each), n_known=n_known, draws=3)
        for each in splitting
    ]
    measured = np.mean([(each.auc, each.from_labels) for each in inferred], axis=0)
    np.testing.assert_allclose(measured, found, atol=0.05)


TOY = RNG(1).normal(size=(200, 3))


def inferred(column, *, rows=TOY, labels=None):
    return infer_attribute(Release(rows=rows, labels=labels), column, rng=RNG(0), n_known=20)


def test_an_attribute_that_has_nothing_to_do_with_the_rows_is_not_inferred():
    found = inferred(RNG(2).normal(size=200))
    assert abs(found.auc - 0.5) < 0.06
    assert found.from_labels == 0.5


@pytest.mark.parametrize("kind", [int, float])
def test_what_the_labels_say_anyway_is_no_gain(kind):
    labels = (RNG(3).normal(size=200) > 0).astype(kind)
    found = inferred(labels, labels=labels)
    assert found.from_labels == 1
    assert found.gain < -0.4


def test_a_column_of_the_release_is_read_whatever_the_rotation_and_the_scale():
    turn = np.linalg.qr(RNG(4).normal(size=(3, 3)))[0]
    found, turned = inferred(TOY[:, 0]), inferred(TOY[:, 0], rows=TOY @ turn * 1000)
    assert turned.auc == pytest.approx(found.auc, abs=1e-3)
    assert found.auc > 0.95


def test_where_most_people_have_the_highest_value_the_others_are_looked_for():
    column = (TOY[:, 0] > -0.7).astype(float)
    assert np.median(column) == 1
    assert inferred(column).auc > 0.9


@pytest.mark.parametrize("column", [np.ones(200), np.arange(200) == 7])
def test_nothing_is_inferred_where_all_or_all_but_the_known_are_alike(column):
    with pytest.raises(ShapeError):
        inferred(column.astype(float))
