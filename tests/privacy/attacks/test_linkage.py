"""Candidates are linked at every l; people of two hospitals are found in both."""

import numpy as np
import pytest

from cobasis.errors import ShapeError
from cobasis.privacy.attacks.linkage import (
    CandidateList,
    CandidatesAlone,
    Links,
    SamePerson,
    score_links,
)
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.scores import score_content, score_decision, score_linkage
from privacy.attacks.constructions import cancer, digits, haar_basis, own_basis, released


def listed(data, *, n_rows, n_candidates, seed=0):
    """A party's rows, a list of candidates in another order, and where the party's stand on it."""
    rows = np.random.default_rng(seed).permutation(data()[0])[:n_candidates]
    order = np.random.default_rng(seed + 1).permutation(n_candidates)
    return rows[:n_rows], rows[order], np.argsort(order)[:n_rows]


def linked(attack, release, places):
    recovered = attack.recover(release)
    return score_linkage(release.rows, recovered, candidates=attack.candidates, places=places)


@pytest.mark.parametrize("n_components", [2, 4, 16])
@pytest.mark.parametrize("make", ["svd", "haar"])
def test_a_leaked_basis_and_a_list_name_everybody_at_every_l(n_components, make):
    rows, candidates, places = listed(digits, n_rows=300, n_candidates=1000)
    haar = haar_basis(rows.shape[1], n_components)
    basis = own_basis(rows, n_components) if make == "svd" else haar
    attack = CandidateList(candidates=candidates, basis=basis)
    release = released(rows, basis)
    share = linked(attack, release, places)
    assert (share.value, share.chance) == (1, 0.001)
    assert score_content(attack.recover(release), rows).explained.value == 1


def test_noise_is_what_stops_it():
    rows, candidates, places = listed(digits, n_rows=300, n_candidates=800)
    basis = own_basis(rows, 16)
    clear = released(rows, basis).rows
    size = np.sqrt(np.mean(np.sum((clear - clear.mean(axis=0)) ** 2, axis=1)))
    attack = CandidateList(candidates=candidates, basis=basis)
    noise = np.random.default_rng(0).normal(size=clear.shape) * size
    found = [
        linked(attack, Release(rows=clear + level * noise), places).value
        for level in (0.05, 0.1, 0.2, 0.4)
    ]
    np.testing.assert_allclose(found, (1.00, 0.94, 0.56, 0.11), atol=0.09)


ALONE = [  # people, components, candidates
    (digits, 300, 16, 300),
    (digits, 300, 16, 1797),
    (digits, 300, 8, 1200),
    (cancer, 280, 10, 569),
    (cancer, 280, 5, 569),
]


@pytest.mark.parametrize(("data", "n_rows", "n_components", "n_candidates"), ALONE)
def test_a_list_alone_names_everybody_where_the_basis_is_the_partys_own_svd(
    data, n_rows, n_components, n_candidates
):
    rows, candidates, places = listed(data, n_rows=n_rows, n_candidates=n_candidates)
    release = released(rows, own_basis(rows, n_components))
    recovered = CandidatesAlone(candidates=candidates).recover(release)
    share = score_linkage(release.rows, recovered, candidates=candidates, places=places)
    assert share.value > 0.98
    assert share.chance == 1 / n_candidates
    assert score_content(recovered, rows).named.value > 0.98


@pytest.mark.parametrize(("share", "least"), [(0.5, 0.95), (0.1, 0.45)])
def test_a_list_that_most_of_the_people_are_not_on_names_many_of_those_that_are(share, least):
    rows = digits()[0][:1080]
    party, on_it = rows[:800], round(share * 800)
    candidates = np.vstack([party[:on_it], rows[800:]])
    release = released(party, own_basis(party, 16))
    recovered = CandidatesAlone(candidates=candidates).recover(release)
    first = Release(rows=release.rows[:on_it])
    share_of_them = score_linkage(
        first.rows, recovered, candidates=candidates, places=np.arange(on_it)
    )
    assert share_of_them.value > least
    assert share_of_them.chance < 0.003


@pytest.mark.parametrize(("data", "n_components"), [(digits, 8), (cancer, 5)])
def test_a_basis_from_public_rows_is_no_better_against_a_list(data, n_components):
    rows, candidates, places = listed(data, n_rows=200, n_candidates=350)
    public = np.random.default_rng(0).permutation(data()[0])[-100:]  # none of them on the list
    release = released(rows, own_basis(public, n_components))
    assert linked(CandidatesAlone(candidates=candidates), release, places).value > 0.98


def test_few_components_and_a_long_list_leave_doubts():
    rows, candidates, places = listed(digits, n_rows=100, n_candidates=1797)
    release = released(rows, own_basis(rows, 4))
    assert linked(CandidatesAlone(candidates=candidates), release, places).value < 0.5


@pytest.mark.parametrize(("data", "n_rows", "n_components"), [(digits, 300, 16), (cancer, 280, 10)])
def test_a_haar_basis_leaves_a_list_alone_near_chance(data, n_rows, n_components):
    rows, candidates, places = listed(data, n_rows=n_rows, n_candidates=2 * n_rows)
    release = released(rows, haar_basis(rows.shape[1], n_components))
    assert linked(CandidatesAlone(candidates=candidates), release, places).value < 0.05


def test_a_list_shorter_than_the_basis_is_refused():
    with pytest.raises(ShapeError, match="Give a longer list"):
        CandidatesAlone(candidates=np.eye(5)).recover(Release(rows=np.ones((9, 6))))


def two_hospitals(data, *, n_rows, n_components, noise, both=30):
    """A release each, the changes of basis, and where the second's people stand in the first."""
    again = np.random.default_rng(3)
    rows = again.permutation(data()[0])[: 2 * n_rows - both]
    first, second = rows[:n_rows], rows[n_rows - both :].copy()
    second[:both] += noise * rows.std(axis=0) * again.normal(size=(both, rows.shape[1]))
    bases = [
        own_basis(each, n_components, number=number) for number, each in enumerate((first, second))
    ]
    left, _, right = np.linalg.svd(bases[1].T @ bases[0])
    places = np.where(np.arange(n_rows) < both, np.arange(n_rows) + n_rows - both, -1)
    attack = SamePerson(
        other=released(first, bases[0]), other_change=np.eye(n_components), change=left @ right
    )
    return attack, released(second, bases[1]), places


SAME = [(digits, 300, 16), (cancer, 130, 10)]


@pytest.mark.parametrize("noise", [0, 0.05], ids=["exact", "measured again"])
@pytest.mark.parametrize(("data", "n_rows", "n_components"), SAME)
def test_who_was_in_two_hospitals_is_found_in_both(data, n_rows, n_components, noise):
    attack, release, places = two_hospitals(
        data, n_rows=n_rows, n_components=n_components, noise=noise
    )
    links = attack.link(release)
    assert score_links(links, places).value == 1
    assert score_links(links, places).chance == 1 / n_rows
    assert score_decision(-links.distances, places >= 0).auc.value > 0.94


def test_links_are_scored_for_people_in_both_only():
    links = Links(places=np.array([2, 0, 1]), distances=np.zeros(3), n_others=4)
    assert score_links(links, [2, 3, -1]).value == 0.5
    for places in ([-1, -1, -1], [1, 2]):
        with pytest.raises(ShapeError, match="some in both"):
            score_links(links, places)
