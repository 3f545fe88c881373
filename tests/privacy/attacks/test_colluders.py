"""What an analyst has with a party's help, and all parties of a consensus but one of the last."""

import numpy as np
import pytest
from experiments.attacks.anchors import collude
from experiments.attacks.models import frame_of_another
from experiments.attacks.reflection import last_span

from aligners import principal_cosines
from cobasis.algorithms.consensus import consensus_span
from cobasis.errors import AgreementError
from cobasis.privacy.attacks import Release
from cobasis.privacy.attacks.known_records import read_through
from cobasis.privacy.attacks.scores import score_content
from privacy.attacks.constructions import (
    aligned_round,
    anchor,
    cancer,
    digits,
    haar_basis,
    own_basis,
    released,
    span_found,
)

CANCER, DIGITS = cancer()[0][:280], digits()[0][:800]


@pytest.mark.parametrize(
    ("rows", "size", "printed"),  # distance, R2, cells, re-identification; one split's spread
    [
        (CANCER, 3, (0.24, 0.75, 0.84, 0.25)),
        (CANCER, 10, (0.10, 0.96, 0.98, 0.99)),
        (DIGITS, 16, (0.22, 0.85, 0.70, 0.95)),
    ],
)
def test_collusion_gets_what_the_notes_measured(rows, size, printed):
    drawn = anchor("isometric", 100, rows.shape[1])
    release = released(rows, own_basis(rows, size), drawn)
    found = score_content(collude(release, drawn), rows)
    shares = found.distance, found.explained, found.cells, found.named
    apart = np.abs(np.subtract([each.value for each in shares], printed))
    np.testing.assert_array_less(apart, [0.02, 0.02, 0.03, 0.06])
    assert found.worst_explained >= found.explained.value


def test_a_prior_fills_in_what_a_random_basis_does_not_show():
    """Notes 2.6: R2 .86 with a prior, where without one it is worse than the average."""
    basis = haar_basis(30, 10)
    release = Release(rows=CANCER @ basis)
    plain, known, few = (
        score_content(read_through(basis, release.rows, prior_rows=each), CANCER).explained
        for each in (None, cancer()[0][-280:], cancer()[0][-3:])
    )
    assert plain.value < -0.5
    assert known.value == pytest.approx(0.86, abs=0.06)
    assert np.isfinite(few.value)  # of fewer rows than components


@pytest.mark.parametrize(("share", "r2", "named"), [(True, 0.84, 0.97), (False, 0.75, 0.91)])
def test_after_a_round_another_partys_frame_rebuilds_what_the_notes_measured(share, r2, named):
    """Notes 2.3, digits of four parties of 300, the anchor destroyed."""
    done = aligned_round(digits(), 4, 300, 16, shared=share)
    frame = frame_of_another(done.bases[1] @ done.changes[1], change=done.changes[3])
    found = score_content(read_through(frame, done.rows[3] @ done.bases[3]), done.rows[3])
    assert found.explained.value == pytest.approx(r2, abs=0.05)
    assert found.named.value == pytest.approx(named, abs=0.04)


EXACT = pytest.approx(1, abs=1e-9)


def spans(n_parties, n_components, *, two_labels=False):
    """V_i of parties of 100 digits each; two labels each, if they are to differ."""
    rows, labels = digits()
    parts = labels // 2 if two_labels else np.arange(len(rows)) // 100
    tables = [rows[parts == party][:100] for party in range(n_parties)]
    return [own_basis(table, n_components, number=each) for each, table in enumerate(tables)]


def consensus(proposed, n_components):
    images = {str(party): columns for party, columns in enumerate(proposed)}
    return consensus_span(images, n_components=n_components)


def largest_angle(span, columns):
    return np.degrees(np.arccos(principal_cosines(span, columns).min()))


def overlap(span, helpers, last):
    return span_found(last_span(span, helpers), last)


def test_of_two_parties_each_gets_the_others_span():
    """From the bisector, which a consensus of two would be, were it not refused."""
    first, second = spans(2, 8)
    bisector = np.linalg.eigh(first @ first.T + second @ second.T)[1][:, -8:]
    assert largest_angle(bisector, second) < 45
    assert overlap(bisector, [first], second) == EXACT
    assert overlap(bisector, [first], 2 * bisector @ (bisector.T @ first) - first) == EXACT
    with pytest.raises(AgreementError, match="each computes the other's span"):
        consensus([first, second], 8)


@pytest.mark.parametrize(
    ("n_parties", "size", "few", "two_labels"),
    [(3, 16, 16, False), (5, 8, 8, False), (3, 8, 5, False), (3, 8, 8, True), (5, 8, 8, True)],
)
def test_all_but_one_get_the_last_span_exactly_below_45_degrees(n_parties, size, few, two_labels):
    """On images: what holds between spans holds between them, and the anchor hides nothing."""
    own = spans(n_parties, size, two_labels=two_labels)
    *helpers, last = (anchor("isometric", 80, 64) @ each for each in own)
    last = last[:, :few]
    span = consensus([*helpers, last], size)
    assert (largest_angle(span, last) > 45) == two_labels
    if two_labels:  # of which Z alone has 0.67 and 0.69
        assert span_found(span, last) < 0.75
        assert 0.8 < overlap(span, helpers, last) < 0.95
    else:
        assert overlap(span, helpers, last) == EXACT


def test_fewer_helpers_get_hardly_more_than_the_consensus_shows():
    *helpers, last = spans(5, 8)
    span = consensus([*helpers, last], 8)
    found = [overlap(span, helpers[:count], last) for count in range(5)]
    assert found[0] == pytest.approx(span_found(span, last))
    assert max(found[:4]) < found[0] + 0.02
    assert found[4] == EXACT
