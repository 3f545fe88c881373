"""Locality preserving projections: near rows stay near, in any order, and not out of core."""

import numpy as np
import pytest
from scipy.linalg import eigh

from aligners import GOLDEN
from cobasis.algorithms import bases
from cobasis.algorithms.bases import local_directions
from cobasis.errors import OptionError
from cobasis.linalg.arrays import Blocks, orthonormality_defect, principal_cosines
from cobasis.linalg.directions import leading_directions


def directions(rows, n_components):
    return local_directions(rows, n_components=n_components, party="north")


def clusters(seed=0, *, n_rows=60):
    """Three clusters along one axis, and an axis of larger spread on which all are mixed."""
    rng = np.random.default_rng(seed)
    rows = 0.05 * rng.normal(size=(n_rows, 5))
    rows[:, 0] += np.repeat([-1.0, 0.0, 1.0], n_rows // 3)
    rows[:, 1] += rng.uniform(-4, 4, size=n_rows)
    return rows


def test_it_takes_the_axis_on_which_neighbours_are_alike_and_pca_the_longest():
    rows = clusters()
    rows[:, 1] /= 4  # shorter, so that it does not decide who is near
    assert abs(directions(rows, 1)[0, 0]) > 0.9
    by_spread = leading_directions(clusters(), n_wanted=1, centred=True)
    assert abs(by_spread.directions[1, 0]) > 0.99


def by_definition(rows, n_components):
    """He and Niyogi's eigenproblem with the graph written down, all rows' directions kept."""
    centred = rows - rows.mean(axis=0)
    apart = np.sum((rows[:, None] - rows) ** 2, axis=2)
    np.fill_diagonal(apart, np.inf)
    near = np.zeros_like(apart)
    np.put_along_axis(near, np.argsort(apart, axis=1)[:, : bases.NEIGHBOURS], 1.0, axis=1)
    graph = (near + near.T) / 2
    degrees = np.diag(graph.sum(axis=1))
    laplacian = centred.T @ (degrees - graph) @ centred
    return eigh(laplacian, centred.T @ degrees @ centred)[1][:, :n_components]


@pytest.mark.parametrize("part_cells", [1, 137, 2**22])
def test_it_solves_the_papers_eigenproblem_however_it_is_cut(part_cells, monkeypatch):
    monkeypatch.setattr(bases, "DISTANCES", part_cells)
    rows = np.random.default_rng(1).normal(size=(40, 6))
    cosines = principal_cosines(by_definition(rows, 3), directions(rows, 3))
    np.testing.assert_allclose(cosines, 1, atol=1e-10)


@pytest.mark.parametrize(("n_rows", "width"), [(60, 5), (12, 40), (200, 9)])
def test_columns_are_orthonormal_and_do_not_depend_on_order_or_centre(n_rows, width):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(n_rows, width))
    found = directions(rows, 4)
    assert found.shape == (width, 4)
    assert orthonormality_defect(found) < GOLDEN
    np.testing.assert_allclose(directions(rng.permutation(rows) + 3.0, 4), found, atol=1e-9)


def test_rows_that_are_equally_near_are_all_neighbours():
    """Fingerprints have many; taking the first of them would depend on the rows' order."""
    rng = np.random.default_rng(3)
    rows = (rng.random((80, 12)) < 0.3).astype(float)
    shuffled = rng.permutation(rows)
    np.testing.assert_allclose(directions(shuffled, 3), directions(rows, 3), atol=1e-9)


def test_directions_are_never_filling():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 8))
    assert directions(rows, 4).shape == (8, 2)
    assert directions(rng.normal(size=(4, 8)), 4).shape == (8, 3)
    assert directions(np.full((5, 3), 7.0), 2).shape == (3, 0)
    assert directions(np.ones((1, 3)), 1).shape == (3, 0)


def test_a_table_with_too_many_rows_is_refused(monkeypatch):
    monkeypatch.setattr(bases, "LARGEST_GRAPH", 30)
    rows = clusters()
    assert directions(rows[:30], 2).shape == (5, 2)
    with pytest.raises(OptionError, match=r"'north' has 60 rows.*30 rows are its limit.*\[CB107\]"):
        directions(rows, 2)


class InBlocks(Blocks):
    """A table that is read in blocks."""

    shape = (60, 5)

    def over(self, work, *, step):  # noqa: ARG002
        raise AssertionError(step)


def test_a_table_that_is_read_in_blocks_is_refused():
    with pytest.raises(OptionError, match=r"basis='lpp' of party 'north'.*in blocks.*\[CB107\]"):
        directions(InBlocks(), 2)
