"""All parties but one work out the last one's span from a consensus, below 45 degrees exactly."""

import numpy as np
import pytest
from experiments.attacks.reflection import Reflection

from aligners import haar
from cobasis.algorithms.consensus import consensus_span
from cobasis.errors import AgreementError, ShapeError
from cobasis.linalg.arrays import principal_cosines
from cobasis.privacy.attacks.scores import score_span
from privacy.attacks.constructions import anchor, digits, own_basis

EXACT = 1e-9


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


def bisector(proposed, n_components):
    """What a consensus of two would be, were it not refused."""
    return np.linalg.eigh(sum(each @ each.T for each in proposed))[1][:, -n_components:]


def largest_angle(span, columns):
    return np.degrees(np.arccos(principal_cosines(span, columns).min()))


def overlap(span, helpers, last):
    return score_span(Reflection(consensus=span, proposed=helpers).last_span(), last).value


@pytest.mark.parametrize("n_components", [4, 8, 16])
def test_of_two_parties_each_gets_the_others_span(n_components):
    first, second = spans(2, n_components)
    span = bisector([first, second], n_components)
    assert largest_angle(span, second) < 45
    found = Reflection(consensus=span, proposed=[first]).last_span()
    assert score_span(found, second).value == pytest.approx(1, abs=EXACT)
    reflected = 2 * span @ (span.T @ first) - first
    assert score_span(found, reflected).value == pytest.approx(1, abs=EXACT)


def test_a_consensus_of_two_is_refused():
    with pytest.raises(AgreementError, match="each computes the other's span"):
        consensus(spans(2, 4), 4)


@pytest.mark.parametrize(("n_parties", "n_components"), [(3, 8), (3, 16), (4, 4), (5, 8)])
def test_all_but_one_get_the_last_span_exactly_below_45_degrees(n_parties, n_components):
    *helpers, last = spans(n_parties, n_components)
    span = consensus([*helpers, last], n_components)
    assert largest_angle(span, last) < 45
    assert overlap(span, helpers, last) == pytest.approx(1, abs=EXACT)


def test_the_anchor_hides_the_consensus_from_no_party():
    """The same on images: what holds between spans holds between their images."""
    *helpers, last = (anchor("isometric", 80, 64) @ each for each in spans(3, 8))
    assert overlap(consensus([*helpers, last], 8), helpers, last) == pytest.approx(1, abs=EXACT)


@pytest.mark.parametrize(
    ("n_parties", "n_components", "least", "most"), [(3, 8, 0.8, 0.95), (5, 8, 0.8, 0.95)]
)
def test_a_span_beyond_45_degrees_is_not_found_exactly(n_parties, n_components, least, most):
    """Parties of two labels each; Z alone has 0.67 and 0.69 of the last span."""
    *helpers, last = spans(n_parties, n_components, two_labels=True)
    span = consensus([*helpers, last], n_components)
    assert largest_angle(span, last) > 45
    assert score_span(span, last).value < 0.75
    assert least < overlap(span, helpers, last) < most


@pytest.mark.parametrize("degrees", [1, 10, 30, 44])
def test_any_angle_below_45_degrees_is_exact(degrees):
    assert turned_apart(degrees) == pytest.approx(1, abs=EXACT)


@pytest.mark.parametrize("degrees", [46, 60, 80])
def test_an_angle_beyond_is_taken_for_its_complement(degrees):
    expected = np.cos(np.radians(2 * degrees - 90)) ** 2
    assert turned_apart(degrees) == pytest.approx((1 + expected) / 2, abs=EXACT)


def turned_apart(degrees):
    """Overlap where one of two directions of the last span is that far from Z, the other in it."""
    size = haar(5, 6)
    z, out = size[:, :2], size[:, 2]
    t = np.radians(degrees)
    last = np.column_stack([z[:, 0], np.cos(t) * z[:, 1] + np.sin(t) * out])
    mirrored = np.column_stack([z[:, 0], np.cos(t) * z[:, 1] - np.sin(t) * out])
    return overlap(z, [mirrored], last)


def test_fewer_helpers_get_hardly_more_than_the_consensus_shows():
    *helpers, last = spans(5, 8)
    span = consensus([*helpers, last], 8)
    common = score_span(span, last).value
    found = [overlap(span, helpers[:count], last) for count in range(1, 5)]
    assert max(found[:3]) < common + 0.02
    assert found[3] == pytest.approx(1, abs=EXACT)


def test_fewer_proposed_directions_are_found_among_those_of_the_consensus():
    *helpers, last = spans(3, 8)
    few = last[:, :5]
    span = consensus([*helpers, few], 8)
    assert largest_angle(span, few) < 45
    found = Reflection(consensus=span, proposed=helpers).last_span()
    assert score_span(found, few).value == pytest.approx(1, abs=EXACT)


@pytest.mark.parametrize(
    ("helpers", "words"), [([], "no party helps"), ([np.eye(4)[:, :2]], "has 4 features")]
)
def test_helpers_of_no_such_round_are_refused(helpers, words):
    with pytest.raises(ShapeError, match=words):
        Reflection(consensus=np.eye(5)[:, :2], proposed=helpers).last_span()
