from dataclasses import replace

import numpy as np
import pytest

from algorithms.test_streaming import Lazy
from aligners import (
    EPS,
    Toy,
    haar,
    invertible,
    make_anchor,
    make_toy,
    normal,
    on_every_aligner,
    on_every_condition,
)
from cobasis import ODC, align
from cobasis.algorithms.certificate import (
    FIT_TOLERANCE,
    PEERS,
    SPREADS,
    Certificate,
    certify,
    fit_error,
    refuse_wrong_fit,
    row_moments,
)
from cobasis.errors import FitCheckError, NotFiniteError

M, SIZE = 12, 4


def close_spans(n_parties: int, *, anchor: str = "isometric", tilt: float = 0.1) -> Toy:
    """Parties whose orthonormal spans differ a little."""
    common = haar(3, M)[:, :SIZE]
    bases = {f"p{i}": np.linalg.qr(common + tilt * normal(i, M, SIZE))[0] for i in range(n_parties)}
    return Toy(anchor=make_anchor(anchor, n_rows=30, n_features=M), bases=bases)


def rows_of(toy: Toy) -> dict:
    """Every party's projected rows; all have the same strong directions."""
    spread = np.geomspace(3, 0.3, M)
    return {
        name: (normal(500 + i, 40, M) * spread) @ basis
        for i, (name, basis) in enumerate(toy.bases.items())
    }


def state(images, rows, *, alignment=None, anchor="isometric", basis="svd") -> Certificate:
    return certify(
        images,
        alignment or align(ODC(), images),
        moments={party: row_moments([table], party=party) for party, table in rows.items()},
        order=list(images),
        anchor=anchor,
        basis=basis,
        n_features=M,
    )


def by_definition(one, two, *, dimension: int) -> float:
    (image, rows), (other, others) = one, two
    first, second = rows.T @ rows / len(rows), others.T @ others / len(others)
    between = image.T @ other

    def left(moments) -> float:
        return np.trace(moments @ moments) - np.trace(moments) ** 2 / dimension

    together = np.trace(first @ between @ second @ between.T)
    common = np.trace(first) * np.trace(second) / dimension
    return (together - common) / np.sqrt(left(first) * left(second))


@pytest.mark.parametrize(
    ("basis", "dimension"), [("svd", M), ("pca", M), ("haar", 6), ("public", 6)]
)
def test_a_correlation_is_the_median_over_peers_of_the_formula(basis, dimension):
    """In a common span components stand for features."""
    toy, common = close_spans(4), haar(3, M)[:, :6]
    if dimension != M:
        bases = {f"p{i}": common @ haar(20 + i, 6) for i in range(4)}
        toy = Toy(anchor=make_anchor("isometric", n_rows=M, n_features=M), bases=bases)
    rows, images = rows_of(toy), toy.images
    found = state(images, rows, basis=basis)
    assert found.chance == np.sqrt(2 / ((dimension - 1) * (dimension + 2)))
    for party in images:
        both = {name: (image, rows[name]) for name, image in images.items()}
        mine = both.pop(party)
        pairs = [by_definition(mine, each, dimension=dimension) for each in both.values()]
        assert found.parties[party].correlation == pytest.approx(np.median(pairs), abs=1e-12)


@pytest.mark.parametrize("size", [M, 6])
def test_a_random_turn_has_mean_zero_and_the_closed_spread(size):
    """Over draws of a party's whole basis, or of its rotation in a common span of six."""
    anchor = make_anchor("isometric", n_rows=M, n_features=M)
    chance = np.sqrt(2 / (size - 1) / (size + 2))
    span, rows = haar(1, M)[:, :size], normal(1, 40, 5) * np.geomspace(3, 0.3, 5)
    mine = anchor.apply(span[:, :5]), rows
    turns = (anchor.apply(span @ haar(1000 + draw, size)[:, :5]) for draw in range(1000))
    seen = [by_definition(mine, (each, rows), dimension=size) for each in turns]
    assert abs(np.mean(seen)) < 3 * chance / np.sqrt(len(seen))
    assert np.std(seen) == pytest.approx(chance, rel=0.1)
    assert np.mean(np.array(seen) > SPREADS * chance) < 0.03  # a tail of 2 %


def test_evidence_follows_from_three_spreads_and_accuses_nobody():
    toy = close_spans(5)
    found = state(toy.images, rows_of(toy))
    assert {each.evidence for each in found.parties.values()} == {"not a random turn"}
    wrong = make_anchor("isometric", n_rows=30, n_features=M, number=77)
    images = {**toy.images, "p2": wrong.apply(toy.bases["p2"])}
    spoilt = state(images, rows_of(toy)).parties
    assert spoilt["p2"].correlation < SPREADS * found.chance
    assert spoilt["p2"].evidence == "cannot tell"
    assert spoilt["p0"].smallest_cosine == pytest.approx(1.0)
    assert spoilt["p2"].smallest_cosine < 0.7
    assert {spoilt[party].evidence for party in ("p0", "p1", "p3", "p4")} == {"not a random turn"}


@pytest.mark.parametrize("anchor", ["gaussian", "uniform"])
def test_without_an_isometric_anchor_there_is_no_correlation(anchor):
    toy = close_spans(4, anchor=anchor)
    found = state(toy.images, rows_of(toy), anchor=anchor)
    assert found.chance is None
    assert {(e.correlation, e.evidence) for e in found.parties.values()} == {(None, "cannot tell")}
    assert found.summary().count("-  cannot tell") == 4
    same = close_spans(4, tilt=0.0)  # four dimensions in common, where chance goes too far
    assert state(same.images, rows_of(same), basis="consensus").chance is None
    alone = close_spans(1)
    assert state(alone.images, rows_of(alone)).parties["p0"].correlation is None


def test_round_moments_have_none_and_spare_the_others():
    """With l = m rows that are as strong in every direction have no traceless part."""
    bases = {f"p{i}": haar(40 + i, M) for i in range(3)}
    toy = Toy(anchor=make_anchor("isometric", n_rows=M, n_features=M), bases=bases)
    rows = {**rows_of(toy), "p1": np.eye(M)}
    found = state(toy.images, rows).parties
    assert (found["p1"].correlation, found["p1"].evidence) == (None, "cannot tell")
    assert found["p0"].correlation > 0.5


def test_a_correlation_never_exceeds_one_whatever_the_image():
    toy = close_spans(4)
    images = {
        "p0": toy.images["p0"].astype(np.float16).astype(np.float32),
        "p1": 3 * toy.images["p1"],
        "p2": toy.images["p2"] @ invertible(4, SIZE, condition=9.0),
        "p3": toy.images["p3"],
    }
    for each in state(images, rows_of(toy)).parties.values():
        assert 0.2 < each.correlation <= 1 + 1e-12


def test_of_many_parties_each_is_read_once_beside_fifteen_evenly_spaced():
    toy = close_spans(100)
    moments = {p: row_moments([rows], party=p) for p, rows in rows_of(toy).items()}
    order = list(reversed(toy.images))
    images, lazy, alignment = Lazy(toy.images), Lazy(moments), align(ODC(), toy.images)
    options = {"order": order, "anchor": "isometric", "basis": "svd", "n_features": M}
    found = certify(images, alignment, moments=lazy, **options).parties
    assert (len(images.looks), len(lazy.looks)) == (100 + PEERS, 100)
    peers = {p: toy.images[p] for p in (order[number * 100 // 15] for number in range(15))}
    for party, figures in certify(peers, alignment, moments=moments, **options).parties.items():
        assert figures.correlation == found[party].correlation


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_moments_add_up_over_blocks_of_any_precision_and_are_of_numbers(bad):
    rows = normal(1, 50, 3)
    parts = row_moments((rows[i : i + 7].astype(np.float32) for i in range(0, 50, 7)), party="n")
    np.testing.assert_allclose(parts, rows.T @ rows / 50, rtol=1e-5, atol=1e-6)
    rows[2, 1] = bad
    with pytest.raises(NotFiniteError, match=r"the rows of party 'north' contain NaN.*CB101"):
        row_moments([normal(2, 4, 3), rows], party="north")


@pytest.mark.parametrize(("rows", "image"), [(1000.0, 1.0), (0.0, 1.0), (2.0, 2.0)])
def test_rows_or_an_image_on_another_scale_show(rows, image):
    """Scale is of rows against anchor image: a basis twice as long changes both."""
    toy = close_spans(5)
    images = {**toy.images, "p3": image * toy.images["p3"]}
    found = state(images, dict.fromkeys(images, np.eye(SIZE)) | {"p3": rows * np.eye(SIZE)}).parties
    for party, each in found.items():
        odd = party == "p3"
        assert each.scale == pytest.approx(rows / image if odd else 1.0)
        assert each.image_scale == pytest.approx(image if odd else 1.0)


def stated(toy: Toy, alignment) -> Certificate:
    rows = dict.fromkeys(toy.images, np.eye(SIZE))
    return state(toy.images, rows, alignment=alignment, anchor="gaussian")


@on_every_aligner
@on_every_condition
def test_every_method_makes_the_fit_that_it_should(row, condition):
    """G'G = I with G'A'Z symmetric and positive, or A'(A G - Z) = 0: checked, not made again."""
    toy = make_toy(condition)
    found = toy.align(row)
    target = found.target.rows
    for party, each in stated(toy, found).parties.items():
        missed = toy.images[party] @ found.fits[party].change_of_basis - target
        assert each.residual == pytest.approx(np.linalg.norm(missed) / np.linalg.norm(target))
        assert each.fit_error < 1e-12
        assert 0 < each.smallest_cosine <= 1


@on_every_aligner
def test_of_badly_conditioned_bases_a_fit_is_still_the_right_one(row):
    """Up to the condition number that images may have, but for methods that need none."""
    toy = make_toy("samespan_orth")
    bases = {
        party: basis @ invertible(60 + i, SIZE, condition=10.0**i)
        for i, (party, basis) in zip((0, 3, 6, 9), toy.bases.items(), strict=True)
    }
    bent = Toy(anchor=toy.anchor, bases=toy.bases if row.turns else bases)
    errors = [each.fit_error for each in stated(bent, bent.align(row)).parties.values()]
    assert max(errors) < FIT_TOLERANCE / 10


@on_every_aligner
def test_another_matrix_is_no_fit(row):
    toy = make_toy("diffspan_orth")
    found = toy.align(row)
    good = found.fits["p1"].change_of_basis
    forged = {
        "another party's": found.fits["p2"].change_of_basis,
        "turned": good @ haar(9, SIZE),
        "mirrored": -good,
        "a little larger": good * (1 + 1e-8),
        "of another shape": good[:, :-1],
        "no numbers": np.full_like(good, np.nan),
    }
    for what, change in forged.items():
        fit = replace(found.fits["p1"], change_of_basis=change)
        other = replace(found, fits={**found.fits, "p1": fit})
        figures = stated(toy, other).parties
        assert figures["p1"].fit_error > 10 * FIT_TOLERANCE, what
        assert figures["p0"].fit_error < 1e-13
        with pytest.raises(FitCheckError, match=r"party 'p1' is not the fit.*CB207"):
            refuse_wrong_fit(figures["p1"].fit_error, party="p1")


@pytest.mark.parametrize("narrow", [1, 3, 4])
def test_a_fit_of_a_narrower_party_is_one_too(narrow):
    anchor = make_anchor("isometric", n_rows=M, n_features=M)
    wide, slim = (anchor.apply(haar(5 + i, M)[:, :n]) for i, n in enumerate((4, narrow)))
    change = align(ODC(), {"p0": wide, "p1": slim}).fits["p1"].change_of_basis
    assert fit_error(slim, change, target=wide, kind="rotation") < 1000 * EPS
