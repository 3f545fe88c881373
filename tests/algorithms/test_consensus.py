import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aligners import EPS, GOLDEN, STEADY, VISIBLE, haar, make_anchor, normal, principal_cosines
from cobasis.algorithms.consensus import consensus_span, weighted_directions
from cobasis.errors import ConsensusError
from cobasis.linalg.arrays import orthonormality_defect
from cobasis.linalg.directions import leading_directions

FEATURES = 12
on_every_height = pytest.mark.parametrize("n_rows", [FEATURES, 30])


def near(number: int, *, n_parties: int = 5, kept: int = 3, tilt: float = 0.3) -> dict:
    """Orthonormal directions of each party, `tilt` away from a common span."""
    common = haar(number, FEATURES)[:, :kept]
    noise = [tilt * normal(number + 1 + index, FEATURES, kept) for index in range(n_parties)]
    return {f"p{i}": np.linalg.qr(common + each)[0] for i, each in enumerate(noise)}


def images(bases: dict, n_rows: int = 30) -> dict:
    anchor = make_anchor("isometric", n_rows=n_rows, n_features=FEATURES)
    return {party: anchor.apply(basis) for party, basis in bases.items()}


def basis_of(span: np.ndarray) -> np.ndarray:
    """What a party makes of it, but for its own rotation: F = A' Z."""
    anchor = make_anchor("isometric", n_rows=len(span), n_features=FEATURES)
    return anchor.apply_transposed(span)


@on_every_height
@given(number=st.integers(0, 10**6), tilt=st.floats(0.0, 2.0))
@STEADY
def test_the_shared_basis_is_orthonormal(n_rows, number, tilt):
    span = consensus_span(images(near(number, tilt=tilt), n_rows), n_components=3)
    assert orthonormality_defect(span) < GOLDEN
    assert orthonormality_defect(basis_of(span)) < GOLDEN * 10


@pytest.mark.parametrize("weighted", [False, True])
@on_every_height
def test_the_consensus_is_the_leading_span_of_the_mean_projector_or_energy(n_rows, weighted):
    """Where nobody is capped: parties of equal energy. One of them has fewer directions."""
    sent = proposals(tables(3)) if weighted else near(5)
    sent["p4"] = sent["p4"][:, :2]
    if weighted:
        sent = {party: each / np.linalg.norm(each) for party, each in sent.items()}
    leading = np.linalg.eigh(sum(each @ each.T for each in sent.values()))[1][:, -3:]
    span = consensus_span(images(sent, n_rows), n_components=3, weighted=weighted)
    assert orthonormality_defect(span) < GOLDEN
    assert principal_cosines(leading, basis_of(span)).min() > 1 - 1e-12


SAME, WHOLE = haar(3, FEATURES)[:, :3], {f"p{i}": haar(i, FEATURES) for i in range(3)}
FEW = {party: each[:, :1] for party, each in WHOLE.items()}
ALIKE = {f"p{i}": SAME @ haar(10 + i, 3) for i in range(3)}
UNDETERMINED = {  # proposals, how many components, the error and its words
    "fewer in all": (images(FEW), 4, ConsensusError, r"sent 3 directions.*\[CB206\]"),
    "one span": (images(ALIKE), 4, ConsensusError, r"sent 3 directions.*\[CB206\]"),
    "above the features": (images(WHOLE), 13, ConsensusError, r"sent 12 directions.*\[CB206\]"),
    "above the rows": (images(WHOLE), 31, ConsensusError, r"sent 12 directions.*\[CB206\]"),
}


@pytest.mark.parametrize("case", UNDETERMINED)
def test_a_span_that_the_proposals_do_not_determine_is_one_error(case):
    proposed, size, error, told = UNDETERMINED[case]
    with pytest.raises(error, match=told):
        consensus_span(proposed, n_components=size)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_tie_between_the_last_kept_and_the_first_dropped_is_refused_at_any_scale(scale, weighted):
    axes = np.eye(FEATURES)
    tied = images({f"p{i}": scale * axes[:, [0, i + 1]] * [2.0, 1.0] for i in range(3)})
    with pytest.raises(ConsensusError, match=r"number 2 does no more.*\[CB206\]"):
        consensus_span(tied, n_components=2, weighted=weighted)
    span = consensus_span(tied, n_components=1, weighted=weighted)
    assert principal_cosines(basis_of(span), axes[:, :1]).min() > 1 - 1e-12


def tables(number: int, *, n_parties: int = 5) -> dict:
    strength = 3.0 * 0.7 ** np.arange(FEATURES)
    made = {}
    for index in range(n_parties):
        turn = np.linalg.qr(np.eye(FEATURES) + 0.15 * normal(number + index, FEATURES, FEATURES))[0]
        made[f"p{index}"] = normal(number + 50 + index, 40, FEATURES) * strength @ turn
    return made


def proposals(rows: dict) -> dict:
    """What each party sends to a weighted consensus, before the anchor and its own rotation."""
    found = {party: leading_directions(table, n_wanted=3) for party, table in rows.items()}
    return {
        party: weighted_directions(own, n_rows=len(rows[party])) for party, own in found.items()
    }


def test_weights_are_energy_per_row_and_one_that_is_lost_in_rounding_is_not_sent():
    """Twice the same rows count as much as once; columns are as long as rows spread along them."""
    rows = tables(1)["p0"]
    one, twice = (proposals({"p": each})["p"] for each in (rows, np.vstack([rows, rows])))
    np.testing.assert_allclose(one, twice, rtol=0, atol=1e-12)
    spread = np.linalg.norm(rows @ (one / np.linalg.norm(one, axis=0)), axis=0) / np.sqrt(len(rows))
    np.testing.assert_allclose(np.linalg.norm(one, axis=0), spread)
    left, right = haar(2, 30)[:, :3], haar(3, FEATURES)[:, :3]
    own = leading_directions(left * [1.0, 0.1, 1e-9] @ right.T, n_wanted=3)
    assert own.directions.shape == (FEATURES, 3)
    assert weighted_directions(own, n_rows=30).shape == (FEATURES, 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("party", ["p0", "p4"])
def test_nobody_shouts_nor_does_it_matter_how_a_party_turns_its_directions(party, weighted):
    """By 1000 times an image gains nothing, or the cap; the mutants without either are owned."""
    odd = haar(77, FEATURES)[:, :3]  # directions that no other party has
    sent = images({**proposals(tables(5)), party: 3.0 * odd} if weighted else near(5))
    loud = {**sent, party: 1e3 * sent[party] @ haar(60, 3)}
    quiet, found = (
        consensus_span(each, n_components=3, weighted=weighted) for each in (sent, loud)
    )
    np.testing.assert_allclose(found @ found.T, quiet @ quiet.T, rtol=0, atol=1e4 * EPS)
    assert principal_cosines(found, sent[party]).min() < 1 - VISIBLE
    owned = np.linalg.svd(np.hstack(list(loud.values())), full_matrices=False)[0][:, :3]
    assert principal_cosines(owned, sent[party]).min() > 0.999


def test_two_loud_parties_of_four_do_not_own_a_weighted_consensus():
    """The cap is the lower median: half of the parties cannot raise it."""
    sent = images(proposals(tables(6, n_parties=4)))
    loud, louder = (sent | {p: size * sent[p] for p in ("p0", "p1")} for size in (1e2, 1e6))
    loud, louder = (consensus_span(x, n_components=3, weighted=True) for x in (loud, louder))
    np.testing.assert_allclose(loud @ loud.T, louder @ louder.T, rtol=0, atol=1e4 * EPS)
