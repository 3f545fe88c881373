"""Stewart's construction is Haar; every shortcut of it is an isometry and is caught."""

from functools import cache, partial

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import beta, kstest

from aligners import EPS, GOLDEN, key_of
from cobasis.linalg.rng import HaarIsometry, KeyStream, haar_columns

SHAPES = [(1, 1), (5, 1), (4, 4), (70, 65), (130, 130)]
ERRORS = 5.0
"""How many standard errors a mean may be off; keys are fixed, so this never flakes."""
UNLIKELY = 1e-4
"""Below this p-value a law is refused."""


def from_axis(gaussian, sign):
    vector = gaussian.copy()
    vector[0] += sign * np.linalg.norm(gaussian)
    return vector


def gaussian_itself(gaussian, _):
    return gaussian


def literal(
    stream, columns, n_rows, *, vector=from_axis, signed="same rows", reflections=10**6, full=False
):
    """Stewart's construction, reflection by reflection; the options are its mutants."""
    n_columns = len(columns)
    first = [0 if full else k for k in range(n_columns)]
    gaussians = [stream.normal((n_rows - start,)) for start in first]
    work = np.vstack([columns, np.zeros((n_rows - n_columns, columns.shape[1]))])
    for k in reversed(range(min(n_columns, reflections))):
        part, sign = work[first[k] :], -1.0 if gaussians[k][0] < 0 else 1.0
        v = vector(gaussians[k], sign)
        part -= np.outer(2 * v / (v @ v), v @ part)
        if signed != "no rows":
            work[first[k] if signed == "same rows" else 0 :] *= -sign
    return work


def blocked(stream, columns, n_rows):
    return HaarIsometry(stream, n_rows=n_rows, n_columns=len(columns)).apply(columns)


MUTANTS = {
    "reflects g itself": partial(literal, vector=gaussian_itself),
    "signs all rows": partial(literal, signed="all rows"),
    "drops the signs": partial(literal, signed="no rows"),
    "stops after 16": partial(literal, reflections=16),
    "stops after a quarter": lambda stream, columns, n_rows: literal(
        stream, columns, n_rows, reflections=-(-len(columns) // 4)
    ),
    "full-length vectors": partial(literal, full=True),
    "full-length g itself": partial(literal, full=True, vector=gaussian_itself),
}


def stream_of(number):
    return KeyStream(key_of(number), "tests/haar-isometry")


def isometry(number, n_rows, n_columns):
    return HaarIsometry(stream_of(number), n_rows=n_rows, n_columns=n_columns)


def diagonal_is_at_chance(apply, *, size=64, draws=20):
    """Mean |A_jj|, which stays large while A remembers e_j."""
    found = np.array([np.diag(apply(stream_of(draw), np.eye(size), size)) for draw in range(draws)])
    expected = np.exp(gammaln(size / 2) - gammaln((size + 1) / 2)) / np.sqrt(np.pi)
    error = np.sqrt((1 / size - expected**2) / found.size)
    return abs(np.abs(found).mean() - expected) < ERRORS * error


@cache
def small_draws(apply):
    return np.array([apply(stream_of(draw), np.eye(2), 4) for draw in range(3000)])


def corners_are_uncorrelated(apply):
    """E[A_11 A_22] = 0 at a = 4, m = 2."""
    product = np.prod(np.diagonal(small_draws(apply), axis1=1, axis2=2), axis=1)
    return abs(product.mean()) < ERRORS * product.std() / np.sqrt(len(product))


def entries_follow_the_haar_law(apply):
    """A_jk is symmetric about 0 and A_jk^2 is Beta(1/2, (a-1)/2), at every place."""
    drawn = small_draws(apply)

    def law(x):
        return 0.5 + 0.5 * np.sign(x) * beta.cdf(np.square(x), 0.5, 1.5)

    places = [drawn[:, row, column] for row in range(4) for column in range(2)]
    return all(kstest(place, law).pvalue > UNLIKELY for place in places)


def span_is_unreadable(apply, *, size=64, kept=16, draws=20):
    """The share of span(F) that lies in span(A F) is l / m on average."""
    basis = haar_columns(stream_of(99), n_rows=size, n_columns=kept)
    shares = [
        np.sum((basis.T @ apply(stream_of(draw), basis, size)) ** 2) / kept for draw in range(draws)
    ]
    error = np.sqrt(2 / draws) * (1 - kept / size) / size
    return abs(np.mean(shares) - kept / size) < ERRORS * error


CHECKS = [
    diagonal_is_at_chance,
    corners_are_uncorrelated,
    entries_follow_the_haar_law,
    span_is_unreadable,
]


@cache
def passes(check, name):
    return check(MUTANTS[name])


@pytest.mark.parametrize("name", MUTANTS)
def test_every_shortcut_is_an_isometry_and_fails_a_check_nevertheless(name):
    """Which is why neither A' A = I nor any accuracy shows it."""
    rows = MUTANTS[name](stream_of(1), np.eye(32), 40)
    np.testing.assert_allclose(rows.T @ rows, np.eye(32), rtol=0, atol=GOLDEN)
    assert not all(passes(check, name) for check in CHECKS)


@pytest.mark.parametrize("check", CHECKS)
def test_the_construction_passes_every_check_and_each_catches_some_shortcut(check):
    assert check(blocked)
    assert not all(passes(check, name) for name in MUTANTS)


def test_the_checks_hold_at_the_size_of_an_image():
    """784 features: 200 reflections of them keep cosine .6, all of them are at chance."""
    short = partial(literal, reflections=200)
    assert diagonal_is_at_chance(blocked, size=784, draws=1)
    assert not diagonal_is_at_chance(short, size=784, draws=1)
    assert span_is_unreadable(blocked, size=784, kept=24, draws=2)
    assert not span_is_unreadable(short, size=784, kept=24, draws=2)


@pytest.mark.parametrize(("n_rows", "n_columns"), SHAPES)
def test_blocks_are_single_reflections_orthonormal_and_have_their_adjoint(n_rows, n_columns):
    anchor, columns = isometry(3, n_rows, n_columns), stream_of(7).normal((n_columns, 3))
    rows, kept, slack = stream_of(6).normal((n_rows, 2)), columns.copy(), n_rows * 100 * EPS
    near = partial(np.testing.assert_allclose, rtol=0, atol=slack)
    near(anchor.apply(columns), literal(stream_of(3), columns, n_rows))
    dense = anchor.apply(np.eye(n_columns))
    near(dense.T @ dense, np.eye(n_columns))
    near(anchor.apply_transposed(rows), dense.T @ rows)
    near(anchor.apply_transposed(anchor.apply(columns)), columns)
    np.testing.assert_array_equal(columns, kept)
    np.testing.assert_array_equal(rows, stream_of(6).normal((n_rows, 2)))
