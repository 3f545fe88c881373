"""What party and analyst share: exact where it answers, and silent where squaring loses digits."""

import numpy as np
import pytest

from aligners import GOLDEN, haar, key_of
from cobasis.linalg.leading import by_iteration, of_columns, of_gram, stacked
from cobasis.linalg.rng import KeyStream


def normal(*shape):
    return KeyStream(key_of(1), "tests/eigen").normal(shape)


def same_up_to_sense(found, expected):
    return np.abs(np.abs(np.sum(found * expected, axis=0)) - 1).max() < GOLDEN


@pytest.mark.parametrize("count", [1, 4, 6])
def test_a_gram_matrix_of_either_side_shows_the_svd(count):
    table = normal(9, 6)
    left, values, _ = np.linalg.svd(table, full_matrices=False)
    rows = np.tril(table @ table.T) + np.triu(np.full((9, 9), np.nan), 1)  # never read
    for found in (of_gram(rows, count), of_columns(table, count)):
        assert same_up_to_sense(found.directions, left[:, :count])
        np.testing.assert_allclose(found.singular_values, values[:count], rtol=GOLDEN)


@pytest.mark.parametrize(
    ("squares", "count", "against"),
    [
        ((1.0, 1.0), 0, 0.0),
        ((1.0, 1.0), 3, 0.0),
        ((0.0, 0.0), 1, 0.0),
        ((1.0, 0.9e-6), 2, 0.0),
        ((1.0, 1.0), 1, 1.1e6),
        ((np.inf, 1.0), 1, 0.0),
    ],
)
def test_there_is_no_answer_where_it_would_not_be_exact(squares, count, against):
    assert of_gram(np.diag(squares), count, against=against) is None


def test_just_enough_is_answered():
    assert of_gram(np.diag([1.0, 1.1e-6]), 2) is not None
    assert of_gram(np.diag([1.0, 1.0]), 1, against=0.9e6) is not None


def test_a_triangle_has_the_singular_values_of_all_tables():
    tables = [normal(rows, 4) for rows in (1, 2, 7)]
    triangle = stacked(stacked(*tables[:2]), tables[2])
    assert triangle.shape == (4, 4)
    expected = np.linalg.svd(np.vstack(tables), compute_uv=False)
    np.testing.assert_allclose(np.linalg.svd(triangle, compute_uv=False), expected, rtol=GOLDEN)


def iterated(values, **options):
    """Iterate on a matrix of given axes; also count passes."""
    axes = haar(1, len(values))
    numbers = []

    def product(number, basis):
        numbers.append(number)
        return axes * values**2 @ (axes.T @ basis)

    start = normal(len(values), 4)
    return axes, numbers, by_iteration(product, start, count=3, **options)


def test_iteration_ends_when_values_stand_still():
    """With rank 3 the second basis spans everything, and the third pass sees that."""
    values = np.array([3.0, 2.0, 1.0, 0.0, 0.0, 0.0])
    axes, numbers, found = iterated(values, passes=50, still=1e-10)
    assert numbers == [1, 2, 3]
    assert same_up_to_sense(found.directions[:, :3], axes[:, :3])
    np.testing.assert_allclose(found.singular_values[:3], values[:3], rtol=GOLDEN)


@pytest.mark.parametrize("still", [0.0, 1e-10])
def test_iteration_ends_when_passes_are_over(still):
    values = np.array([3.0, 2.0, 1.0, 0.99, 0.98, 0.97])
    _, numbers, found = iterated(values, passes=4, still=still)
    assert numbers == [1, 2, 3, 4]
    np.testing.assert_allclose(
        found.directions.T @ found.directions, np.eye(4), rtol=0, atol=GOLDEN
    )
