"""A black-box attack that knows two neighbours: the right mechanism holds, wrong ones break.

The attacker sees one released row and has to say which of two tables it came from. At a claimed
(epsilon, delta) no test may accept the first table's releases more often than exp(epsilon)
times as often as the second's, plus delta.
"""

import numpy as np
import pytest

from cobasis.privacy.clipping import clip_rows, sensitivity_of
from cobasis.privacy.gaussian import noise_scale

EPSILON, DELTA, RADIUS, TRIALS = 2.0, 1e-3, 1.0, 200_000


def measured_delta(noise, *, moved, seed):
    """Return what the most powerful test finds, less three standard errors."""
    rng = np.random.default_rng(seed)
    cut = EPSILON * noise**2 / moved  # where the log of the likelihood ratio is epsilon
    first, second = (
        noise * rng.standard_normal(TRIALS) + side * moved / 2 > cut for side in (1, -1)
    )
    found = first.mean() - np.exp(EPSILON) * second.mean()
    error = np.sqrt((first.var() + np.exp(2 * EPSILON) * second.var()) / TRIALS)
    return found - 3 * error


@pytest.fixture
def released():
    """Two clipped neighbours as far apart as the ball allows, on a fixed basis."""
    basis = np.eye(6)[:, :3]
    near, far = np.r_[5.0, 0, 0, 0, 0, 0], np.r_[-70.0, 0, 0, 0, 0, 0]
    return [clip_rows(row[np.newaxis], radius=RADIUS) @ basis for row in (near, far)]


def test_noise_for_twice_the_radius_on_a_fixed_basis_holds(released):
    moved = float(np.linalg.norm(released[0] - released[1]))
    noise = noise_scale(epsilon=EPSILON, delta=DELTA, sensitivity=sensitivity_of(radius=RADIUS))
    assert measured_delta(noise, moved=moved, seed=0) <= DELTA


def test_the_papers_sensitivity_of_one_radius_is_falsified(released):
    moved = float(np.linalg.norm(released[0] - released[1]))
    noise = noise_scale(epsilon=EPSILON, delta=DELTA, sensitivity=RADIUS)
    assert measured_delta(noise, moved=moved, seed=0) > 50 * DELTA


@pytest.mark.parametrize("n_rows", [101, 1001])
def test_a_basis_that_rows_shape_lets_one_record_move_them_all(n_rows):
    half = (n_rows - 1) // 2
    rows = np.zeros((n_rows, 2))
    rows[:half, 0] = rows[half : 2 * half, 1] = RADIUS
    releases = []
    for axis in (0, 1):
        table = rows.copy()
        table[-1, axis] = RADIUS  # the record that decides which direction leads
        lead = np.linalg.svd(table, full_matrices=False)[2][:1].T
        releases.append(table @ np.abs(lead))
    moved = float(np.linalg.norm(releases[0] - releases[1]))
    assert moved == pytest.approx(RADIUS * np.sqrt(n_rows - 1))
    noise = noise_scale(epsilon=EPSILON, delta=DELTA, sensitivity=sensitivity_of(radius=RADIUS))
    assert measured_delta(noise, moved=moved, seed=1) > 100 * DELTA
