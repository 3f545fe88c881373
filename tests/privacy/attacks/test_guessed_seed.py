"""An integer seed of the anchor is found by trying; 32 random bytes give no foothold."""

import hashlib

import numpy as np
import pytest
from experiments.attacks.anchors import GuessedSeed

from cobasis.algorithms.anchors import draw_anchor
from cobasis.privacy.attacks.scores import score_content
from privacy.attacks.constructions import anchor, cancer, digits, own_basis, released

CANCER, DIGITS = cancer()[0][:280], digits()[0][:280]
N_ROWS = 300


def by_integer(kind, n_features):
    """The papers' way: NumPy's generator, seeded with a number."""

    def draw(seed):
        rng, shape = np.random.default_rng(seed), (N_ROWS, n_features)
        return rng.random(shape) if kind == "uniform" else rng.normal(size=shape)

    return draw


def by_key(kind):
    return lambda key: draw_anchor(kind, key=key, n_rows=N_ROWS, n_features=30).apply(np.eye(30))


@pytest.mark.parametrize(("kind", "wrong"), [("uniform", 0.1), ("gaussian", 0.7)])
def test_a_small_seed_gives_all_that_collusion_gives(kind, wrong):
    """And explains the image exactly, which no other does."""
    draw = by_integer(kind, 30)
    attack = GuessedSeed(draw=draw, guesses=range(100))
    release = released(CANCER, own_basis(CANCER, 10), draw(77))
    content = score_content(attack.recover(release), CANCER)
    assert content.explained.value == pytest.approx(0.955, abs=0.01)
    assert content.named.value > 0.98
    left = [attack.residual(release, seed) for seed in range(70, 80)]
    assert left.pop(7) < 1e-13
    assert min(left) > wrong


@pytest.mark.parametrize("kind", ["gaussian", "isometric"])
def test_32_random_bytes_give_no_foothold(kind):
    """Not to seeds, nor to keys with 255 of 256 bits right; a hashed short seed is found."""
    key = bytes.fromhex("8f1d3ba45c0279e6d2b8417fa06c93ee5527f0cb9a1e648d03b7c2f5196d8ea4")
    near = [bytes([key[0] ^ 1 << bit, *key[1:]]) for bit in range(8)]
    typed = [seed.to_bytes(32, "big") for seed in range(30)]
    hashed = [hashlib.sha256(str(seed).encode()).digest() for seed in range(30)]
    attack = GuessedSeed(draw=by_key(kind), guesses=[*near, *typed, *hashed])
    release = released(CANCER, own_basis(CANCER, 10), attack.draw(key))
    assert attack.standings(release).max() < 4.5
    assert min(attack.residual(release, guess) for guess in attack.guesses[:20]) > 0.8
    named = score_content(attack.recover(release), CANCER).named
    assert named.value <= named.chance + 0.05
    assert attack.residual(release, key) < 1e-13
    short = released(CANCER, own_basis(CANCER, 10), attack.draw(hashed[17]))
    assert int(np.argmax(attack.standings(short))) == attack.guesses.index(hashed[17])


def test_an_average_person_tells_the_seed_of_a_square_isometric_anchor():
    """The default shape: every guess fits the image and none stands out; an average tells."""
    public = digits()[0][280:].mean(axis=0)
    attack = GuessedSeed(
        draw=lambda each: anchor("isometric", 64, 64, number=each), guesses=range(60)
    )
    release = released(DIGITS, own_basis(DIGITS, 16), attack.draw(42))
    assert max(attack.residual(release, each) for each in (41, 42)) < 1e-12
    assert attack.standings(release).max() < 4.5
    found = [attack.likeness(release, each, average=public) for each in attack.guesses]
    assert found.pop(42) > 0.99
    assert max(found) < 0.95
    assert score_content(attack.recover(release, average=public), DIGITS).named.value > 0.9
