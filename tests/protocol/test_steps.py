"""Steps out of order, and messages that came to the wrong door."""

import dataclasses

import numpy as np
import pytest

from cobasis import Analyst, ConsortiumSecret, Party
from cobasis.errors import (
    AgreementError,
    AnchorTagError,
    ConsensusError,
    DuplicatePartyError,
    MessageError,
    StepError,
    UnknownPartyError,
)
from protocol.consortium import COMPONENTS, NAMES, agree, consortium, tables, trained


def test_no_step_of_the_analyst_can_be_skipped():
    made = consortium()
    analyst = made.analyst
    for step in (analyst.align, analyst.certify, analyst.train, analyst.run):
        with pytest.raises(StepError, match=r"\[CB305\]$"):
            step()
    for name in ("alignment", "certificate"):
        with pytest.raises(StepError):
            getattr(analyst, name)
    made.received()
    with pytest.raises(StepError, match="nothing is aligned"):
        analyst.certify()
    analyst.align()
    with pytest.raises(StepError, match="nothing is certified"):
        analyst.train()
    analyst.certify()
    with pytest.raises(StepError, match="no model is trained"):
        next(analyst.returns())
    assert set(trained(analyst)) == set(NAMES)


def test_no_step_of_the_party_can_be_skipped():
    made = consortium()
    north, rows = made.parties["north"], made.rows["north"]
    returned = made.received().run()["north"]
    fresh = Party("north", agreement=made.agreement, secret=made.secret)
    with pytest.raises(StepError, match=r"has not prepared its upload.*\[CB305\]$"):
        fresh.accept(returned)
    fresh.prepare(*rows)
    for step in (fresh.predict, fresh.transform):
        with pytest.raises(StepError, match="no return yet"):
            step(rows[0])
    north.accept(returned)
    assert north.predict(rows[0]).shape == (30,)


def test_prepare_waits_for_the_consensus_where_the_agreement_says_so():
    made = consortium(basis="consensus")
    with pytest.raises(StepError, match=r"party 'north' has no consensus yet.*\[CB305\]$"):
        made.parties["north"].prepare(*made.rows["north"])


def test_there_is_nothing_to_propose_where_bases_are_own():
    made = consortium()
    with pytest.raises(StepError, match="takes one exchange"):
        made.parties["north"].propose(made.rows["north"][0])


@pytest.fixture(scope="module")
def run():
    """A consortium whose parties have prepared, and everybody's return."""
    made = consortium()
    return made, made.received().run()


RETURNS = {
    "another party's": lambda _: {"party": "south"},
    "another agreement's": lambda _: {"agreement_digest": bytes(32)},
    "of another height": lambda r: {"change_of_basis": r.change_of_basis[:-1]},
    "not finite": lambda r: {"change_of_basis": r.change_of_basis * np.nan},
    "of one dimension": lambda r: {"change_of_basis": r.change_of_basis[0]},
    "of text": lambda r: {"change_of_basis": r.change_of_basis.astype(str)},
}


@pytest.mark.parametrize("kind", RETURNS)
def test_a_return_that_is_not_the_partys_is_refused_and_not_kept(run, kind):
    made, returns = run
    north = made.parties["north"]
    forged = dataclasses.replace(returns["north"], **RETURNS[kind](returns["north"]))
    with pytest.raises(MessageError, match=r"\[CB306\]$") as caught:
        north.accept(forged)
    assert caught.value.exit_code == 3
    assert north._return is None


def test_the_return_of_another_party_is_refused_though_all_shapes_fit(run):
    made, returns = run
    with pytest.raises(MessageError, match=r"for party 'south'.*here is party 'north'"):
        made.parties["north"].accept(returns["south"])


@pytest.fixture(scope="module")
def asked():
    """A consensus round up to the span."""
    made = consortium(basis="consensus")
    proposals = {name: party.propose(made.rows[name][0]) for name, party in made.parties.items()}
    return made, proposals, made.analyst.consensus(proposals.values())


SPANS = {
    "another agreement's": (lambda _: {"agreement_digest": bytes(32)}, "another agreement"),
    "another anchor's": (lambda _: {"anchor_tag": bytes(32)}, "another anchor"),
    "too narrow": (lambda s: {"rows": s.rows[:, 1:]}, r"instead of \(8, 3\)"),
    "transposed": (lambda s: {"rows": s.rows.T}, r"\(3, 8\) instead"),
    "not finite": (lambda s: {"rows": s.rows * np.nan}, "NaN or infinity"),
}


@pytest.mark.parametrize("kind", SPANS)
def test_a_consensus_of_another_round_is_refused(asked, kind):
    made, _, span = asked
    change, words = SPANS[kind]
    forged = dataclasses.replace(span, **change(span))
    party = Party("north", agreement=made.agreement, secret=made.secret)
    with pytest.raises(MessageError, match=words):
        party.prepare(*made.rows["north"], consensus=forged)
    assert party._basis is None


def test_a_consensus_that_no_anchor_hides_is_the_analysts_mistake(asked):
    """An analyst that made up a span would need the anchor to make it pass."""
    made, _, span = asked
    invented = np.linalg.qr(np.random.default_rng(0).normal(size=span.rows.shape))[0]
    with pytest.raises(MessageError, match=r"party 'north' got is no orthonormal span.*\[CB306\]$"):
        made.parties["north"].prepare(
            *made.rows["north"], consensus=dataclasses.replace(span, rows=invented)
        )


def test_a_consensus_is_orthonormal_and_names_who_shaped_it(asked):
    _, _, span = asked
    np.testing.assert_allclose(span.rows.T @ span.rows, np.eye(COMPONENTS), atol=1e-12)
    assert span.contributors == NAMES
    assert span.n_bytes == 8 * 8 * COMPONENTS


PROPOSALS = {
    "two parties only": (lambda p: [p["north"], p["south"]], AgreementError),
    "one party twice": (lambda p: [p["north"], *p.values()], DuplicatePartyError),
    "a stranger": (
        lambda p: [*p.values(), dataclasses.replace(p["north"], party="ghost")],
        UnknownPartyError,
    ),
    "another agreement": (
        lambda p: [*list(p.values())[1:], dataclasses.replace(p["north"], agreement_digest=b"x")],
        MessageError,
    ),
    "another anchor": (
        lambda p: [*list(p.values())[1:], dataclasses.replace(p["north"], anchor_tag=b"x")],
        AnchorTagError,
    ),
    "too few directions": (
        lambda p: [
            dataclasses.replace(p[name], image=p["north"].image[:, :1] * size)
            for name, size in zip(NAMES[:3], (1.0, 2.0, 3.0), strict=True)
        ],
        ConsensusError,
    ),
}


@pytest.mark.parametrize("kind", PROPOSALS)
def test_proposals_that_make_no_consensus_are_refused(asked, kind):
    made, proposals, _ = asked
    choose, error = PROPOSALS[kind]
    with pytest.raises(error, match=rf"\[{error.code}\]$"):
        Analyst(made.agreement).consensus(choose(proposals))


def test_a_proposal_shows_only_directions_that_the_rows_have():
    """Two rows give two columns, never LAPACK's null-space filling."""
    made = consortium(basis="consensus")
    X, _ = tables()["north"]
    proposal = made.parties["north"].propose(X[:2])
    assert proposal.image.shape == (8, 2)
    assert proposal.n_bytes == 8 * 8 * 2


def test_rows_without_any_direction_cannot_be_proposed():
    made = consortium(basis="consensus")
    with pytest.raises(ValueError, match=r"too few independent rows.*\[CB106\]$"):
        made.parties["north"].propose(np.zeros((5, 6)))


def test_a_party_outside_the_agreement_cannot_join():
    secret = ConsortiumSecret()
    with pytest.raises(UnknownPartyError, match=r"party 'ghost' is not in the agreement.*CB304"):
        Party("ghost", agreement=agree(secret), secret=secret)
