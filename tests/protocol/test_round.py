"""The round: its steps in order, what it marks and refuses, and what follows from its keys."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

from cobasis import Analyst, ConsortiumSecret, PartyKey, Round
from cobasis.errors import (
    AgreementError,
    AnchorImageError,
    AnchorTagError,
    DuplicatePartyError,
    MessageError,
    StepError,
    UnknownPartyError,
)
from protocol.consortium import (
    COMPONENTS,
    NAMES,
    SEEDED,
    consortium,
    joined,
    simulated,
    tables,
    trained,
)


def test_every_line_of_algorithm_1_is_named_in_the_round():
    source = inspect.getsource(Round)
    for marked in ("line 2", "lines 3 to 5", "line 9", "lines 10 to 15", "line 18", "line 19"):
        assert marked in source


def test_traffic_counts_every_array_that_went_up_and_came_down():
    done = simulated()
    for name, upload in done.analyst.uploads.items():
        arrays = upload.rows.nbytes + upload.anchor_image.nbytes + upload.labels.nbytes
        assert done.traffic[name].up == arrays
        assert done.traffic[name].down > 8 * COMPONENTS**2
    assert simulated(basis="consensus").traffic["north"].up > done.traffic["north"].up
    assert "4 parties, " in repr(done)


ONE_SEEDED = {name: PartyKey(bytes([9] * 32), simulated=name == "west") for name in NAMES}


@pytest.mark.parametrize(
    ("given", "marked"),
    [({}, set()), ({"secret": SEEDED}, {*NAMES}), ({"keys": ONE_SEEDED}, {"west"})],
    ids=["nothing", "the secret", "one key"],
)
def test_what_a_seed_has_touched_is_marked_and_nothing_else(given, marked):
    made = consortium(basis="consensus", **given)
    proposals = made.proposals()
    assert {name for name, each in proposals.items() if each.simulated} == marked
    span = made.agreed(proposals)
    everything = [span, *made.analyst.uploads.values(), *made.analyst.run().values()]
    assert {each.simulated for each in everything} == {bool(marked)}
    with pytest.raises(AttributeError):
        made.keys["west"].simulated = False


def test_no_step_of_the_analyst_can_be_skipped():
    made = consortium()
    analyst = made.analyst
    for step in (analyst.align, analyst.certify, analyst.train, analyst.run):
        with pytest.raises(StepError, match=r"\[CB305\]$"):
            step()
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
    fresh = joined(made.secret)
    with pytest.raises(StepError, match=r"has not prepared its upload.*\[CB305\]$"):
        fresh.accept(returned)
    fresh.prepare(*rows)
    for step in (fresh.predict, fresh.transform):
        with pytest.raises(StepError, match="no return yet"):
            step(rows[0])
    north.accept(returned)
    assert north.predict(rows[0]).shape == (30,)
    north.prepare(*rows)  # G_i of the old basis and F_i of the new one would predict nonsense
    with pytest.raises(StepError, match=r"no return yet.*\[CB305\]$"):
        north.predict(rows[0])
    with pytest.raises(StepError, match="takes one exchange"):
        north.propose(rows[0])
    with pytest.raises(StepError, match=r"party 'north' has no consensus yet.*\[CB305\]$"):
        joined(made.secret, basis="consensus").prepare(*rows)
    with pytest.raises(UnknownPartyError, match=r"party 'ghost' is not in the agreement.*CB304"):
        joined(made.secret, "ghost")


def test_a_round_takes_rows_of_its_parties_once_and_goes_on_predicting_after_a_second_call():
    made = consortium()
    done = Round(agreement=made.agreement, parties=made.parties, analyst=made.analyst)
    missing = {name: made.rows[name] for name in NAMES[:3]}
    for rows in (missing, made.rows | {"ghost": made.rows["west"]}):
        with pytest.raises(UnknownPartyError, match=r"'(west|ghost)'.*\[CB304\]$"):
            done.run(rows)
    assert tuple(made.analyst.uploads) == ()
    before = done.run(made.rows).predict(made.rows["north"][0])
    with pytest.raises(StepError, match=r"this round has run.*\[CB305\]$"):
        done.run(made.rows)
    np.testing.assert_equal(done.predict(made.rows["north"][0]), before)


def test_a_return_that_is_not_the_partys_is_refused_and_not_kept_and_weighs_its_model():
    made = consortium()
    north, returned = made.parties["north"], made.received().run()["north"]
    assert returned.n_bytes == 8 * COMPONENTS * COMPONENTS + returned.model.n_bytes
    change = returned.change_of_basis
    for forged in (  # in files: tests/under_fault/in_returns.py
        {"party": "south"},  # though all shapes fit
        {"agreement_digest": bytes(32)},
        {"change_of_basis": change[:, :2]},  # of another width than its model
        {"model": None},
    ):
        with pytest.raises(MessageError, match=r"\[CB306\]$"):
            north.accept(replace(returned, **forged))
        assert not north.finished
    north.accept(returned)
    assert north.returned is returned


@pytest.fixture(scope="module")
def asked():
    made = consortium(basis="consensus")
    proposals = made.proposals()
    return made, proposals, made.analyst.consensus(proposals.values())


def test_a_consensus_of_another_round_is_refused(asked):
    made, _, span = asked
    np.testing.assert_allclose(span.rows.T @ span.rows, np.eye(COMPONENTS), atol=1e-12)
    assert (span.contributors, span.n_bytes) == (NAMES, 8 * 8 * COMPONENTS)
    party = joined(made.secret, basis="consensus")
    made_up = np.linalg.qr(np.random.default_rng(0).normal(size=span.rows.shape))[0]
    for change, words in (
        ({"agreement_digest": bytes(32)}, "another agreement"),
        ({"anchor_tag": bytes(32)}, "another anchor"),
        ({"rows": span.rows[:, 1:]}, r"instead of \(8, 3\)"),
        ({"rows": span.rows * np.nan}, "NaN or infinity"),
        ({"rows": made_up}, "party 'north' got is no orthonormal span"),  # it takes the anchor
    ):
        with pytest.raises(MessageError, match=rf"{words}.*\[CB306\]$"):
            party.prepare(*made.rows["north"], consensus=replace(span, **change))
    assert party._basis is None


def test_proposals_that_make_no_consensus_are_refused(asked):
    made, (first, *others) = asked[0], asked[1].values()
    for given, error in (
        ([first, others[0]], AgreementError),
        ([first, first, *others], DuplicatePartyError),
        ([replace(first, party="ghost"), *others], UnknownPartyError),
        ([replace(first, agreement_digest=b"x"), *others], MessageError),
        ([replace(first, anchor_tag=b"x"), *others], AnchorTagError),
        ([replace(first, image=0 * first.image), *others], AnchorImageError),
        ([replace(first, image=np.nan * first.image), *others], MessageError),
    ):
        with pytest.raises(error, match=rf"\[{error.code}\]$"):
            Analyst(made.agreement).consensus(given)


def test_a_proposal_shows_only_directions_that_the_rows_have():
    """Two rows give two columns, never LAPACK's null-space filling; rows of zeros are refused."""
    party = joined(ConsortiumSecret(), basis="consensus")
    proposal = party.propose(tables()["north"][0][:2])
    assert proposal.image.shape == (8, 2)
    assert proposal.n_bytes == 8 * 8 * 2
    with pytest.raises(ValueError, match=r"too few independent rows.*\[CB106\]$"):
        party.propose(np.zeros((5, 6)))
