"""What was recovered of a basis is scored against what guessing would reach."""

import numpy as np
import pytest

from cobasis.errors import ShapeError
from cobasis.linalg.rng import KeyStream
from cobasis.privacy.attacks.release import Recovered
from cobasis.privacy.attacks.scores import (
    in_order,
    score_directions,
    score_entries,
    score_span,
)
from privacy.attacks.constructions import haar_basis

ROWS = np.arange(12.0).reshape(2, 6)


def blind(shape, *, count=200):
    stream = KeyStream(bytes(32), "tests/blind")
    return [stream.normal(shape) for _ in range(count)]


def test_the_secret_basis_itself_scores_one_whatever_its_frame():
    basis = haar_basis(6, 2)
    assert score_span(basis @ [[2.0, 1.0], [0.0, -3.0]], basis).value == pytest.approx(1)
    assert score_entries(-basis, basis).value == pytest.approx(1)
    shuffled = Recovered(rows=ROWS[:, ::-1], basis=-basis[::-1])
    assert score_directions(shuffled, basis).value == pytest.approx(1)


def test_the_complement_scores_nothing():
    assert score_span(np.eye(6)[:, 2:], np.eye(6)[:, :2]).value == pytest.approx(0)
    assert score_entries(np.eye(6)[:, 2:4], np.eye(6)[:, :2]).value == 0
    assert score_entries(np.zeros((6, 2)), np.eye(6)[:, :2]).value == 0


@pytest.mark.parametrize("score", [score_span, score_entries])
def test_blind_guesses_score_the_chance_that_is_given(score):
    basis = haar_basis(12, 4)
    scores = [score(guess, basis) for guess in blind((12, 4))]
    assert np.mean([each.value for each in scores]) == pytest.approx(scores[0].chance, abs=0.02)


@pytest.mark.parametrize("n_found", [5, 12])
def test_blind_directions_score_the_chance_that_is_given(n_found):
    basis = haar_basis(12, 5)
    scores = []
    for guess in blind((12, 5), count=40):
        guess[n_found:] = 0
        scores.append(score_directions(Recovered(rows=ROWS[:, [0] * 12], basis=guess), basis))
    assert np.mean([each.value for each in scores]) == pytest.approx(scores[0].chance, abs=0.06)


def test_features_are_put_in_the_order_and_signs_of_the_truth():
    basis = haar_basis(6, 6)
    order, signs = np.array([3, 0, 5, 1, 2, 4]), np.array([1, -1, 1, 1, -1, -1.0])
    jumbled = Recovered(rows=ROWS[:, order] * signs, basis=basis[order] * signs[:, np.newaxis])
    found = in_order(jumbled, basis)
    np.testing.assert_array_equal(found.rows, ROWS)
    np.testing.assert_array_equal(found.basis, basis)


def test_a_guess_without_a_basis_is_refused():
    for score in (score_span, score_entries):
        with pytest.raises(ShapeError, match=r"found no basis.*\[CB"):
            score(None, np.eye(3))


@pytest.mark.parametrize(
    ("score", "shape"), [(score_span, (4, 3)), (score_entries, (3, 2)), (score_entries, (4, 3))]
)
def test_a_basis_of_another_round_is_refused(score, shape):
    with pytest.raises(ShapeError, match="the truth has"):
        score(np.ones(shape), np.eye(3))
