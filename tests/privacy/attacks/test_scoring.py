"""Figures are what their names say, guessing scores what stands as chance, and known people do
not count."""

import numpy as np
import pytest

from cobasis.errors import ShapeError
from cobasis.privacy.attacks.release import Recovered
from cobasis.privacy.attacks.scores import (
    nearest,
    score_content,
    score_decision,
    score_linkage,
)

ROWS = np.random.default_rng(0).normal(2, 1, size=(200, 6))


def test_everything_recovered_is_everything():
    found = score_content(Recovered(rows=ROWS), ROWS)
    assert (found.distance.value, found.explained.value, found.worst_explained) == (0, 1, 1)
    assert (found.cells.value, found.named.value) == (1, 1)


def test_guessing_the_average_person_scores_what_stands_as_chance():
    found = score_content(Recovered(rows=np.tile(ROWS.mean(axis=0), (200, 1))), ROWS)
    assert found.explained.value == pytest.approx(found.explained.chance, abs=1e-12)
    assert found.distance.value == pytest.approx(found.distance.chance)
    assert found.cells.value == found.cells.chance
    assert found.named.value == found.named.chance == 1 / 200  # all are taken for one person


def test_other_peoples_rows_score_below_the_average_person_and_name_nobody():
    found = score_content(Recovered(rows=np.roll(ROWS, 1, axis=0)), ROWS)
    assert found.explained.value == pytest.approx(-1, abs=0.1)
    assert found.named.value == 0


def test_figures_are_those_of_a_table_by_hand():
    truth = np.array([[0.0, 0.0], [10.0, 2.0]])
    found = score_content(Recovered(rows=np.array([[0.9, 0.0], [10.0, 1.7]])), truth)
    assert found.distance.value == pytest.approx((0.9 / 104) ** 0.5)
    assert found.explained.value == pytest.approx(1 - 0.9 / 52)
    assert found.cells.value == 0.75  # 0.9 is within a tenth of 10, 0.3 is not within one of 2
    assert found.named.value == 1
    assert found.worst_explained == pytest.approx(1 - 0.09 / 26)


def test_columns_that_do_not_vary_are_no_recovered_cells():
    constant = np.hstack([ROWS, np.full((200, 6), 7.0)])
    wrong = np.hstack([ROWS + 50, np.full((200, 6), 7.0 + 1e-12)])
    assert score_content(Recovered(rows=wrong), constant).cells.value == 0
    assert score_content(Recovered(rows=constant), constant).cells.value == 1
    same = np.ones((3, 2))
    found = score_content(Recovered(rows=same), same)
    assert (found.cells.value, found.explained.value) == (1, 1)


def test_known_people_do_not_count_but_others_can_be_taken_for_them():
    guessed = ROWS + 100
    guessed[:50] = ROWS[:50]
    assert score_content(Recovered(rows=guessed), ROWS).named.value == pytest.approx(0.25, abs=0.01)
    guessed[60] = ROWS[3]
    found = score_content(Recovered(rows=guessed), ROWS, known=np.arange(50))
    assert found.named.value <= 1 / 150  # only whoever is nearest to the far corner
    assert found.named.chance == 1 / 200
    alone = Recovered(rows=np.vstack([ROWS[:50], np.tile(ROWS[3], (150, 1))]))
    assert score_content(alone, ROWS, known=np.arange(50)).named.value == 0


def test_rows_of_another_shape_and_a_party_that_is_known_whole_are_refused():
    with pytest.raises(ShapeError, match="the truth has"):
        score_content(Recovered(rows=ROWS[:3]), ROWS)
    with pytest.raises(ShapeError, match="nobody is left"):
        score_content(Recovered(rows=ROWS), ROWS, known=np.arange(200))


def test_a_right_basis_links_everybody_and_a_random_one_hardly_anybody():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(6, 3)))[0]
    order = rng.permutation(200)
    released = ROWS[order] @ basis
    right = Recovered(rows=ROWS, basis=basis)
    found = score_linkage(released, right, candidates=ROWS, places=order)
    assert (found.value, found.chance) == (1, 1 / 200)
    wrong = Recovered(rows=ROWS, basis=-basis)
    assert score_linkage(released, wrong, candidates=ROWS, places=order).value < 0.05
    with pytest.raises(ShapeError, match="found no basis"):
        score_linkage(released, Recovered(rows=ROWS), candidates=ROWS, places=order)


def test_scores_without_a_signal_are_at_chance_and_ties_are_no_hits():
    rng = np.random.default_rng(2)
    truth = np.arange(20_000) % 2 == 0
    found = score_decision(rng.normal(size=20_000), truth)
    assert found.auc.value == pytest.approx(found.auc.chance, abs=0.02)
    assert found.at_one_percent.value == pytest.approx(found.at_one_percent.chance, abs=0.005)
    tied = score_decision(np.zeros(20_000), truth)
    assert (tied.auc.value, tied.at_one_percent.value) == (0.5, 0)
    sure = score_decision(truth, truth)
    assert (sure.auc.value, sure.at_one_percent.value) == (1, 1)


@pytest.mark.parametrize("truth", [[True, True], [False, False], [True]])
def test_decisions_need_people_of_both_kinds(truth):
    with pytest.raises(ShapeError, match="cannot be compared"):
        score_decision([0.1, 0.2], truth)


def test_nearest_goes_through_blocks_of_rows():
    others = np.random.default_rng(3).normal(size=(40, 5))
    rows = others[np.arange(3000) % 40] + 1e-3
    np.testing.assert_array_equal(nearest(rows, among=others), np.arange(3000) % 40)
