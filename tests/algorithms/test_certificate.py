"""The certificate's figures and verdicts: relative to the round, with no absolute constant."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aligners import (
    EPS,
    STEADY,
    Toy,
    haar,
    invertible,
    key_of,
    make_anchor,
    make_toy,
    on_every_aligner,
)
from cobasis.algorithms import peers
from cobasis.algorithms.base import align
from cobasis.algorithms.concordance import Certificate, Thresholds, certify
from cobasis.algorithms.odc import ODC
from cobasis.algorithms.peers import SMALL_PANEL, draw_panel
from cobasis.algorithms.unrelated import pair_residual, unrelated_residual
from cobasis.linalg.rng import KeyStream

sizes = st.integers(1, 5)


def normal(number: int, *shape: int) -> np.ndarray:
    return KeyStream(key_of(number), "tests/certificate").normal(shape)


def close_spans(n_parties: int, *, anchor: str = "isometric", tilt: float = 0.1) -> Toy:
    """Parties whose orthonormal spans differ a little."""
    common = haar(3, 12)[:, :4]
    bases = {f"p{i}": np.linalg.qr(common + tilt * normal(i, 12, 4))[0] for i in range(n_parties)}
    return Toy(anchor=make_anchor(anchor, n_rows=30, n_features=12), bases=bases)


def judge(images, *, rng: int = 1, row_sizes=None, anchor="isometric", **limits) -> Certificate:
    return certify(
        images,
        align(ODC(), images),
        row_sizes=row_sizes or dict.fromkeys(images, 1.0),
        anchor=anchor,
        n_features=12,
        rng=np.random.default_rng(rng),
        thresholds=Thresholds(**limits) if limits else None,
    )


def strangers(toy: Toy, *names: str) -> dict:
    """Give some parties the image of another secret."""
    wrong = make_anchor("isometric", n_rows=30, n_features=12, number=77)
    return {**toy.images, **{name: wrong.apply(toy.bases[name]) for name in names}}


@given(number=st.integers(0, 10**6), first=sizes, second=sizes, unit=st.floats(1e-6, 1e6))
@STEADY
def test_a_pair_residual_ignores_rotation_order_and_scale(number, first, second, unit):
    one, two = normal(number, 12, first), normal(number + 1, 12, second)
    residual = pair_residual(one, two)
    assert -1e-12 <= residual <= 1
    for moved in (
        pair_residual(one @ haar(number, first), two),
        pair_residual(one, unit * two @ haar(number + 1, second)),
        pair_residual(two, one),
        pair_residual(haar(number, 12) @ one, haar(number, 12) @ two),
    ):
        assert moved == pytest.approx(residual, abs=1000 * EPS)


def test_a_pair_residual_is_zero_for_rotations_and_one_for_strangers():
    image = normal(1, 12, 4)
    assert pair_residual(image, 3 * image @ haar(2, 4)) == pytest.approx(0, abs=1000 * EPS)
    axes = np.eye(12)
    assert pair_residual(axes[:, :4], axes[:, 4:8]) == pytest.approx(1.0)
    assert pair_residual(axes[:, :4], axes[:, 2:6]) == pytest.approx(0.5)


@pytest.mark.parametrize(("anchor", "n_rows"), [("isometric", 12), ("gaussian", 30)])
def test_unrelated_is_what_unrelated_bases_give(anchor, n_rows):
    """Against images of Haar bases under a real anchor, drawn the long way."""
    drawn = make_anchor(anchor, n_rows=n_rows, n_features=12)
    images = {f"p{i}": drawn.apply(haar(200 + i, 12)[:, :4]) for i in range(12)}
    pairs = [
        pair_residual(images[one], images[two]) for one in images for two in images if one < two
    ]
    rngs = [np.random.default_rng(seed) for seed in range(20)]
    found = [
        unrelated_residual(images, n_components=4, anchor=anchor, n_features=12, rng=rng)
        for rng in rngs
    ]
    assert np.mean(found) == pytest.approx(np.mean(pairs), abs=0.03)


def test_unrelated_public_rows_are_the_rounds_own_images_shuffled():
    images = close_spans(3, anchor="gaussian").images
    rng = np.random.default_rng(1)
    for count in (1, 2, 3):
        some = dict(list(images.items())[:count])
        found = unrelated_residual(some, n_components=4, anchor="public", n_features=12, rng=rng)
        assert 0.5 < found < 1


@pytest.mark.parametrize("n_parties", [1, 2, 3])
def test_below_four_parties_it_cannot_tell(n_parties):
    """The figures stand, even for a party that is wrong; they flag nobody."""
    toy = close_spans(n_parties)
    found = judge(strangers(toy, "p0"))
    assert found.verdict == "cannot tell"
    assert found.flagged == ()
    assert set(found.parties) == set(toy.images)
    if n_parties > 1:
        assert found.parties["p0"].residual > 0.5 * found.unrelated
    else:
        assert (found.parties["p0"].residual, found.parties["p0"].others) == (0.0, 0.0)


def test_from_four_parties_it_tells():
    toy = close_spans(4)
    assert judge(toy.images).verdict == "aligned"
    found = judge(strangers(toy, "p2"))
    assert (found.verdict, found.flagged) == ("flagged", ("p2",))


def test_several_wrong_parties_are_all_flagged():
    found = judge(strangers(close_spans(9), "p2", "p5"))
    assert found.flagged == ("p2", "p5")


def test_a_round_of_strangers_is_not_separable():
    drawn = make_anchor("isometric", n_rows=30, n_features=12)
    images = {f"p{i}": drawn.apply(haar(300 + i, 12)[:, :4]) for i in range(6)}
    assert judge(images).verdict == "not separable"


def test_both_fractions_are_the_agreements():
    toy = close_spans(6, tilt=0.2)
    assert judge(toy.images).verdict == "aligned"
    assert judge(toy.images, flag_fraction=0.0).verdict == "flagged"
    assert judge(toy.images, separable_fraction=1e-3).verdict == "not separable"
    assert judge(strangers(toy, "p2"), flag_fraction=3.0).verdict == "aligned"


def test_a_party_is_judged_against_the_median_of_the_others():
    found = judge(strangers(close_spans(5), "p2")).parties
    residuals = {party: figures.residual for party, figures in found.items()}
    for party, figures in found.items():
        rest = [value for other, value in residuals.items() if other != party]
        assert figures.others == np.median(rest)


def test_a_residual_is_the_median_over_peers():
    toy = close_spans(5)
    found = judge(toy.images).parties
    for party, image in toy.images.items():
        pairs = [pair_residual(image, other) for p, other in toy.images.items() if p != party]
        assert found[party].residual == pytest.approx(np.median(pairs), abs=100 * EPS)


def test_above_fifty_parties_peers_are_sampled():
    """Up to 50 every peer counts, whatever the generator; above it decides."""
    for count, sampled in ((50, False), (60, True)):
        images = close_spans(count).images
        one, two = (
            {p: figures.residual for p, figures in judge(images, rng=seed).parties.items()}
            for seed in (1, 2)
        )
        assert (one != two) == sampled
        assert one == pytest.approx(two, abs=0.02)


class Counted(dict):
    """Images that count how often they are read."""

    reads = 0

    def __getitem__(self, party):
        self.reads += 1
        return super().__getitem__(party)


def test_of_many_parties_each_is_read_once_beside_a_small_panel():
    images = Counted(close_spans(520).images)
    alignment = align(ODC(), images)
    images.reads = 0
    found = certify(
        images,
        alignment,
        row_sizes=dict.fromkeys(images, 1.0),
        anchor="isometric",
        n_features=12,
        rng=np.random.default_rng(1),
    )
    assert images.reads == len(images) + SMALL_PANEL + 1
    assert found.verdict == "aligned"


def test_large_images_make_the_panel_smaller_and_never_tiny(monkeypatch):
    images = close_spans(40).images
    one = next(iter(images.values())).nbytes
    rng = np.random.default_rng(0)
    for fitting, expected in ((100, 40), (20, 20), (3, SMALL_PANEL)):
        monkeypatch.setattr(peers, "PANEL_BYTES", fitting * one)
        assert len(draw_panel(images, centred=False, rng=rng).images) == expected


@pytest.mark.parametrize("factor", [1000.0, 1e-3])
def test_rows_on_another_scale_show(factor):
    toy = close_spans(5)
    row_sizes = dict.fromkeys(toy.images, 2.5) | {"p3": 2.5 * factor}
    found = judge(toy.images, row_sizes=row_sizes).parties
    assert found["p3"].scale == pytest.approx(factor)
    assert not 1 / Thresholds().scale_band < factor < Thresholds().scale_band
    for party in ("p0", "p1", "p2", "p4"):
        assert found[party].scale == pytest.approx(1.0)


def test_rows_of_zeros_have_scale_zero():
    images = close_spans(4).images
    assert judge(images, row_sizes=dict.fromkeys(images, 0.0)).parties["p0"].scale == 0.0


def test_a_common_unit_is_no_scale_and_a_louder_image_with_its_rows_neither():
    """Scale is of rows against anchor image: a basis twice as long changes both."""
    toy = close_spans(5)
    images = {**toy.images, "p3": 2 * toy.images["p3"]}
    row_sizes = dict.fromkeys(images, 1.0) | {"p3": 2.0}
    found = judge(images, row_sizes=row_sizes).parties
    assert found["p3"].scale == pytest.approx(1.0)
    assert {name: each.image_scale for name, each in found.items()} == pytest.approx(
        {name: 2.0 if name == "p3" else 1.0 for name in images}
    )
    assert found["p3"].residual == pytest.approx(judge(toy.images).parties["p3"].residual)


def test_orthonormality_is_exact_under_an_isometric_anchor_and_blurred_otherwise():
    toy = close_spans(4)
    bent = Toy(
        anchor=toy.anchor,
        bases={**toy.bases, "p1": toy.bases["p1"] @ invertible(4, 4, condition=9.0)},
    )
    figures = judge(bent.images).parties
    assert figures["p0"].orthonormality < 1000 * EPS
    assert figures["p1"].orthonormality > 0.3
    blurred = judge(close_spans(4, anchor="gaussian").images, anchor="gaussian").parties
    assert 0.01 < blurred["p0"].orthonormality < 1


@on_every_aligner
def test_figures_of_the_fit_are_the_alignments(row):
    toy = make_toy("diffspan_orth")
    found = toy.align(row)
    figures = certify(
        toy.images,
        found,
        row_sizes=dict.fromkeys(toy.images, 1.0),
        anchor="gaussian",
        n_features=12,
        rng=np.random.default_rng(1),
    ).parties
    target = found.target.rows
    for party, fit in found.fits.items():
        missed = toy.images[party] @ fit.change_of_basis - target
        expected = np.linalg.norm(missed) / np.linalg.norm(target)
        assert figures[party].target_residual == pytest.approx(expected)
        values = np.linalg.svd(toy.images[party].T @ target, compute_uv=False)
        assert figures[party].conditioning == pytest.approx(values[-1] / values[0])
        assert 0 < fit.determination <= 1
        assert figures[party].cosines.shape == (4,)
        assert (figures[party].cosines <= 1).all()


def test_cosines_are_one_for_the_reference_and_less_for_a_stranger():
    figures = judge(strangers(close_spans(4), "p2")).parties
    assert figures["p0"].cosines.min() == pytest.approx(1.0)
    assert figures["p2"].cosines.min() < 0.7
