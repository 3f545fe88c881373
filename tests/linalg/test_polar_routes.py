"""Which matrices pay for a singular value decomposition: only those that nothing cheaper serves."""

import numpy as np
import pytest

from aligners import EPS, GOLDEN, haar, key_of
from cobasis.linalg.polar import polar
from cobasis.linalg.rng import KeyStream

SIZE = 20


def with_values(number, values):
    """A square matrix of the given singular values."""
    return haar(2 * number, len(values)) * values @ haar(2 * number + 1, len(values))


def gaussian(number):
    return KeyStream(key_of(number), "tests/routes").normal((3 * SIZE, SIZE))


def towering(number):
    """As a uniform anchor's mean makes it; from 1e4 on an eigendecomposition alone fails."""
    return with_values(number, np.array([1e5, *np.linspace(1.0, 0.1, SIZE - 1)]))


CHEAP = {
    "random and tall": gaussian,
    "random and wide": lambda number: gaussian(number).T,
    "within a factor of ten": lambda n: with_values(n, np.linspace(1.0, 0.1, SIZE)),
    "one that stands out": lambda n: with_values(n, np.array([1e3, *np.linspace(1, 0.1, 19)])),
    "one that towers": towering,
    "orthogonal": lambda number: haar(number, SIZE),
    "orthogonal, times a number": lambda number: 7.0 * haar(number, SIZE)[:, :5],
}


@pytest.fixture
def calls(monkeypatch):
    """Count calls of NumPy's eigh and svd, which array_api_compat looks up when it is called."""
    counted = {"eigh": 0, "svd": 0}

    def counting(name):
        real = getattr(np.linalg, name)

        def called(*args, **options):
            counted[name] += 1
            return real(*args, **options)

        monkeypatch.setattr(np.linalg, name, called)

    counting("eigh")
    counting("svd")
    return counted


@pytest.mark.parametrize("kind", CHEAP)
def test_good_stacks_never_go_through_svd(kind, calls):
    rotation = polar(np.stack([CHEAP[kind](number) for number in range(12)])).rotation
    assert calls == {"eigh": 0 if "orthogonal" in kind else 1, "svd": 0}
    if rotation.shape[-2] < rotation.shape[-1]:
        rotation = rotation.swapaxes(-1, -2)
    gram = rotation.swapaxes(-1, -2) @ rotation
    assert np.abs(gram - np.eye(gram.shape[-1])).max() < GOLDEN


def test_good_matrices_of_different_kinds_share_one_stack_without_svd(calls):
    square = ("within a factor of ten", "one that towers", "orthogonal")
    polar(np.stack([CHEAP[kind](number) for kind in square for number in range(4)]))
    assert calls == {"eigh": 1, "svd": 0}


def test_a_mean_is_found_however_the_columns_are_mixed(calls):
    """Parties that mix their components at random, so that a mean's column sums may cancel."""
    values = np.array([400.0, *np.geomspace(4.0, 4e-3, 99)])
    for number in range(30):
        found = polar(with_values(number, values)).singular_values
        np.testing.assert_allclose(found, values, rtol=1e-7)
    assert calls == {"eigh": 30, "svd": 0}


@pytest.mark.parametrize("place", [0, 5, 11])
def test_a_rank_deficient_matrix_goes_through_svd_alone(place, calls):
    stack = np.stack([towering(number) for number in range(12)])
    stack[place] = with_values(20, np.array([*np.ones(SIZE - 3), *np.zeros(3)]))
    values = polar(stack).singular_values
    assert calls == {"eigh": 1, "svd": 1}
    assert np.flatnonzero(values[:, -1] < SIZE * EPS).tolist() == [place]
