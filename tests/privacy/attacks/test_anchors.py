"""Uniform anchors, bad draws, guessed seeds and public rows show the basis; ours stays at chance.

Figures of notes/privacy 2.5, on digits and breast cancer.
"""

import hashlib
from functools import cache

import numpy as np
import pytest
from experiments.attacks.anchors import (
    GuessedSeed,
    anchor_ica,
    anchor_rows,
    collude,
    read_by,
    row_sums,
    typical_anchor,
)

from cobasis.algorithms.anchors import draw_anchor
from cobasis.linalg.rng import KeyStream
from cobasis.privacy.attacks.public_sample import match_sample
from cobasis.privacy.attacks.scores import nearest, score_content
from linalg.test_haar_isometry import MUTANTS, blocked, stream_of
from privacy.attacks.constructions import (
    anchor,
    cancer,
    digits,
    directions_found,
    entries_found,
    haar_basis,
    in_order,
    own_basis,
    released,
    span_found,
)

CANCER, DIGITS = cancer()[0][:280], digits()[0][:280]
SLACK = 0.05


def by_ica(rows, kind, *, size, n_rows):
    """What independent components make of a party's upload, and the secret basis."""
    basis, n_features = own_basis(rows, size), rows.shape[1]
    release = released(rows, basis, anchor(kind, n_rows, n_features))
    return anchor_ica(release, n_features=n_features), basis


def n_columns_read(recovered, rows):
    """How many features correlate above .95 with one of the sources that were found."""
    sources = recovered.rows[:, np.any(recovered.basis != 0, axis=1)]
    likeness = np.corrcoef(sources, rows, rowvar=False)[: sources.shape[1], sources.shape[1] :]
    return int(np.count_nonzero(np.abs(likeness).max(axis=0) > 0.95))


@pytest.mark.parametrize(("size", "least", "most"), [(30, 30, 30), (25, 24, 30), (10, 2, 10)])
def test_a_uniform_anchor_shows_every_record_at_full_width(size, least, most):
    """And fewer components hide few columns. That entries are positive tells the signs as well."""
    found, basis = by_ica(CANCER, "uniform", size=size, n_rows=5000)
    assert least <= n_columns_read(found, CANCER) <= most
    if size == CANCER.shape[1]:
        content = score_content(in_order(found, basis), CANCER)
        shown = content.named.value, content.explained.value, directions_found(found, basis)[0]
        np.testing.assert_array_less((0.999, 0.97, 0.99), shown)
        likeness = found.basis @ basis.T
        assert np.all(likeness[np.arange(size), np.abs(likeness).argmax(axis=1)] > 0)


@pytest.mark.parametrize(
    ("rows", "kind", "size", "n_rows"),  # the last is the default: as many anchor rows as features
    [
        (CANCER, "gaussian", 30, 1000),
        (CANCER, "isometric", 10, 5000),
        (DIGITS, "isometric", 16, 64),
    ],
)
def test_a_safe_anchor_stays_at_chance(rows, kind, size, n_rows):
    found, basis = by_ica(rows, kind, size=size, n_rows=n_rows)
    read, blind = directions_found(found, basis)
    assert read <= blind + 2 * SLACK
    named = score_content(in_order(found, basis), rows).named
    assert named.value <= named.chance + SLACK
    if rows is CANCER:  # whose features go together
        assert n_columns_read(found, rows) <= 3


@pytest.mark.parametrize("kind", ["uniform", "gaussian", "isometric"])
def test_the_mean_row_of_a_uniform_anchor_shows_the_row_sums(kind):
    """How they go with those that are read; a safe anchor's as with blind directions."""
    basis, found = own_basis(DIGITS, 16), []
    for number in range(3 if kind == "uniform" else 20):
        release = released(DIGITS, basis, anchor(kind, 200, 64, number=number))
        blind = release.rows @ KeyStream(bytes(32), "tests/blind").normal((16, 200))
        seen = np.column_stack([DIGITS.sum(axis=1), row_sums(release), blind])
        likeness = np.abs(np.corrcoef(seen, rowvar=False)[0, 1:])
        found.append((likeness[0], likeness[1:].mean()))
    value, chance = np.mean(found, axis=0)
    if kind == "uniform":
        assert (value > 0.95, chance < 0.6) == (True, True)
        read = row_sums(released(DIGITS, basis, anchor(kind, 5000, 64)))
        np.testing.assert_allclose(read, DIGITS.sum(axis=1), rtol=0.12)
    else:
        assert value <= chance + SLACK


SIZE, KEPT = 32, 8


@cache
def read_of(name):
    """Entries and span that a typical anchor reads, as means over secret anchors."""
    apply, eye = {**MUTANTS, "Stewart": blocked}[name], np.eye(SIZE)
    # the attacker's keys are from 10,000 on, below it the consortium's
    typical = typical_anchor(apply(stream_of(10_000 + each), eye, SIZE) for each in range(200))
    basis, found = haar_basis(SIZE, KEPT), []
    for trial in range(20):
        release = released(basis.T, basis, apply(stream_of(trial), eye, SIZE))
        guess = read_by(release, typical).basis
        found.append((entries_found(guess, basis), span_found(guess, basis)))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("name", MUTANTS)
def test_every_shortcut_lets_entries_of_the_basis_be_read(name):
    """0.09 to 0.67, where chance is 0.05 and the mean over 20 draws is within 0.01 of it."""
    blind = np.array([np.sqrt(2 / np.pi / SIZE / KEPT), KEPT / SIZE])
    np.testing.assert_allclose(read_of("Stewart"), blind, atol=0.03)
    shown = {"stops after a quarter": 0.5, "stops after 16": 0.3, "full-length vectors": 0.3}
    least = blind[0] + 0.025, shown.get(name, 0)
    np.testing.assert_array_less(least, read_of(name))


@cache
def found():
    (own, pool), (labels, theirs) = ((each[:250], each[250:500]) for each in digits())
    basis = own_basis(own, 16)
    release, rng = released(own, basis, labels=labels), np.random.default_rng(0)
    return own, basis, pool, match_sample(release, pool, labels=theirs, rng=rng).basis


def test_every_anchor_row_of_digits_is_identified_and_the_result_is_collusions():
    """A poor first guess is enough: of one match in four all are made in the end."""
    rows, basis, pool, first = found()
    secret = anchor("public", 120, 64, public_rows=pool[:120])
    release = released(rows, basis, secret)
    places = anchor_rows(release, pool=pool, first=first)
    np.testing.assert_array_equal(pool[places], pool[:120])
    read, known = (score_content(collude(release, each), rows) for each in (pool[places], secret))
    assert read.explained.value == pytest.approx(known.explained.value, abs=1e-9)
    assert read.explained.value > 0.82
    assert read.named == known.named
    guess = basis + np.random.default_rng(0).normal(size=basis.shape) / 5
    assert np.mean(nearest(release.anchor_image, among=pool @ guess) == np.arange(120)) < 0.35
    np.testing.assert_array_equal(pool[anchor_rows(release, pool=pool, first=guess)], pool[:120])


def test_an_anchor_that_was_drawn_has_no_rows_to_find():
    """With the public rows' mean and covariance it keeps what they add to accuracy."""
    rows, basis, pool, first = found()
    factor = np.linalg.cholesky(np.cov(pool, rowvar=False) + 1e-12 * np.eye(64))
    gaussian = anchor("gaussian", 100, 64)
    for secret in (anchor("isometric", 100, 64), pool.mean(axis=0) + gaussian @ factor.T):
        release = released(rows, basis, secret)
        places = anchor_rows(release, pool=pool, first=first)
        content = score_content(collude(release, pool[places]), rows)
        assert content.named.value <= content.named.chance + 0.05
        assert content.explained.value < 0


N_ROWS = 300


@pytest.mark.parametrize(("kind", "wrong"), [("uniform", 0.1), ("gaussian", 0.7)])
def test_a_small_seed_gives_all_that_collusion_gives(kind, wrong):
    """And explains the image exactly, which no other does."""

    def draw(seed):  # the papers' way: NumPy's generator, seeded with a number
        rng, shape = np.random.default_rng(seed), (N_ROWS, 30)
        return rng.random(shape) if kind == "uniform" else rng.normal(size=shape)

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
    attack = GuessedSeed(
        draw=lambda key: draw_anchor(kind, key=key, n_rows=N_ROWS, n_features=30).apply(np.eye(30)),
        guesses=[*near, *typed, *hashed],
    )
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
