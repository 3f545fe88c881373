"""An integer seed of the anchor is found by trying; 32 random bytes give no foothold.

Figures of notes/privacy 2.7. The draws are NumPy's, which no code of the library uses for secrets.
"""

import hashlib

import numpy as np
import pytest
from experiments.attacks.guessed_seed import GuessedSeed

from cobasis.algorithms.anchors import draw_anchor
from cobasis.errors import SecretError, ShapeError
from cobasis.privacy.attacks.scores import score_content
from privacy.attacks.constructions import anchor, cancer, digits, own_basis, released

N_ROWS = 300
SEEDS = (0, 42, 20261120)


def by_integer(kind, n_features):
    """The papers' way: NumPy's generator, seeded with a number."""

    def draw(seed):
        rng = np.random.default_rng(seed)
        shape = (N_ROWS, n_features)
        return rng.random(shape) if kind == "uniform" else rng.normal(size=shape)

    return draw


def by_key(kind, n_features):
    return lambda key: draw_anchor(kind, key=key, n_rows=N_ROWS, n_features=n_features).apply(
        np.eye(n_features)
    )


CASES = [
    (cancer, 10, "uniform", 13.0),
    (digits, 16, "uniform", 10.0),
    (cancer, 10, "gaussian", 6.0),
    (digits, 16, "gaussian", 6.0),
]


@pytest.mark.parametrize(("data", "n_components", "kind", "least"), CASES)
def test_the_right_seed_stands_out(data, n_components, kind, least):
    """Expected for a Gaussian anchor: sqrt(l / m) sqrt(200), 8.2 and 7.1."""
    rows = data()[0][:280]
    draw, basis = by_integer(kind, rows.shape[1]), own_basis(rows, n_components)
    for seed in SEEDS:
        release = released(rows, basis, draw(seed))
        assert GuessedSeed(draw=draw, guesses=[seed]).standings(release)[0] > least


@pytest.mark.parametrize(("data", "n_components", "kind", "least"), CASES)
def test_a_thousand_wrong_seeds_do_not(data, n_components, kind, least):
    rows = data()[0][:280]
    draw, basis = by_integer(kind, rows.shape[1]), own_basis(rows, n_components)
    wrong = GuessedSeed(draw=draw, guesses=range(1000, 2000))
    assert wrong.standings(released(rows, basis, draw(42))).max() < min(5.0, least)


@pytest.mark.parametrize(("kind", "wrong"), [("uniform", 0.1), ("gaussian", 0.8)])
def test_only_the_right_seed_explains_the_image(kind, wrong):
    rows = digits()[0][:280]
    draw = by_integer(kind, 64)
    attack = GuessedSeed(draw=draw, guesses=range(9))
    release = released(rows, own_basis(rows, 16), draw(5))
    left = {seed: attack.residual(release, seed) for seed in range(9)}
    assert left.pop(5) < 1e-13
    assert min(left.values()) > wrong


@pytest.mark.parametrize("kind", ["uniform", "gaussian"])
def test_a_small_seed_gives_all_that_collusion_gives(kind):
    rows = cancer()[0][:280]
    draw = by_integer(kind, 30)
    release = released(rows, own_basis(rows, 10), draw(77))
    content = score_content(GuessedSeed(draw=draw, guesses=range(100)).recover(release), rows)
    assert content.explained.value == pytest.approx(0.955, abs=0.01)
    assert content.named.value > 0.98


def hashed(seed):
    """Thirty-two bytes that look random."""
    return hashlib.sha256(str(seed).encode()).digest()


@pytest.mark.parametrize("kind", ["gaussian", "isometric"])
def test_a_hashed_short_seed_is_found_like_any_other(kind):
    rows = cancer()[0][:280]
    draw = by_key(kind, 30)
    guesses = [hashed(seed) for seed in range(60)]
    attack = GuessedSeed(draw=draw, guesses=guesses)
    release = released(rows, own_basis(rows, 10), draw(hashed(42)))
    assert int(np.argmax(attack.standings(release))) == 42
    assert attack.residual(release, guesses[42]) < 1e-13
    assert score_content(attack.recover(release), rows).named.value > 0.98


@pytest.mark.parametrize("kind", ["gaussian", "isometric"])
def test_32_random_bytes_give_no_foothold(kind):
    """Not to seeds, not to hashed seeds, not to keys of which 255 of 256 bits are right."""
    key = bytes.fromhex("8f1d3ba45c0279e6d2b8417fa06c93ee5527f0cb9a1e648d03b7c2f5196d8ea4")
    rows = cancer()[0][:280]
    draw = by_key(kind, 30)
    near = [bytes([key[0] ^ 1 << bit, *key[1:]]) for bit in range(8)]
    typed = [seed.to_bytes(32, "big") for seed in range(30)]
    attack = GuessedSeed(draw=draw, guesses=[*near, *typed, *map(hashed, range(30))])
    release = released(rows, own_basis(rows, 10), draw(key))
    assert attack.standings(release).max() < 4.5
    assert min(attack.residual(release, guess) for guess in attack.guesses[:20]) > 0.8
    named = score_content(attack.recover(release), rows).named
    assert named.value <= named.chance + 0.05
    assert GuessedSeed(draw=draw, guesses=[key]).residual(release, key) < 1e-13


@pytest.mark.parametrize("seed", [42, "42", b"42"])
def test_the_library_draws_no_anchor_from_a_short_seed(seed):
    with pytest.raises(SecretError, match="a seed that the analyst can guess"):
        draw_anchor("gaussian", key=seed, n_rows=4, n_features=2)


def test_a_square_isometric_anchor_fits_every_image_and_stands_out_nowhere():
    rows = cancer()[0][:280]
    attack = GuessedSeed(draw=lambda each: anchor("isometric", 30, 30, number=each), guesses=(5, 6))
    release = released(rows, own_basis(rows, 10), anchor("isometric", 30, 30, number=5))
    with pytest.raises(ShapeError, match="30 anchor rows of 30 features fit any image"):
        attack.residual(release, 5)
    assert attack.standings(release).max() < 4.5


@pytest.mark.parametrize(("data", "n_components"), [(cancer, 10), (digits, 16)])
def test_an_average_person_tells_the_seed_of_a_square_isometric_anchor(data, n_components):
    """The default shape: what the image cannot show, a public average does."""
    rows, public = data()[0][:280], data()[0][280:]
    size = rows.shape[1]
    attack = GuessedSeed(
        draw=lambda each: anchor("isometric", size, size, number=each),
        guesses=range(60),
        average=public.mean(axis=0),
    )
    release = released(rows, own_basis(rows, n_components), attack.draw(42))
    found = np.array([attack.likeness(release, each) for each in attack.guesses])
    assert found[42] > 0.99
    assert np.delete(found, 42).max() < 0.95
    assert score_content(attack.recover(release), rows).named.value > 0.9


def test_a_likeness_needs_an_average():
    release = released(np.ones((4, 3)), np.eye(3)[:, :2], np.ones((N_ROWS, 3)))
    attack = GuessedSeed(draw=by_integer("uniform", 3), guesses=(1,))
    with pytest.raises(ShapeError, match="no average person"):
        attack.likeness(release, 1)
    nobody = np.zeros(3)
    attack = GuessedSeed(draw=by_integer("uniform", 3), guesses=(1,), average=nobody)
    assert attack.likeness(release, 1) == 0.0


def test_an_image_without_any_variation_stands_out_nowhere():
    attack = GuessedSeed(draw=by_integer("uniform", 3), guesses=(1, 2))
    release = released(np.ones((4, 3)), np.eye(3)[:, :2], np.ones((N_ROWS, 3)))
    assert attack.standings(release).tolist() == [0.0, 0.0]


def test_a_guess_of_another_number_of_rows_is_refused():
    release = released(np.ones((4, 3)), np.eye(3)[:, :2], np.ones((7, 3)))
    attack = GuessedSeed(draw=by_integer("uniform", 3), guesses=(1,))
    with pytest.raises(ShapeError, match=f"has {N_ROWS} rows and its image 7"):
        attack.standings(release)
