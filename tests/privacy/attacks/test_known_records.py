"""A few known people give away the others, as the notes measured it, and more of them more."""

import numpy as np
import pytest

from aligners import haar
from cobasis.errors import ShapeError
from cobasis.privacy.attacks.known_records import KnownRecords, fewest_known
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.scores import score_content, score_linkage
from privacy.attacks.constructions import cancer, digits, haar_basis, own_basis

CANCER, DIGITS = cancer()[0][:280], digits()[0][:800]
DRAWS = 4


def attacked(rows, release, known, *, draw):
    places = np.random.default_rng(draw).permutation(len(rows))[:known]
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
    release = Release(rows=CANCER @ basis)
    recovered, _ = attacked(CANCER, release, 60, draw=0)
    np.testing.assert_allclose(recovered.rows, CANCER, atol=1e-4)
    np.testing.assert_allclose(recovered.basis, basis, atol=1e-6)


def test_a_handful_of_known_people_is_enough_to_link_a_list_of_candidates():
    """Linkage comes long before content: ten known people of 280, breast cancer, l = 10."""
    release = Release(rows=CANCER @ own_basis(CANCER, 10))
    recovered, _ = attacked(CANCER, release, 10, draw=1)
    linked = score_linkage(
        release.rows, recovered, candidates=CANCER, places=np.arange(len(CANCER))
    )
    assert linked.value > 0.95
    assert linked.chance == 1 / 280


def test_known_records_of_unrelated_rows_score_at_chance():
    noise = np.random.default_rng(5).normal(size=(800, 16))
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


@pytest.mark.parametrize(
    ("places", "records", "reason"),
    [
        ([0, 1, 2], CANCER[:2], "place of its own"),
        ([1, 1], CANCER[:2], "place of its own"),
        ([0, 280], CANCER[:2], "run from 0 to 280"),
        ([-1, 3], CANCER[:2], "run from -1 to 3"),
    ],
)
def test_places_that_are_nobodys_are_refused(places, records, reason):
    release = Release(rows=CANCER[:, :4])
    with pytest.raises(ShapeError, match=reason):
        KnownRecords(places=np.array(places), records=records).recover(release)


def test_the_fewest_known_people_are_where_the_bars_are_crossed():
    release = Release(rows=DIGITS @ own_basis(DIGITS, 16))
    found = fewest_known(release, DIGITS, rng=np.random.default_rng(0))
    assert found.tried == 32
    assert 9 <= found.explained <= 18
    assert 6 <= found.named <= 13
    bare = averaged(DIGITS, own_basis(DIGITS, 16), found.explained + 4)
    assert bare[0] > 0.45


def test_the_fewest_known_people_are_none_where_even_the_most_are_too_few():
    release = Release(rows=DIGITS @ own_basis(DIGITS, 4))
    found = fewest_known(release, DIGITS, rng=np.random.default_rng(0))
    assert (found.explained, found.named, found.tried) == (None, None, 8)
    easy = fewest_known(
        release, DIGITS, rng=np.random.default_rng(0), most=3, explained=-9.0, named=0.0
    )
    assert (easy.explained, easy.named, easy.tried) == (1, 1, 3)
    with pytest.raises(ShapeError, match="the truth"):
        fewest_known(release, DIGITS[:5], rng=np.random.default_rng(0))
