"""All parties but one work out the last one's span from a consensus, below 45 degrees exactly."""

import numpy as np
import pytest
from experiments.attacks.reflection import last_span

from aligners import haar
from cobasis.algorithms.consensus import consensus_span
from cobasis.errors import AgreementError
from cobasis.linalg.arrays import principal_cosines
from privacy.attacks.constructions import anchor, digits, own_basis, span_found

EXACT = pytest.approx(1, abs=1e-9)


def spans(n_parties, n_components, *, two_labels=False):
    """V_i of parties of 100 digits each; two labels each, if they are to differ."""
    rows, labels = digits()
    tables = [rows[100 * party : 100 * (party + 1)] for party in range(n_parties)]
    if two_labels:
        tables = [rows[labels // 2 == party][:100] for party in range(n_parties)]
    return [own_basis(table, n_components, number=each) for each, table in enumerate(tables)]


def consensus(proposed, n_components):
    images = {str(party): columns for party, columns in enumerate(proposed)}
    return consensus_span(images, n_components=n_components)


def largest_angle(span, columns):
    return np.degrees(np.arccos(principal_cosines(span, columns).min()))


def overlap(span, helpers, last):
    return span_found(last_span(span, helpers), last)


@pytest.mark.parametrize("n_components", [4, 8, 16])
def test_of_two_parties_each_gets_the_others_span(n_components):
    """From the bisector, which a consensus of two would be, were it not refused."""
    first, second = spans(2, n_components)
    bisector = np.linalg.eigh(first @ first.T + second @ second.T)[1][:, -n_components:]
    assert largest_angle(bisector, second) < 45
    assert overlap(bisector, [first], second) == EXACT
    assert overlap(bisector, [first], 2 * bisector @ (bisector.T @ first) - first) == EXACT
    with pytest.raises(AgreementError, match="each computes the other's span"):
        consensus([first, second], n_components)


@pytest.mark.parametrize(("n_parties", "n_components"), [(3, 8), (3, 16), (4, 4), (5, 8)])
def test_all_but_one_get_the_last_span_exactly_below_45_degrees(n_parties, n_components):
    *helpers, last = spans(n_parties, n_components)
    span = consensus([*helpers, last], n_components)
    assert largest_angle(span, last) < 45
    assert overlap(span, helpers, last) == EXACT


def test_the_anchor_hides_the_consensus_from_no_party():
    """The same on images: what holds between spans holds between their images."""
    *helpers, last = (anchor("isometric", 80, 64) @ each for each in spans(3, 8))
    assert overlap(consensus([*helpers, last], 8), helpers, last) == EXACT


@pytest.mark.parametrize("n_parties", [3, 5])
def test_a_span_beyond_45_degrees_is_not_found_exactly(n_parties):
    """Parties of two labels each; Z alone has 0.67 and 0.69 of the last span."""
    *helpers, last = spans(n_parties, 8, two_labels=True)
    span = consensus([*helpers, last], 8)
    assert largest_angle(span, last) > 45
    assert span_found(span, last) < 0.75
    assert 0.8 < overlap(span, helpers, last) < 0.95


@pytest.mark.parametrize("degrees", [1, 10, 30, 44, 46, 60, 80])
def test_an_angle_below_45_degrees_is_exact_and_one_beyond_is_taken_for_its_complement(degrees):
    """One of two directions of the last span is that far from Z, the other in it."""
    size = haar(5, 6)
    z, out = size[:, :2], size[:, 2]
    t = np.radians(degrees)
    last = np.column_stack([z[:, 0], np.cos(t) * z[:, 1] + np.sin(t) * out])
    mirrored = np.column_stack([z[:, 0], np.cos(t) * z[:, 1] - np.sin(t) * out])
    beyond = np.cos(np.radians(max(2 * degrees - 90, 0))) ** 2
    assert overlap(z, [mirrored], last) == pytest.approx((1 + beyond) / 2, abs=1e-9)


def test_fewer_helpers_get_hardly_more_than_the_consensus_shows():
    *helpers, last = spans(5, 8)
    span = consensus([*helpers, last], 8)
    found = [overlap(span, helpers[:count], last) for count in range(5)]
    assert found[0] == pytest.approx(span_found(span, last))
    assert max(found[:4]) < found[0] + 0.02
    assert found[4] == EXACT


def test_fewer_proposed_directions_are_found_among_those_of_the_consensus():
    *helpers, last = spans(3, 8)
    few = last[:, :5]
    span = consensus([*helpers, few], 8)
    assert largest_angle(span, few) < 45
    assert overlap(span, helpers, few) == EXACT
