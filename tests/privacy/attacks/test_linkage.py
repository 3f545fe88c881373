"""Candidates are linked at every l, and with an own basis by a list alone; noise stops it."""

import numpy as np
import pytest

from cobasis.privacy.attacks.known_records import match_list
from cobasis.privacy.attacks.scores import score_content, score_linkage
from privacy.attacks.constructions import cancer, digits, haar_basis, own_basis


def listed(data, *, n_rows, n_candidates):
    """A party's rows, a list of candidates in another order, and where the party's stand on it."""
    rows = np.random.default_rng(0).permutation(data()[0])[:n_candidates]
    order = np.random.default_rng(1).permutation(n_candidates)
    return rows[:n_rows], rows[order], np.argsort(order)[:n_rows]


@pytest.mark.parametrize("n_components", [2, 16])
def test_a_leaked_basis_and_a_list_name_everybody_at_every_l(n_components):
    rows, candidates, places = listed(digits, n_rows=300, n_candidates=1000)
    basis = haar_basis(64, n_components)
    share = score_linkage(rows @ basis, basis, candidates=candidates, places=places)
    assert (share.value, share.chance) == (1, 0.001)


def test_noise_is_what_stops_it():
    rows, candidates, places = listed(digits, n_rows=300, n_candidates=800)
    basis = own_basis(rows, 16)
    clear = rows @ basis
    size = np.sqrt(np.mean(np.sum((clear - clear.mean(axis=0)) ** 2, axis=1)))
    noise = np.random.default_rng(0).normal(size=clear.shape) * size
    found = [
        score_linkage(clear + level * noise, basis, candidates=candidates, places=places).value
        for level in (0.05, 0.1, 0.2, 0.4)
    ]
    np.testing.assert_allclose(found, (1.00, 0.94, 0.56, 0.11), atol=0.09)


def alone(rows, basis, candidates, places):
    """How many are named with a list and nothing else, and what is made of the rows."""
    recovered = match_list(rows @ basis, candidates)
    linked = score_linkage(rows @ basis, recovered.basis, candidates=candidates, places=places)
    return linked.value, recovered


@pytest.mark.parametrize(
    ("data", "n_rows", "n_components", "n_candidates"),
    [(digits, 300, 16, 1797), (digits, 300, 8, 1200), (cancer, 280, 5, 569)],
)
def test_a_list_alone_names_everybody_where_the_basis_is_the_partys_own_svd(
    data, n_rows, n_components, n_candidates
):
    rows, *on_list = listed(data, n_rows=n_rows, n_candidates=n_candidates)
    linked, recovered = alone(rows, own_basis(rows, n_components), *on_list)
    assert min(linked, score_content(recovered, rows).named.value) > 0.98


def test_public_rows_are_no_better_a_haar_basis_and_few_components_leave_doubts():
    rows, *on_list = listed(digits, n_rows=200, n_candidates=350)
    public = np.random.default_rng(0).permutation(digits()[0])[-100:]  # none of them on the list
    assert alone(rows, own_basis(public, 8), *on_list)[0] > 0.98
    assert alone(rows, haar_basis(64, 16), *on_list)[0] < 0.05
    rows, *on_list = listed(digits, n_rows=100, n_candidates=1797)
    assert alone(rows, own_basis(rows, 4), *on_list)[0] < 0.5


@pytest.mark.parametrize(("share", "least"), [(0.5, 0.95), (0.1, 0.45)])
def test_a_list_that_most_of_the_people_are_not_on_names_many_of_those_that_are(share, least):
    rows = digits()[0][:1080]
    party, on_it = rows[:800], round(share * 800)
    candidates, released = np.vstack([party[:on_it], rows[800:]]), party @ own_basis(party, 16)
    basis, places = match_list(released, candidates).basis, np.arange(on_it)
    found = score_linkage(released[:on_it], basis, candidates=candidates, places=places)
    assert found.value > least
    assert found.chance < 0.003
