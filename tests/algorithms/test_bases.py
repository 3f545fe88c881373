"""Secret bases: the table of bases, real directions only, and eq. 92's four conditions."""

import re
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aligners import CONDITIONS, EPS, GOLDEN, STEADY, haar, key_of
from cobasis.algorithms import AnchorKind
from cobasis.algorithms.bases import (
    BASES,
    bases_under,
    check_basis_rule,
    filled,
    require_components,
)
from cobasis.errors import AgreementError, DimensionError, OptionError, OrthonormalityError
from cobasis.linalg.arrays import orthonormality_defect, principal_cosines
from cobasis.linalg.leading import leading_directions
from cobasis.linalg.rng import KeyStream
from cobasis.protocol.secrets import SecretBasis

ANCHORS = get_args(AnchorKind)


def normal(number: int, *shape: int) -> np.ndarray:
    return KeyStream(key_of(number), "tests/bases").normal(shape)


def directions(rows, n_components: int, *, centred: bool = False) -> np.ndarray:
    return leading_directions(rows, n_wanted=n_components, centred=centred).directions


def test_the_table_of_bases_is_the_designs():
    columns = {name: (rule.exchanges, rule.under_dp) for name, rule in BASES.items()}
    assert columns == {
        "svd": (1, False),
        "pca": (1, False),
        "lpp": (1, False),
        "haar": (1, True),
        "public": (1, True),
        "consensus": (2, False),
        "weighted_consensus": (2, False),
    }
    assert [name for name, rule in BASES.items() if rule.exchanges > 1] == [*columns][-2:]
    assert [name for name, rule in BASES.items() if rule.weighted] == [*columns][-1:]


@pytest.mark.parametrize("anchor", ANCHORS)
@pytest.mark.parametrize("n_parties", [1, 2, 3, 10])
@pytest.mark.parametrize("basis", BASES)
def test_the_table_forbids_exactly_what_it_says(basis, n_parties, anchor):
    forbidden = basis.endswith("consensus") and (anchor != "isometric" or n_parties < 3)
    if not forbidden:
        assert check_basis_rule(basis, anchor=anchor, n_parties=n_parties) is None
        return
    reason = "anchor='isometric'" if anchor != "isometric" else f"{n_parties} .*bisector"
    with pytest.raises(AgreementError, match=rf"{reason}.*\[CB303\]"):
        check_basis_rule(basis, anchor=anchor, n_parties=n_parties)


def test_a_basis_that_does_not_exist_is_refused():
    with pytest.raises(OptionError, match=r"basis 'ica' does not exist.*consensus.*\[CB107\]"):
        check_basis_rule("ica", anchor="isometric", n_parties=5)


@given(
    number=st.integers(0, 10**6),
    n_rows=st.integers(1, 12),
    rank=st.integers(1, 8),
    n_components=st.integers(1, 8),
)
@STEADY
def test_directions_are_the_leading_singular_vectors_and_never_filling(
    number, n_rows, rank, n_components
):
    """A rank-deficient table has no further directions, whatever LAPACK returns."""
    rows = normal(number, n_rows, rank) @ normal(number + 1, rank, 8)
    found = directions(rows, n_components)
    real = min(n_rows, rank)
    assert found.shape == (8, min(n_components, real))
    assert orthonormality_defect(found) < GOLDEN
    values = np.linalg.svd(rows, compute_uv=False)
    kept = np.linalg.norm(rows @ found, axis=0)
    slack = 100 * EPS * values[0]
    np.testing.assert_allclose(kept, values[: found.shape[1]], rtol=0, atol=slack)


def test_a_table_of_zeros_has_no_direction():
    assert directions(np.zeros((5, 3)), 2).shape == (3, 0)
    assert directions(np.full((5, 3), 7.0), 2, centred=True).shape == (3, 0)
    assert directions(np.full((5, 3), 7.0), 2).shape == (3, 1)


def test_pca_takes_directions_about_the_mean_and_svd_does_not():
    rows = 0.1 * normal(3, 40, 3) + np.array([9.0, 0.0, 0.0]) + np.outer(normal(4, 40), [0, 0, 1.0])
    axes = np.abs(np.hstack([directions(rows, 1), directions(rows, 1, centred=True)]))
    assert axes[0, 0] > 0.99
    assert axes[2, 1] > 0.99
    shifted = directions(rows + 100.0, 3, centred=True)
    np.testing.assert_allclose(
        np.abs(shifted.T @ directions(rows, 3, centred=True)), np.eye(3), atol=1e-10
    )


def test_pca_of_n_rows_has_one_direction_less():
    rows = normal(5, 4, 8)
    assert directions(rows, 4).shape == (8, 4)
    assert directions(rows, 4, centred=True).shape == (8, 3)


def test_more_components_than_features_are_refused():
    found = directions(normal(6, 9, 3), 4)
    with pytest.raises(DimensionError, match=r"'north' has .* for n_components=4.*\[CB106\]"):
        require_components(found, n_components=4, n_rows=9, party="north")


@pytest.mark.parametrize(
    ("n_rows", "rank", "reason"),
    [(3, 3, "has 3 rows for n_components=4"), (9, 2, "has too few independent rows")],
)
def test_a_party_with_too_few_directions_is_refused(n_rows, rank, reason):
    rows = normal(7, n_rows, rank) @ normal(8, rank, 8)
    with pytest.raises(DimensionError, match=rf"party 'north' {reason}.*\[CB106\]"):
        require_components(directions(rows, 4), n_components=4, n_rows=n_rows, party="north")


def test_a_rank_never_stands_in_an_error():
    """It is a number computed from private rows."""
    rows = normal(7, 9, 2) @ normal(8, 2, 8)
    with pytest.raises(DimensionError) as raised:
        require_components(directions(rows, 4), n_components=4, n_rows=9, party="north")
    assert re.findall(r"\d+", str(raised.value)) == ["4", "106"]


def test_a_party_with_enough_directions_passes():
    found = directions(normal(9, 4, 8), 4)
    assert require_components(found, n_components=4, n_rows=4, party="north") is None


@pytest.mark.parametrize("real", [0, 1, 3, 4])
def test_filled_keeps_real_directions_and_adds_the_streams(real):
    found = haar(4, 8)[:, :real]
    one, two = (filled(found, KeyStream(key_of(n), "fill"), n_components=4) for n in (1, 2))
    assert one.shape == (8, 4)
    np.testing.assert_array_equal(one[:, :real], found)
    assert orthonormality_defect(one) < GOLDEN
    assert (real == 4) == np.allclose(one, two)


def test_an_orthonormal_basis_passes_as_it_is():
    basis = haar(2, 8)[:, :3]
    np.testing.assert_array_equal(SecretBasis(basis, party="north").project(np.eye(8)), basis)
    assert SecretBasis(basis + 1e-12, party="north").shape == (8, 3)


@pytest.mark.parametrize(
    "basis", [2 * np.eye(8), haar(2, 8)[:, :3] + 1e-9, np.ones((8, 2)), np.zeros((8, 2))]
)
def test_a_basis_that_is_not_orthonormal_is_refused(basis):
    with pytest.raises(OrthonormalityError, match=r"basis of party 'north'.*1e-10.*\[CB202\]"):
        SecretBasis(basis, party="north")


def under(condition: str, *, n_rows: int = 20) -> tuple[dict, dict]:
    rows = {party: normal(index, n_rows, 8) for index, party in enumerate(("a", "b", "c"))}
    streams = {party: KeyStream(key_of(ord(party)), "basis") for party in rows}
    return rows, bases_under(condition, rows, n_components=3, streams=streams)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_spans_the_first_partys_directions_or_its_own(condition):
    rows, bases = under(condition)
    for party, basis in bases.items():
        source = "a" if condition.startswith("samespan") else party
        span = directions(rows[source], 3)
        assert principal_cosines(span, basis).min() > 1 - 1e-10
        assert (principal_cosines(directions(rows["c"], 3), basis).min() > 0.99) == (source == "c")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_turns_by_haar_or_by_uniform_entries(condition):
    rows, bases = under(condition)
    for party, basis in bases.items():
        source = "a" if condition.startswith("samespan") else party
        factor = directions(rows[source], 3).T @ basis
        stream = KeyStream(key_of(ord(party)), "basis")
        if condition.endswith("_orth"):
            assert orthonormality_defect(factor) < GOLDEN
            assert orthonormality_defect(basis) < GOLDEN
        else:
            np.testing.assert_allclose(factor, stream.uniform((3, 3)), rtol=0, atol=GOLDEN)
            assert orthonormality_defect(basis) > 0.1


def test_a_condition_that_does_not_exist_is_refused():
    with pytest.raises(OptionError, match=r"'samespan_orthogonal' does not exist.*\[CB107\]"):
        under("samespan_orthogonal")


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_needs_as_many_directions_as_components(condition):
    with pytest.raises(DimensionError, match=r"party 'a' has 2 rows.*\[CB106\]"):
        under(condition, n_rows=2)
