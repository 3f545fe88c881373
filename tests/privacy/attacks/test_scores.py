"""Figures are what their names say, and guessing scores what stands as chance."""

import numpy as np
import pytest

from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.scores import score_content, score_structure, standing_alone
from privacy.attacks.constructions import cancer, digits, own_basis, released

ROWS = np.random.default_rng(0).normal(2, 1, size=(200, 6))


def content(rows, truth=ROWS, **known):
    return score_content(Recovered(rows=np.asarray(rows), basis=np.eye(6)), truth, **known)


def test_everything_recovered_is_everything_and_the_average_person_is_chance():
    whole = content(ROWS)
    assert (whole.distance.value, whole.explained.value, whole.worst_explained) == (0, 1, 1)
    assert (whole.cells.value, whole.named.value) == (1, 1)
    found = content(np.tile(ROWS.mean(axis=0), (200, 1)))
    for each in (found.explained, found.distance, found.cells, found.named):
        assert each.value == pytest.approx(each.chance, abs=1e-12)
    assert found.named.chance == 1 / 200  # all are taken for one person


def test_figures_are_those_of_a_table_by_hand_and_columns_that_do_not_vary_no_recovered_cells():
    found = content([[0.9, 0.0], [10.0, 1.7]], np.array([[0.0, 0.0], [10.0, 2.0]]))
    assert found.distance.value == pytest.approx((0.9 / 104) ** 0.5)
    assert found.explained.value == pytest.approx(1 - 0.9 / 52)
    assert found.cells.value == 0.75  # 0.9 is within a tenth of 10, 0.3 is not within one of 2
    assert found.named.value == 1
    assert found.worst_explained == pytest.approx(1 - 0.09 / 26)
    constant = np.hstack([ROWS, np.full((200, 6), 7.0)])
    assert content(constant + np.repeat([50, 1e-12], 6), constant).cells.value == 0
    found = content(np.ones((3, 2)), np.ones((3, 2)))
    assert (found.cells.value, found.explained.value) == (1, 1)


def test_known_people_do_not_count_but_others_can_be_taken_for_them():
    guessed = ROWS + 100
    guessed[:50] = ROWS[:50]
    assert content(guessed).named.value == pytest.approx(0.25, abs=0.01)
    guessed[60] = ROWS[3]
    named = content(guessed, known=np.arange(50)).named
    assert named.value <= 1 / 150  # only whoever is nearest to the far corner
    assert named.chance == 1 / 200


@pytest.mark.parametrize(
    ("data", "n_rows", "n_components", "correlation", "kept"),
    [(cancer, 280, 10, 0.999, 0.89), (digits, 800, 4, 0.75, 0.38), (digits, 800, 16, 0.983, 0.83)],
)
def test_distances_and_neighbours_survive_projection(data, n_rows, n_components, correlation, kept):
    rows = data()[0][:n_rows]
    seen = score_structure(released(rows, own_basis(rows, n_components)), rows)
    assert seen["distance_correlation"] == pytest.approx(correlation, abs=0.02)
    assert seen["neighbours_kept"] == pytest.approx(kept, abs=0.04)
    assert seen["chance"] == 10 / (n_rows - 1)


def test_unrelated_rows_keep_no_more_than_chance_and_equal_rows_nothing():
    rng = np.random.default_rng(0)
    seen = score_structure(Release(rows=rng.normal(size=(400, 5))), rng.normal(size=(400, 7)))
    assert abs(seen["distance_correlation"]) < 0.05
    assert seen["neighbours_kept"] == pytest.approx(seen["chance"], abs=0.01)
    equal = score_structure(Release(rows=np.ones((20, 2))), np.ones((20, 3)))
    assert (equal["distance_correlation"], equal["alone"], equal["alone_in_truth"]) == (0, 0, 0)


def test_whoever_is_like_nobody_is_seen_in_the_release():
    rows = cancer()[0][:200].copy()
    rows[17] *= 3
    release = released(rows, own_basis(rows, 10))
    scores = standing_alone(release.rows)
    assert scores.argmax() == 17
    assert scores[17] > 3
    seen = score_structure(release, rows)
    assert seen["alone"] == np.sum(scores > 3) >= seen["alone_in_truth"] >= 1
