"""Smote anchors: on lines between public rows, the same bits at every party."""

import warnings

import numpy as np
import pytest

from aligners import GOLDEN, key_of
from cobasis.algorithms.anchors import NEIGHBOURS, STRETCH, draw_anchor, mixed_rows, nearest
from cobasis.errors import PrivacyWarning
from cobasis.linalg.rng import KeyStream

POOL = np.random.default_rng(0).normal(size=(40, 6)) * [1, 5, 0.1, 1, 1, 1]


GOLDEN_FIRST = [[4.717525367737014, 9.435050735474029], [1.2278046613945282, 2.4556093227890563]]


def stream(number=1):
    return KeyStream(key_of(number), "tests/smote")


def drawn(pool=POOL, *, number=1, n_rows=90):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        shape = {"n_rows": n_rows, "n_features": 6}
        return draw_anchor("smote", key=key_of(number), **shape, public_rows=pool).rows


def test_every_row_lies_on_a_line_from_a_public_row_through_one_of_its_nearest():
    near = nearest(POOL, np.arange(40))
    lines, steps = POOL[near] - POOL[:, None], []
    for row in mixed_rows(POOL, stream=stream(), n_rows=100):
        away = (row - POOL)[:, None]
        share = np.sum(lines * away, axis=2) / np.sum(lines**2, axis=2)
        misses = np.linalg.norm(away - share[:, :, None] * lines, axis=2)
        misses[(share < -1e-9) | (share > STRETCH)] = np.inf
        assert misses.min() < 1e-12
        steps.append(share.flat[misses.argmin()])
    assert 1 < max(steps) < STRETCH
    assert min(steps) < 0.2


def test_neighbours_are_those_of_the_standardised_rows_nearest_first():
    standard = (POOL - POOL.mean(axis=0)) / POOL.std(axis=0)
    apart = np.linalg.norm(standard[:, None] - standard, axis=2)
    np.fill_diagonal(apart, np.inf)
    np.testing.assert_array_equal(
        nearest(POOL, np.arange(40)), np.argsort(apart, axis=1)[:, :NEIGHBOURS]
    )


def test_rows_that_are_equally_near_come_in_the_order_of_their_places():
    """Fingerprints tie often; rounding must not decide, or parties had different anchors."""
    rng = np.random.default_rng(1)
    pool = np.repeat((rng.random((10, 30)) < 0.4).astype(float), 4, axis=0)
    pool[:, 0] = 7.0  # a column that does not vary tells nobody apart
    near = nearest(pool, np.arange(40))
    for place, found in enumerate(near):
        copies = [other for other in range(place // 4 * 4, place // 4 * 4 + 4) if other != place]
        assert found[:3].tolist() == copies
        assert all(found[k] + 1 == found[k + 1] for k in range(3, 25) if (k - 3) % 4 < 3 and k < 24)


def test_neighbours_do_not_depend_on_the_order_in_which_a_machine_adds():
    """The features in another order are other sums, and the same distances."""
    rng = np.random.default_rng(2)
    pool = rng.normal(size=(60, 300)) * rng.uniform(0.01, 100, size=300)
    turned = pool[:, rng.permutation(300)]
    places = np.arange(60)
    np.testing.assert_array_equal(nearest(pool, places), nearest(turned, places))


@pytest.mark.parametrize("n_rows", [10, 90])
def test_public_rows_take_part_equally_often(n_rows):
    """With a pool of one-hot rows, the place that each anchor starts from can be read."""
    pool = np.vstack([np.eye(30), np.eye(30)])
    anchor = mixed_rows(1000.0 * pool, stream=stream(), n_rows=n_rows)
    order = stream().permutation(60)
    starts = np.resize(order, n_rows)
    counts = np.bincount(starts, minlength=60)
    assert counts.max() - counts.min() <= 1
    other = anchor - 1000.0 * pool[starts]
    assert np.all(np.abs(other.sum(axis=1)) < 1e-9)  # a difference of two rows of equal sum


def test_an_anchor_is_golden():
    """Small whole numbers, so that the pool is the same everywhere."""
    pool = np.array([[(7 * row * (column + 1)) % 31 for column in range(6)] for row in range(31)])
    found = drawn(pool.astype(float), n_rows=4)
    np.testing.assert_allclose(found[:2, :2], GOLDEN_FIRST, atol=GOLDEN)


def test_the_same_key_and_rows_are_the_same_anchor_and_others_another():
    np.testing.assert_array_equal(drawn(), drawn())
    assert not np.isclose(drawn(), drawn(number=2)).any()
    assert not np.isclose(drawn()[:80], drawn(n_rows=80)).all()
    changed = POOL.copy()
    changed[0] += 1
    assert not np.isclose(drawn(), drawn(changed)).all()


def test_a_smote_image_shows_the_pools_covariance_through_the_basis():
    """Why there is a warning: with the pool at hand, A'A needs no secret."""
    basis = np.linalg.qr(np.random.default_rng(3).normal(size=(6, 2)))[0]
    image = drawn(n_rows=4000) @ basis
    guessed = drawn(number=2, n_rows=4000) @ basis
    np.testing.assert_allclose(
        image.T @ image, guessed.T @ guessed, rtol=0.1, atol=0.05 * np.trace(image.T @ image)
    )
