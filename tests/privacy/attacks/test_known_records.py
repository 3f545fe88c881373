"""A list names all who are on it; a few known people give away the others."""

import numpy as np
import pytest

from cobasis.errors import ShapeError
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.known_records import (
    back_to_records,
    fewest_known,
    infer_attribute,
    match_list,
)
from cobasis.privacy.attacks.scores import score_content, score_linkage
from privacy.attacks.constructions import cancer, digits, haar_basis, own_basis, released

CANCER, DIGITS = cancer()[0][:280], digits()[0][:800]
RNG = np.random.default_rng


def attacked(rows, basis, known, *, draw=0):
    """What is made of everybody's record, and who is known."""
    places, seen = RNG(draw).permutation(len(rows))[:known], rows @ basis
    back = back_to_records(seen[places], rows[places])
    return Recovered(rows=seen @ back, basis=basis), places


def averaged(rows, basis, known):
    found = []
    for draw in range(4):
        recovered, places = attacked(rows, basis, known, draw=draw)
        content = score_content(recovered, rows, known=places)
        found.append([content.explained.value, content.cells.value, content.named.value])
    return np.mean(found, axis=0)


NOTES = [  # rows, l, known; R2, cells, re-identification; slack for so few people and splits
    (CANCER, 10, 5, (0.54, 0.74, 0.16), (0.20, 0.08, 0.2)),
    (CANCER, 10, 20, (0.90, 0.94, 0.97), (0.04, 0.03, 0.05)),
    (DIGITS, 16, 5, (0.05, 0.45, 0.006), (0.15, 0.04, 0.03)),
    (DIGITS, 16, 16, (0.58, 0.53, 0.39), (0.06, 0.04, 0.1)),
    (DIGITS, 16, 32, (0.73, 0.58, 0.74), (0.03, 0.03, 0.06)),
]


@pytest.mark.parametrize(("rows", "size", "known", "printed", "slack"), NOTES)
def test_known_records_get_what_the_notes_measured(rows, size, known, printed, slack):
    found = averaged(rows, own_basis(rows, size), known)
    np.testing.assert_array_less(np.abs(found - printed), slack)


def test_more_known_people_are_never_much_worse():
    """Unpenalised least squares are: at k = l its error explodes."""
    basis = haar_basis(64, 16)
    found = [averaged(DIGITS, basis, known)[0] for known in (2, 10, 14, 16, 18, 32)]
    assert min(np.diff(found)) > -0.06
    assert found[-1] - found[0] > 0.5


def test_the_fewest_known_people_are_where_the_bars_are_crossed_or_none_where_even_most_are_few():
    few, found = (
        fewest_known(released(DIGITS, own_basis(DIGITS, size)), DIGITS, rng=RNG(0), draws=5)
        for size in (4, 16)
    )
    explained, named, tried = found
    assert (9 <= explained <= 18, 6 <= named <= 13, tried) == (True, True, 32)
    assert few == (None, None, 8)


@pytest.mark.parametrize(
    ("data", "n_rows", "n_components", "n_known", "found"),  # AUC from rows, from labels alone
    [(cancer, 280, 5, 100, (0.94, 0.70)), (digits, 800, 8, 20, (0.83, 0.70))],
)
def test_a_few_known_people_give_everybodys_attribute_away(
    data, n_rows, n_components, n_known, found
):
    """The mean over features that split people, of which every third is taken."""
    rows, labels = data()[0][:n_rows], data()[1][:n_rows]
    release = released(rows, own_basis(rows, n_components), labels=labels)
    splitting = np.flatnonzero(np.mean(rows > np.median(rows, axis=0), axis=0) >= 0.2)[::3]
    inferred = [
        infer_attribute(release, rows[:, each], rng=RNG(each), n_known=n_known, draws=3)
        for each in splitting
    ]
    np.testing.assert_allclose(np.mean(inferred, axis=0), found, atol=0.05)


TOY = RNG(1).normal(size=(200, 3))


def inferred(column, *, rows=TOY, labels=None):
    return infer_attribute(Release(rows=rows, labels=labels), column, rng=RNG(0), n_known=20)


def test_a_column_of_the_release_is_read_whatever_the_rotation_and_the_scale():
    turn = np.linalg.qr(RNG(4).normal(size=(3, 3)))[0]
    found, turned = (inferred(TOY[:, 0], rows=rows)[0] for rows in (TOY, TOY @ turn * 1000))
    assert turned == pytest.approx(found, abs=1e-3)
    assert found > 0.95
    highest = (TOY[:, 0] > -0.7).astype(float)  # of most: the others are looked for
    assert inferred(highest)[0] > 0.9
    labels = RNG(3).normal(size=200) > 0  # which rows say nothing of, and labels all
    for kind in (int, float):
        found = inferred(labels.astype(float), labels=labels.astype(kind))
        assert found == (pytest.approx(0.5, abs=0.06), 1)
    for alike in (np.ones(200), np.arange(200) == 7):  # all, or all but the known
        with pytest.raises(ShapeError):
            inferred(alike.astype(float))


def listed(data, *, n_rows, n_candidates):
    """A party's rows, a list of candidates in another order, and where the party's stand on it."""
    rows = RNG(0).permutation(data()[0])[:n_candidates]
    order = RNG(1).permutation(n_candidates)
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
    noise = RNG(0).normal(size=clear.shape) * size
    found = [
        score_linkage(clear + level * noise, basis, candidates=candidates, places=places).value
        for level in (0.05, 0.1, 0.2, 0.4)
    ]
    np.testing.assert_allclose(found, (1.00, 0.94, 0.56, 0.11), atol=0.09)


@pytest.mark.parametrize(
    ("data", "basis", "sizes", "least", "most"),  # people, components, people on the list
    [
        (digits, "own", (300, 16, 1797), 0.98, 1),
        (digits, "own", (300, 8, 1200), 0.98, 1),
        (cancer, "own", (280, 5, 569), 0.98, 1),
        (digits, "public", (200, 8, 350), 0.98, 1),  # of rows that are not on the list
        (digits, "haar", (200, 16, 350), 0, 0.05),
        (digits, "own", (100, 4, 1797), 0, 0.5),
    ],
)
def test_a_list_alone_names_everybody_where_the_basis_is_the_partys_own_svd(
    data, basis, sizes, least, most
):
    n_rows, n_components, n_candidates = sizes
    rows, candidates, places = listed(data, n_rows=n_rows, n_candidates=n_candidates)
    made_of = {"own": rows, "public": RNG(0).permutation(data()[0])[-100:]}.get(basis)
    secret = haar_basis(64, n_components) if made_of is None else own_basis(made_of, n_components)
    found = match_list(rows @ secret, candidates)
    linked = score_linkage(rows @ secret, found.basis, candidates=candidates, places=places)
    assert least <= min(linked.value, score_content(found, rows).named.value)
    assert linked.value <= most


@pytest.mark.parametrize(("share", "least"), [(0.5, 0.95), (0.1, 0.45)])
def test_a_list_that_most_of_the_people_are_not_on_names_many_of_those_that_are(share, least):
    rows = digits()[0][:1080]
    party, on_it = rows[:800], round(share * 800)
    candidates, released = np.vstack([party[:on_it], rows[800:]]), party @ own_basis(party, 16)
    basis, places = match_list(released, candidates).basis, np.arange(on_it)
    found = score_linkage(released[:on_it], basis, candidates=candidates, places=places)
    assert found.value > least
    assert found.chance < 0.003
