"""The papers' distance is computed as they define it, and says less than the attacks do."""

import numpy as np
import pytest

from cobasis.errors import DimensionError, ShapeError
from cobasis.privacy.audit.distances import lost, lost_over
from privacy.attacks.constructions import digits, haar_basis, own_basis

ROWS, PUBLIC = digits()[0][:600], digits()[0][600:900]
SIZES = (4, 16, 32)


def test_the_distance_is_the_mean_length_of_what_the_basis_does_not_span():
    basis = own_basis(ROWS, 16)
    distances = np.sort(np.linalg.norm(ROWS - ROWS @ basis @ basis.T, axis=1))
    found = lost(ROWS, basis)
    assert found.mean == pytest.approx(distances.mean())
    assert found.worst == pytest.approx(distances[:6].mean())
    assert found.average_person == pytest.approx(
        np.linalg.norm(ROWS - ROWS.mean(axis=0), axis=1).mean()
    )


def test_any_basis_of_a_span_loses_the_same():
    basis = own_basis(ROWS, 8)
    skewed = basis @ np.random.default_rng(0).normal(size=(8, 8))
    assert lost(ROWS, skewed).mean == pytest.approx(lost(ROWS, basis).mean)


def test_more_components_lose_less_and_all_of_them_nothing():
    found = lost_over(ROWS, sizes=(*SIZES, 64), rng=np.random.default_rng(0), public_rows=PUBLIC)
    assert set(found) == {"svd", "haar", "public", "consensus"}
    for kind, by_size in found.items():
        means = [each.mean for each in by_size.values()]
        assert means == sorted(means, reverse=True), kind
        assert all(each.worst <= each.mean for each in by_size.values())
    assert found["haar"][64].mean == pytest.approx(0, abs=1e-12)
    for size in SIZES:
        assert found["svd"][size].mean <= found["consensus"][size].mean * (1 + 1e-6)
        assert found["svd"][size].mean < found["public"][size].mean < found["haar"][size].mean


def test_a_random_basis_loses_more_than_the_average_person_and_still_links_everybody():
    """Why the distance is no privacy: it ignores what an attacker knows besides."""
    found = lost_over(ROWS, sizes=(16,), rng=np.random.default_rng(0))
    assert "public" not in found
    assert found["haar"][16].mean > found["haar"][16].average_person
    basis = haar_basis(64, 16)
    apart = np.linalg.norm((ROWS @ basis)[:, None] - (ROWS @ basis)[None], axis=2)
    assert (apart + np.eye(600)).min() > 0


def test_sizes_that_rows_cannot_have_are_left_out_and_others_rows_make_the_consensus():
    rng = np.random.default_rng(0)
    found = lost_over(ROWS[:12], sizes=(4, 16), rng=rng, others=[ROWS[100:140], ROWS[200:240]])
    assert list(found["svd"]) == [4]
    assert list(found["consensus"]) == [4]
    assert found["consensus"][4].mean > found["svd"][4].mean
    assert list(found["haar"]) == [4, 16]


@pytest.mark.parametrize("n_rows", [1, 2])
def test_rows_that_cannot_be_dealt_to_three_have_no_consensus(n_rows):
    found = lost_over(ROWS[:n_rows], sizes=(1,), rng=np.random.default_rng(0))
    assert found["consensus"] == {}
    assert list(found["svd"]) == [1]


@pytest.mark.parametrize("sizes", [(), (0, 3), (4, 65)])
def test_sizes_out_of_range_are_refused(sizes):
    with pytest.raises(DimensionError, match="cannot be measured"):
        lost_over(ROWS, sizes=sizes, rng=np.random.default_rng(0))


def test_a_basis_of_other_features_is_refused():
    with pytest.raises(ShapeError, match="expected 60"):
        lost(ROWS, np.eye(60)[:, :3])
