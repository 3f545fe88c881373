"""Polar factors, ranks, angles and completions, against SciPy and by their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import polar as scipy_polar
from scipy.linalg import subspace_angles

from aligners import EPS, GOLDEN, STEADY, haar, key_of
from cobasis.linalg.arrays import (
    numerical_rank,
    orthonormality_defect,
    principal_cosines,
)
from cobasis.linalg.leading import right_singular
from cobasis.linalg.polar import polar
from cobasis.linalg.rng import KeyStream

sizes = st.integers(1, 7)


def normal(number: int, *shape: int) -> np.ndarray:
    return KeyStream(key_of(number), "tests/spans").normal(shape)


def rounding(matrix: np.ndarray) -> float:
    return 100 * EPS * float(np.linalg.cond(matrix))


@given(number=st.integers(0, 10**6), rows=sizes, columns=sizes)
@STEADY
def test_polar_equals_scipys(number, rows, columns):
    matrix = normal(number, rows, columns)
    found = polar(matrix)
    np.testing.assert_allclose(
        found.rotation, scipy_polar(matrix)[0], rtol=0, atol=rounding(matrix)
    )
    np.testing.assert_allclose(
        found.singular_values,
        np.linalg.svd(matrix, compute_uv=False),
        rtol=GOLDEN,
    )


def test_polar_keeps_reflections():
    mirror = np.diag([1.0, -1.0, 1.0])
    found = polar(mirror @ np.diag([3.0, 2.0, 1.0])).rotation
    np.testing.assert_allclose(found, mirror, atol=GOLDEN)
    assert np.linalg.det(found) == pytest.approx(-1.0)


def test_polar_shows_where_it_is_arbitrary():
    assert polar(np.zeros((3, 3))).singular_values.tolist() == [0.0, 0.0, 0.0]
    deficient = normal(1, 4, 3) @ np.diag([1.0, 1.0, 0.0])
    values = polar(deficient).singular_values
    assert values[2] < 10 * EPS * values[0] < values[1]


@given(number=st.integers(0, 10**6), rank=st.integers(1, 4))
@STEADY
def test_right_singular_finds_the_rank_and_the_row_space(number, rank):
    table = normal(number, 9, rank) @ normal(number + 1, rank, 6)
    found = right_singular(table)
    real = found.directions
    assert real.shape == (6, rank)
    slack = 100 * EPS * found.singular_values[0] / found.singular_values[-1]
    np.testing.assert_allclose(
        table @ real @ real.T, table, rtol=0, atol=slack * np.abs(table).max()
    )
    assert orthonormality_defect(found.directions) < GOLDEN


def test_right_singular_is_uncentred_and_strongest_first():
    table = np.array([[5.0, 0.0], [5.0, 1.0], [5.0, -1.0]])
    found = right_singular(table)
    np.testing.assert_allclose(np.abs(found.directions), np.eye(2), atol=GOLDEN)
    np.testing.assert_allclose(found.singular_values, [np.sqrt(75), np.sqrt(2)], rtol=GOLDEN)


def test_numerical_rank_does_not_depend_on_units():
    values = np.array([1.0, 1e-3, 1e-14])
    for unit in (1e-200, 1.0, 1e200):
        assert numerical_rank(values * unit, (10, 3)) == 3
        assert numerical_rank(values * unit, (1000, 3)) == 2
    assert numerical_rank(np.zeros(2), (5, 2)) == 0


@given(number=st.integers(0, 10**6), first=sizes, second=sizes)
@STEADY
def test_principal_cosines_equal_scipys(number, first, second):
    one, two = normal(number, 9, first), normal(number + 1, 9, second)
    expected = np.sort(np.cos(subspace_angles(one, two)))[::-1]
    np.testing.assert_allclose(principal_cosines(one, two), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("spread", [1.0, 1e2, 1e6])
def test_principal_cosines_keep_their_digits_however_badly_columns_are_conditioned(spread):
    axes, span = haar(4, 12)[:, :5], haar(5, 12)[:, :4]
    expected = np.linalg.svd(axes.T @ span, compute_uv=False)
    columns = span @ (haar(6, 4) * np.geomspace(1.0, 1 / spread, 4)) @ haar(7, 4)
    np.testing.assert_allclose(principal_cosines(axes, columns), expected, rtol=0, atol=1e-9)


def test_principal_cosines_are_one_within_and_zero_across():
    axes = np.eye(6)
    assert principal_cosines(axes[:, :2], axes[:, :4]).tolist() == [1.0, 1.0]
    assert principal_cosines(axes[:, :2], axes[:, 2:4]).tolist() == [0.0, 0.0]
    assert principal_cosines(normal(3, 6, 6), axes).max() <= 1.0


def test_the_orthonormality_defect_is_the_worst_entry():
    columns = np.eye(5)[:, :3]
    assert orthonormality_defect(columns) == 0.0
    assert orthonormality_defect(2 * columns) == 3.0
    tilted = columns + 0.5 * np.roll(columns, 1, axis=1)
    assert orthonormality_defect(tilted) == 0.5
