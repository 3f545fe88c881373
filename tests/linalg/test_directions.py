import numpy as np
import pytest

from aligners import key_of
from cobasis.linalg import arrays, directions
from cobasis.linalg.arrays import orthonormality_defect
from cobasis.linalg.directions import leading_directions
from cobasis.linalg.rng import KeyStream, haar_columns


def table_of(values, n_rows, *, seed=0):
    stream = KeyStream(key_of(seed), "tests/directions")
    left = haar_columns(stream, n_rows=n_rows, n_columns=len(values))
    right = haar_columns(stream, n_rows=12, n_columns=len(values))
    return left * values @ right.T, right


def directions_of(table, **options):
    return leading_directions(table, **options).directions


def off(found, right):
    """How far columns are from the true ones, sense aside."""
    true = right[:, : found.shape[1]]
    return np.abs(found - true * np.sign(np.sum(found * true, axis=0))).max()


@pytest.fixture(params=[2**20, 1], ids=["one part", "parts of 256 rows"])
def parts(request, monkeypatch):
    monkeypatch.setattr(arrays, "PART_CELLS", request.param)


@pytest.mark.parametrize("n_rows", [9, 12, 700])
@pytest.mark.parametrize("weakest", [0.3, 1e-5, 1e-8])
@pytest.mark.usefixtures("parts")
def test_directions_are_found_down_to_weak_ones(n_rows, weakest):
    """By a Gram matrix alone 1e-8 would be lost: its square is below rounding."""
    values = np.array([5, 3, 2, 1.5, 0.5 * weakest, 0.2 * weakest])
    table, right = table_of(values, n_rows)
    leading = leading_directions(table, n_wanted=5)
    found = leading.directions
    assert orthonormality_defect(found) < 1e-12
    assert off(found[:, :4], right) < 1e-9
    assert off(found, right) < max(1e-9, 1e-14 / weakest)
    np.testing.assert_allclose(leading.singular_values, values[:5], rtol=max(1e-9, 1e-14 / weakest))


@pytest.mark.parametrize("n_rows", [5, 12, 700])
@pytest.mark.usefixtures("parts")
def test_directions_beyond_the_rank_are_left_out(n_rows):
    table, _ = table_of(np.array([3.0, 2.0, 1e-17]), n_rows)
    assert directions_of(table, n_wanted=4).shape == (12, 2)
    assert directions_of(table * 0, n_wanted=4).shape == (12, 0)
    assert directions_of(table * 1e-30, n_wanted=4).shape == (12, 2)


@pytest.mark.parametrize("n_rows", [8, 700])
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.usefixtures("parts")
def test_centred_directions_do_not_see_the_mean(n_rows, offset):
    table, _ = table_of(np.array([3.0, 2.0, 1.0]), n_rows)
    centred = table - table.mean(axis=0)
    right = np.linalg.svd(centred, full_matrices=False)[2][:3].T
    found = directions_of(table + offset, n_wanted=3, centred=True)
    assert off(found, right) < max(1e-12, 1e-15 * offset * n_rows)


@pytest.mark.parametrize("n_rows", [8, 700])
def test_the_sense_of_a_direction_does_not_depend_on_the_route(n_rows, monkeypatch):
    table, _ = table_of(np.array([3.0, 2.0, 1.0]), n_rows)
    found = directions_of(table, n_wanted=3)
    monkeypatch.setattr(directions, "ACCURATE", 1.0)  # never a Gram matrix
    np.testing.assert_allclose(directions_of(table, n_wanted=3), found, atol=1e-12)
    np.testing.assert_allclose(directions_of(-table[::-1], n_wanted=3), found, atol=1e-12)
