"""Steps out of order, messages that came to the wrong door, and what a party does with a return."""

from dataclasses import replace

import numpy as np
import pytest

from cobasis import Analyst, Party, Round
from cobasis.errors import (
    AgreementError,
    AnchorTagError,
    DuplicatePartyError,
    MessageError,
    StepError,
    UnknownPartyError,
)
from cobasis.models.chain import Chain
from protocol.consortium import COMPONENTS, NAMES, consortium, tables, trained


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
    with pytest.raises(StepError, match="takes one exchange"):
        north.propose(rows[0])
    waiting = consortium(basis="consensus").parties["north"]
    with pytest.raises(StepError, match=r"party 'north' has no consensus yet.*\[CB305\]$"):
        waiting.prepare(*rows)
    with pytest.raises(UnknownPartyError, match=r"party 'ghost' is not in the agreement.*CB304"):
        Party("ghost", agreement=made.agreement, secret=made.secret)


def test_rows_of_other_parties_than_the_rounds_are_refused_before_anything_is_sent():
    made = consortium()
    done = Round(agreement=made.agreement, parties=made.parties, analyst=made.analyst)
    missing = {name: made.rows[name] for name in NAMES[:3]}
    for rows in (missing, made.rows | {"ghost": made.rows["west"]}):
        with pytest.raises(UnknownPartyError, match=r"'(west|ghost)'.*\[CB304\]$"):
            done.run(rows)
    assert tuple(made.analyst.uploads) == ()


RETURNS = {
    "another party's, though all shapes fit": lambda _: {"party": "south"},
    "another agreement's": lambda _: {"agreement_digest": bytes(32)},
    "of another height": lambda r: {"change_of_basis": r.change_of_basis[:-1]},
    "not finite": lambda r: {"change_of_basis": r.change_of_basis * np.nan},
    "of one dimension": lambda r: {"change_of_basis": r.change_of_basis[0]},
    "of text": lambda r: {"change_of_basis": r.change_of_basis.astype(str)},
    "of another width than its model": lambda r: {"change_of_basis": r.change_of_basis[:, :2]},
    "without a model": lambda _: {"model": None},
}


def test_a_return_that_is_not_the_partys_is_refused_and_not_kept():
    made = consortium()
    north, returned = made.parties["north"], made.received().run()["north"]
    for change in RETURNS.values():
        with pytest.raises(MessageError, match=r"\[CB306\]$") as caught:
            north.accept(replace(returned, **change(returned)))
        assert caught.value.exit_code == 3
        assert not north.finished


@pytest.fixture(scope="module")
def asked():
    """A consensus round up to the span."""
    made = consortium(basis="consensus")
    proposals = made.proposals()
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
    forged = replace(span, **change(span))
    party = Party("north", agreement=made.agreement, secret=made.secret)
    with pytest.raises(MessageError, match=words):
        party.prepare(*made.rows["north"], consensus=forged)
    assert party._basis is None


def test_a_consensus_that_no_anchor_hides_is_the_analysts_mistake(asked):
    """An analyst that made up a span would need the anchor to make it pass."""
    made, _, span = asked
    np.testing.assert_allclose(span.rows.T @ span.rows, np.eye(COMPONENTS), atol=1e-12)
    assert (span.contributors, span.n_bytes) == (NAMES, 8 * 8 * COMPONENTS)
    invented = np.linalg.qr(np.random.default_rng(0).normal(size=span.rows.shape))[0]
    with pytest.raises(MessageError, match=r"party 'north' got is no orthonormal span.*\[CB306\]$"):
        made.parties["north"].prepare(*made.rows["north"], consensus=replace(span, rows=invented))


PROPOSALS = {
    "two parties only": (lambda p: [p["north"], p["south"]], AgreementError),
    "one party twice": (lambda p: [p["north"], *p.values()], DuplicatePartyError),
    "a stranger": (lambda p: [*p.values(), replace(p["north"], party="ghost")], UnknownPartyError),
    "another agreement": (
        lambda p: [*list(p.values())[1:], replace(p["north"], agreement_digest=b"x")],
        MessageError,
    ),
    "another anchor": (
        lambda p: [*list(p.values())[1:], replace(p["north"], anchor_tag=b"x")],
        AnchorTagError,
    ),
}


@pytest.mark.parametrize("kind", PROPOSALS)
def test_proposals_that_make_no_consensus_are_refused(asked, kind):
    made, proposals, _ = asked
    choose, error = PROPOSALS[kind]
    with pytest.raises(error, match=rf"\[{error.code}\]$"):
        Analyst(made.agreement).consensus(choose(proposals))


def test_a_proposal_shows_only_directions_that_the_rows_have():
    """Two rows give two columns, never LAPACK's null-space filling; rows of zeros are refused."""
    party = consortium(basis="consensus").parties["north"]
    proposal = party.propose(tables()["north"][0][:2])
    assert proposal.image.shape == (8, 2)
    assert proposal.n_bytes == 8 * 8 * 2
    with pytest.raises(ValueError, match=r"too few independent rows.*\[CB106\]$"):
        party.propose(np.zeros((5, 6)))


def test_a_model_for_another_task_or_other_classes_is_not_accepted_and_a_return_weighs_its_model():
    made, rows = consortium(), tables()
    party, returned = made.parties["north"], made.received().run()["north"]
    assert returned.n_bytes == 8 * COMPONENTS * COMPONENTS + returned.model.n_bytes
    party.accept(returned)
    kept, model = party.returned, returned.model
    last = model.layers[-1]
    wide = replace(last, weights=np.hstack([last.weights] * 2), offset=np.tile(last.offset, 2))
    more = Chain(family=model.family, layers=(*model.layers[:-1], wide), head=model.head)
    numbers = {name: (table, table[:, 0]) for name, (table, _) in rows.items()}
    other = consortium(rows=numbers, task="regression", classes=()).received().run()
    for each in (more, other["north"].model):
        with pytest.raises(MessageError, match="does not go with task='classification'"):
            party.accept(replace(returned, model=each))
    assert party.returned is kept
