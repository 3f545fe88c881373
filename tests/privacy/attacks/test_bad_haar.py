"""Every bad Haar draw of DESIGN 3.1 shows the secret basis; Stewart's construction does not.

The bad draws are the mutants that the tests of `HaarIsometry` have to catch.
"""

from functools import cache, partial

import numpy as np
import pytest
from experiments.attacks.bad_haar import TypicalAnchor, typical_anchor

from cobasis.errors import ShapeError
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.scores import score_entries, score_span
from linalg.test_haar_isometry import MUTANTS, blocked, literal, stream_of
from privacy.attacks.constructions import haar_basis, released

SIZE, KEPT, DRAWS = 32, 8, 20
OTHERS = 10_000
"""Keys from here on are the attacker's own, below it the consortium's."""


@cache
def attacked(name):
    """Entries and span that are read, as means over secret anchors, with chance and errors."""
    apply = {**MUTANTS, "Stewart": blocked}[name]
    own = (apply(stream_of(OTHERS + draw), np.eye(SIZE), SIZE) for draw in range(200))
    attack, basis = TypicalAnchor(anchor=typical_anchor(own)), haar_basis(SIZE, KEPT)
    guesses = [
        attack.recover(released(basis.T, basis, apply(stream_of(draw), np.eye(SIZE), SIZE))).basis
        for draw in range(DRAWS)
    ]
    return {
        score.__name__: (
            np.mean([score(guess, basis).value for guess in guesses]),
            score(basis, basis).chance,
        )
        for score in (score_entries, score_span)
    }


@pytest.mark.parametrize("name", MUTANTS)
def test_every_shortcut_lets_entries_of_the_basis_be_read(name):
    """0.09 to 0.67, where chance is 0.05 and the mean over 20 draws is within 0.01 of it."""
    value, chance = attacked(name)["score_entries"]
    assert value > chance + 0.025


@pytest.mark.parametrize(
    ("name", "least"),
    [("stops after a quarter", 0.5), ("stops after 16", 0.3), ("full-length vectors", 0.3)],
)
def test_the_worst_shortcuts_let_the_span_be_read(name, least):
    """Chance is a quarter."""
    value, chance = attacked(name)["score_span"]
    assert value > least > chance == KEPT / SIZE


@pytest.mark.parametrize("score", ["score_entries", "score_span"])
def test_stewarts_construction_stays_at_chance(score):
    value, chance = attacked("Stewart")[score]
    assert value <= chance + 0.03
    assert value >= chance - 0.03


@pytest.mark.parametrize(
    ("apply", "expected"),
    [
        (partial(literal, reflections=16), 0.96),
        (partial(literal, reflections=200), 0.60),
        (partial(literal, full_length=True), np.exp(-1)),
        (MUTANTS["full-length g itself"], np.exp(-2)),
        (blocked, 0.0),
    ],
    ids=["16 reflections", "200 reflections", "full length", "full-length g", "Stewart"],
)
def test_the_size_of_an_image_has_the_cosines_of_the_design(apply, expected):
    """784 features, and nothing known but that a bad draw is near the identity."""
    size, kept = 784, 8
    basis = haar_basis(size, kept)
    image = apply(stream_of(1), basis, size)
    release = Release(rows=np.zeros((1, kept)), anchor_image=image)
    guess = TypicalAnchor(anchor=np.eye(size)).recover(release).basis
    assert score_entries(guess, basis).value == pytest.approx(expected, abs=0.05)


def test_the_guess_is_as_long_as_an_orthonormal_basis_and_rows_go_through_it():
    basis, rows = haar_basis(8, 3), haar_basis(8, 5).T
    image = blocked(stream_of(1), basis, 8)
    recovered = TypicalAnchor(anchor=np.eye(8)).recover(
        Release(rows=rows @ basis, anchor_image=image)
    )
    assert np.linalg.norm(recovered.basis) == pytest.approx(np.sqrt(3))
    np.testing.assert_allclose(recovered.rows, rows @ basis @ recovered.basis.T)


def test_a_typical_anchor_does_not_depend_on_a_common_sign():
    drawn = [blocked(stream_of(draw), np.eye(6), 8) for draw in range(5)]
    flipped = [drawn[0], -drawn[1], *drawn[2:]]
    one, other = typical_anchor(drawn), typical_anchor(flipped)
    assert abs(np.sum(one * other)) == pytest.approx(np.sum(one * one))


def test_without_draws_nothing_is_typical():
    with pytest.raises(ShapeError, match=r"no draws to compare.*\[CB"):
        typical_anchor([])


def test_an_anchor_of_another_number_of_rows_is_refused():
    release = Release(rows=np.ones((1, 2)), anchor_image=np.ones((5, 2)))
    with pytest.raises(ShapeError, match="the anchor has 4 rows and its image 5"):
        TypicalAnchor(anchor=np.ones((4, 3))).recover(release)
