"""Whoever has the anchor, a basis or another party's frame has what the basis spans: the notes'
figures, on their data, and nothing where what it has is not the party's."""

import numpy as np
import pytest
from experiments.attacks.inversion import frame_of_another

from aligners import haar
from cobasis.errors import ShapeError
from cobasis.privacy.attacks import Release
from cobasis.privacy.attacks.collusion import Collusion, LeakedBasis
from cobasis.privacy.attacks.scores import score_content, score_linkage
from privacy.attacks.constructions import (
    aligned_round,
    anchor,
    cancer,
    digits,
    haar_basis,
    own_basis,
    released,
)

CANCER, DIGITS = cancer()[0][:280], digits()[0][:800]

NOTES = [  # rows, l; distance, R2, cells, re-identification; one split's spread
    (CANCER, 3, (0.24, 0.75, 0.84, 0.25)),
    (CANCER, 10, (0.10, 0.96, 0.98, 0.99)),
    (DIGITS, 8, (0.32, 0.67, 0.56, 0.44)),
    (DIGITS, 16, (0.22, 0.85, 0.70, 0.95)),
    (DIGITS, 48, (0.02, 1.00, 0.99, 1.00)),
]


@pytest.mark.parametrize(("rows", "size", "printed"), NOTES)
@pytest.mark.parametrize("kind", ["uniform", "isometric"])
def test_collusion_gets_what_the_notes_measured(kind, rows, size, printed):
    drawn = anchor(kind, 100, rows.shape[1])
    release = released(rows, own_basis(rows, size), drawn)
    found = score_content(Collusion(anchor=drawn).recover(release), rows)
    shares = found.distance, found.explained, found.cells, found.named
    apart = np.abs(np.subtract([each.value for each in shares], printed))
    np.testing.assert_array_less(apart, [0.02, 0.02, 0.03, 0.06])
    assert found.worst_explained >= found.explained.value


@pytest.mark.parametrize("size", [2, 10, 64])
def test_collusion_links_every_noiseless_upload_at_every_l(size):
    drawn = anchor("gaussian", 80, 64)
    basis = haar_basis(64, size)
    found = Collusion(anchor=drawn).recover(released(DIGITS, basis, drawn))
    np.testing.assert_allclose(found.basis, basis, atol=1e-12)
    places = np.arange(len(DIGITS))
    assert score_linkage(DIGITS @ basis, found.basis, candidates=DIGITS, places=places).value == 1
    if size == 64:  # as many components as features
        np.testing.assert_allclose(found.rows, DIGITS, atol=1e-12)


def test_the_anchor_of_another_round_names_nobody_and_of_another_size_is_refused():
    release = released(DIGITS, own_basis(DIGITS, 16), anchor("isometric", 100, 64))
    wrong = Collusion(anchor=anchor("isometric", 100, 64, number=1)).recover(release)
    found = score_content(wrong, DIGITS)
    assert found.named.value < 0.02
    assert found.explained.value < 0
    for other in (release, Release(rows=release.rows)):
        with pytest.raises(ShapeError, match="Give the anchor of this release"):
            Collusion(anchor=np.eye(64)).recover(other)


@pytest.mark.parametrize(("rows", "size", "gain"), [(DIGITS, 16, 1.0), (CANCER, 10, 1.5)])
def test_a_prior_fills_in_what_a_random_basis_does_not_show(rows, size, gain):
    """Notes 2.6: R2 .65 and .86 with a prior, where without one it is worse than the average."""
    other = (digits() if len(rows) == 800 else cancer())[0][-280:]
    basis = haar_basis(rows.shape[1], size)
    release = Release(rows=rows @ basis)
    plain = score_content(LeakedBasis(basis=basis).recover(release), rows).explained.value
    known = LeakedBasis(basis=basis, prior_rows=other).recover(release)
    with_prior = score_content(known, rows).explained.value
    assert with_prior - plain > gain
    assert with_prior == pytest.approx({16: 0.62, 10: 0.86}[size], abs=0.06)


def test_a_prior_of_fewer_rows_than_components_still_gives_numbers():
    basis = own_basis(DIGITS, 16)
    found = LeakedBasis(basis=basis, prior_rows=DIGITS[:3]).recover(Release(rows=DIGITS @ basis))
    assert np.isfinite(found.rows).all()


def test_another_partys_frame_is_collusion_without_the_anchor_where_the_span_is_shared():
    second = DIGITS[300:600]
    drawn = anchor("isometric", 100, 64)
    shared = own_basis(DIGITS, 16)
    mine, theirs = shared @ haar(6, 16), shared @ haar(7, 16)
    own_change, change = haar(6, 16).T @ haar(8, 16), haar(7, 16).T @ haar(8, 16)
    release = released(second, theirs, drawn)
    without = frame_of_another(mine @ own_change, change=change).recover(release)
    colluding = Collusion(anchor=drawn).recover(release)
    np.testing.assert_allclose(without.rows, colluding.rows, atol=1e-12)
    np.testing.assert_allclose(without.basis, colluding.basis, atol=1e-12)


@pytest.mark.parametrize(("share", "explained", "named"), [(True, 0.84, 0.97), (False, 0.75, 0.91)])
def test_after_a_round_another_partys_frame_rebuilds_what_the_notes_measured(
    share, explained, named
):
    """Notes 2.3, digits of four parties of 300, the anchor destroyed."""
    done = aligned_round(digits(), parties=4, n_rows=300, n_components=16, shared=share)
    frame = frame_of_another(done.bases[1] @ done.changes[1], change=done.changes[3])
    found = score_content(frame.recover(Release(rows=done.releases[3].rows)), done.rows[3])
    assert found.explained.value == pytest.approx(explained, abs=0.05)
    assert found.named.value == pytest.approx(named, abs=0.04)
