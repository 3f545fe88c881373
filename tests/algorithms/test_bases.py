import re
from typing import get_args

import numpy as np
import pytest
from scipy.linalg import eigh

from aligners import CONDITIONS, GOLDEN, key_of, normal, principal_cosines
from cobasis.algorithms import AnchorKind, bases
from cobasis.algorithms.bases import (
    BASES,
    bases_under,
    check_basis_rule,
    local_directions,
    require_components,
)
from cobasis.errors import AgreementError, DimensionError, OptionError
from cobasis.linalg.arrays import Blocks, orthonormality_defect
from cobasis.linalg.directions import leading_directions
from cobasis.linalg.rng import KeyStream


def directions(rows, n_components: int) -> np.ndarray:
    return leading_directions(rows, n_wanted=n_components).directions


@pytest.mark.parametrize("anchor", get_args(AnchorKind))
@pytest.mark.parametrize("n_parties", [2, 3])
@pytest.mark.parametrize("basis", BASES)
def test_the_table_forbids_exactly_what_it_says(basis, n_parties, anchor):
    forbidden = basis.endswith("consensus") and (anchor != "isometric" or n_parties < 3)
    if not forbidden:
        assert check_basis_rule(basis, anchor=anchor, n_parties=n_parties) is None
        return
    reason = "anchor='isometric'" if anchor != "isometric" else f"{n_parties} .*bisector"
    with pytest.raises(AgreementError, match=rf"{reason}.*\[CB303\]"):
        check_basis_rule(basis, anchor=anchor, n_parties=n_parties)


@pytest.mark.parametrize(
    ("n_rows", "rank", "reason"),
    [(3, 3, r"has 3 row\(s\) for n_components=4"), (9, 2, "has too few independent rows for")],
)
def test_a_party_with_too_few_directions_is_refused_without_its_rank(n_rows, rank, reason):
    """A rank is a number computed from private rows."""
    rows = normal(7, n_rows, rank) @ normal(8, rank, 8)
    with pytest.raises(DimensionError, match=rf"party 'north' {reason}.*\[CB106\]") as raised:
        require_components(directions(rows, 4), n_components=4, n_rows=n_rows, party="north")
    assert set(re.findall(r"\d+", str(raised.value))) <= {"3", "4", "106"}
    enough = directions(normal(9, 4, 8), 4)
    assert require_components(enough, n_components=4, n_rows=4, party="north") is None


def under(condition: str, *, n_rows: int = 20) -> tuple[dict, dict]:
    rows = {party: normal(index, n_rows, 8) for index, party in enumerate(("a", "b", "c"))}
    streams = {party: KeyStream(key_of(ord(party)), "basis") for party in rows}
    return rows, bases_under(condition, rows, n_components=3, streams=streams)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_spans_the_firsts_directions_or_its_own_by_haar_or_uniform_factors(condition):
    rows, bases = under(condition)
    for party, basis in bases.items():
        source = "a" if condition.startswith("samespan") else party
        span = directions(rows[source], 3)
        assert principal_cosines(span, basis).min() > 1 - 1e-10
        assert (principal_cosines(directions(rows["c"], 3), basis).min() > 0.99) == (source == "c")
        factor = span.T @ basis
        if condition.endswith("_orth"):
            assert orthonormality_defect(factor) < GOLDEN
        else:
            stream = KeyStream(key_of(ord(party)), "basis")
            np.testing.assert_allclose(factor, stream.uniform((3, 3)), rtol=0, atol=GOLDEN)


def test_a_condition_that_lacks_directions_is_refused():
    with pytest.raises(DimensionError, match=r"party 'a' has 2 row\(s\).*\[CB106\]"):
        under("diffspan", n_rows=2)


# ---------------------------------------------------------------- locality preserving projections


def local(rows, n_components):
    return local_directions(rows, n_components=n_components, party="north")


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
    cosines = principal_cosines(by_definition(rows, 3), local(rows, 3))
    np.testing.assert_allclose(cosines, 1, atol=1e-10)


@pytest.mark.parametrize(("n_rows", "width"), [(60, 5), (12, 40), (200, 9), (80, 12)])
def test_columns_are_orthonormal_and_do_not_depend_on_order_or_centre(n_rows, width):
    """Nor do they of words, many of which are equally near: all of these are neighbours."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(n_rows, width))
    if width == 12:
        rows = (rows > 0.5).astype(float)
    found = local(rows, 4)
    assert found.shape == (width, 4)
    assert orthonormality_defect(found) < GOLDEN
    np.testing.assert_allclose(local(rng.permutation(rows) + 3.0, 4), found, atol=1e-9)


def test_directions_are_never_filling():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 8))
    assert local(rows, 4).shape == (8, 2)
    assert local(rng.normal(size=(4, 8)), 4).shape == (8, 3)
    assert local(np.full((5, 3), 7.0), 2).shape == (3, 0)
    assert local(np.ones((1, 3)), 1).shape == (3, 0)


def test_a_table_with_too_many_rows_or_read_in_blocks_is_refused(monkeypatch):
    monkeypatch.setattr(bases, "LARGEST_GRAPH", 30)
    rows = normal(1, 60, 5)
    assert local(rows[:30], 2).shape == (5, 2)
    with pytest.raises(OptionError, match=r"'north' has 60 rows.*30 rows are its limit.*\[CB107\]"):
        local(rows, 2)
    in_blocks = type("InBlocks", (Blocks,), {"over": None})()
    with pytest.raises(OptionError, match=r"basis='lpp' of party 'north'.*in blocks.*\[CB107\]"):
        local(in_blocks, 2)
