"""The discrete Gaussian, exact, and the guarantee of sums: held against oracles and a falsifier."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant

from cobasis.linalg.rng import KeyStream
from cobasis.privacy import discrete
from cobasis.privacy.discrete import discrete_gaussian, zcdp_epsilon, zcdp_scale
from cobasis.privacy.gaussian import epsilon_of
from cobasis.protocol.sums_terms import SENSITIVITY


def drawn(*, scale, count):
    return discrete_gaussian(KeyStream(bytes(32), "noise"), scale=scale, count=count)


@pytest.mark.parametrize("scale", [1, 2, 7, 300])
def test_each_integer_has_the_share_of_a_discrete_gaussian(scale):
    """Pearson's statistic over all integers that occur often, and the tail; six of its spreads."""
    count, every = 200_000, np.arange(-9 * scale, 9 * scale + 1)
    edges = [-np.inf, *range(-3 * scale, 3 * scale + 1, max(1, scale // 20)), np.inf]
    weights = np.exp(-((every / scale) ** 2) / 2)
    shares = np.histogram(every, edges, weights=weights)[0] / weights.sum()
    counts = np.histogram(drawn(scale=scale, count=count), edges)[0]
    chi = float(np.sum((counts - count * shares) ** 2 / (count * shares)))
    free = len(shares) - 1
    assert abs(chi - free) < 6 * math.sqrt(2 * free)


@pytest.mark.parametrize("scale", [1, 3, 2**44 + 12345])
def test_where_a_float_decides_many_digits_would_decide_the_same(monkeypatch, scale):
    by_floats = drawn(scale=scale, count=300)
    monkeypatch.setattr(discrete, "_SURE", 0.9)  # nothing is left to a float
    assert np.array_equal(drawn(scale=scale, count=300), by_floats)


def test_noise_of_a_large_scale_has_its_spread_and_no_lean():
    large = drawn(scale=2**44, count=100_000) / 2**44
    assert abs(large.std() - 1) < 0.015
    assert abs(large.mean()) < 0.02
    assert len(np.unique(drawn(scale=2**44, count=1000) % 2)) == 2


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_epsilon_is_that_of_zero_concentrated_privacy_and_no_less(mu, delta):
    """Against the best order in 30 digits, another library's, and the continuous Gaussian's."""

    def at(order):
        one = mpmath.mpf(order)
        told = one * mpmath.mpf(mu) ** 2 / 2
        return told + (
            -mpmath.log(delta) + (one - 1) * mpmath.log(1 - 1 / one) - mpmath.log(one)
        ) / (one - 1)

    best = min(at(1 + 10 ** (each / 50)) for each in range(-200, 300))
    found = zcdp_epsilon(mu=mu, delta=delta)
    assert float(best) * (1 - 1e-3) < found < float(best) * (1 + 1e-3)
    orders = [1 + each / 10 for each in range(1, 10_000)]
    divergences = [order * mu**2 / 2 for order in orders]
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, divergences, delta)
    assert found == pytest.approx(theirs, rel=0.01)
    exact = epsilon_of(noise=1.0, delta=delta, sensitivity=mu)
    assert exact < found < 1.25 * exact + 0.02


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_scale_is_enough_and_a_smaller_one_is_not(epsilon):
    scale = zcdp_scale(epsilon=epsilon, delta=1e-6, sensitivity=SENSITIVITY)
    assert zcdp_epsilon(mu=SENSITIVITY / scale, delta=1e-6) <= epsilon
    assert zcdp_epsilon(mu=SENSITIVITY / (scale * 0.999), delta=1e-6) > epsilon


def moved(one, other):
    """How far two rows are apart in the sums, their features' products counted twice, squared."""
    vectors = [
        np.concatenate([np.outer(features, features).ravel(), np.outer(features, label).ravel()])
        for features, label in (one, other)
    ]
    return float(np.sum((vectors[0] - vectors[1]) ** 2))


def test_no_two_rows_are_farther_apart_than_the_sensitivity_and_some_are_as_far():
    """Of unit features with one-hot labels, or with a number in [-1, 1], which has its square."""
    same, unlike = (np.eye(3)[0],) * 2, (np.eye(3)[0], np.eye(3)[1])
    cosines = np.linspace(-1, 1, 401)
    pairs = [(np.eye(4)[0], np.array([c, math.sqrt(1 - c**2), 0, 0])) for c in cosines]
    found = [moved(*zip(pair, labels, strict=True)) for pair in pairs for labels in (same, unlike)]
    assert max(found) == pytest.approx(SENSITIVITY**2)
    assert max(found) <= SENSITIVITY**2 + 1e-9
    rng = np.random.default_rng(0)
    for _ in range(2000):
        phis = rng.normal(size=(2, 4))
        phis *= (rng.uniform(size=(2, 1)) ** 0.25) / np.linalg.norm(phis, axis=1, keepdims=True)
        labels = np.eye(3)[rng.integers(3, size=2)]
        assert moved(*zip(phis, labels, strict=True)) <= SENSITIVITY**2 + 1e-9
    cosine, y, z = np.meshgrid(*[np.linspace(-1, 1, 41)] * 3)
    squares = 2 - 2 * cosine**2 + y**2 + z**2 - 2 * cosine * y * z + (y**2 - z**2) ** 2
    assert squares.max() == pytest.approx(SENSITIVITY**2)
