"""A late party is fitted to the frozen target; a party that leaves changes nobody else."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from cobasis import Analyst
from cobasis.algorithms import AlignerName
from cobasis.errors import StepError, UnknownPartyError
from cobasis.models.chain_file import encode_chain
from protocol.consortium import NAMES, WIDTH, consortium, trained


def frozen(analyst):
    alignment = analyst.alignment
    changes = {name: each.tobytes() for name, each in alignment.changes_of_basis.items()}
    return changes, alignment.target.rows.tobytes()


@pytest.mark.parametrize("aligner", get_args(AlignerName))
def test_who_comes_late_or_leaves_changes_no_other_change_of_basis_bitwise(aligner):
    """And who comes late through the common span sees a person as the others do."""
    made = consortium(aligner=aligner, basis="haar")
    analyst = made.received(without=["west"])
    analyst.run()
    changes, target = frozen(analyst)
    analyst.receive(made.parties["west"].prepare(*made.rows["west"]))
    whole, target_after = frozen(analyst)
    assert target_after == target
    assert {name: whole[name] for name in changes} == changes
    assert set(whole) == set(NAMES)
    shaped_by = NAMES[:1] if aligner in {"odc", "whitened"} else NAMES[:3]
    assert analyst.alignment.target.shaped_by == shaped_by
    first, *others = (
        made.parties[name].basis.project(np.eye(WIDTH)) @ change
        for name, change in analyst.alignment.changes_of_basis.items()
    )
    for product in others:
        np.testing.assert_allclose(product, first, atol=1e-10)
    for leaver in ("north", "east"):  # also who was the reference
        analyst.remove(leaver)
        del whole[leaver]
        assert frozen(analyst) == (whole, target)
        assert tuple(analyst.uploads) == tuple(whole)
    assert analyst.alignment.departed == tuple(each for each in shaped_by if each not in whole)


@pytest.mark.parametrize("aligner", get_args(AlignerName))
def test_realign_after_a_removal_is_a_round_without_the_party_and_nothing_less_is(aligner):
    """Dropping a fit is not exact removal: who shaped the target still shapes every result."""
    made = consortium(aligner=aligner)
    left = made.received()
    left.run()
    left.remove("north")
    never = Analyst(made.agreement, uploads=dict(left.uploads))
    kept = left.run()
    returns, expected = left.run(realign=True), never.run()
    assert left.alignment.departed == ()
    for name, returned in returns.items():
        assert "north" in kept[name].target_carries
        assert "north" not in kept[name].trained_on
        assert np.abs(returned.change_of_basis - kept[name].change_of_basis).max() > 0.001
        assert "north" not in (*returned.target_carries, *returned.trained_on)
        np.testing.assert_array_equal(returned.change_of_basis, expected[name].change_of_basis)
        assert encode_chain(returned.model) == encode_chain(expected[name].model)


def test_who_left_may_come_back_is_not_removed_twice_and_when_all_have_left_nothing_is_aligned():
    analyst = consortium().received()
    analyst.run()
    (changes, _), upload = frozen(analyst), analyst.uploads["south"]
    analyst.remove("south")
    with pytest.raises(StepError, match="nothing is certified"):
        analyst.train()
    analyst.receive(upload)
    assert frozen(analyst)[0] == changes
    analyst.certify()
    assert trained(analyst)["south"].trained_on == NAMES
    before = analyst.alignment.changes_of_basis["south"]
    analyst.remove("south")
    analyst.receive(replace(upload, anchor_image=-upload.anchor_image))  # by another basis
    np.testing.assert_allclose(analyst.alignment.changes_of_basis["south"], -before, atol=1e-12)
    analyst.remove("south")
    with pytest.raises(UnknownPartyError, match=r"'south' is not known here.*\[CB304\]$"):
        analyst.remove("south")
    for name in tuple(analyst.uploads):
        analyst.remove(name)
    with pytest.raises(StepError, match=r"left out: 4\), so there is .* leave out fewer"):
        analyst.run()


def test_an_analyst_that_was_given_its_uploads_leaves_no_other_out_unsaid():
    made = consortium()
    uploads = dict(made.received().uploads)
    late = uploads.pop("west")
    analyst = Analyst(made.agreement, uploads=uploads)
    with pytest.raises(StepError, match=r"was given its uploads.*\[CB305\]$"):
        analyst.receive(late)
    assert [*analyst.run()] == [*uploads]


def test_a_consensus_keeps_the_trace_of_who_left_even_after_realigning():
    made = consortium(basis="consensus")
    made.agreed(made.proposals())
    made.analyst.remove("east")
    returned = made.analyst.run(realign=True)["north"]
    assert "east" in returned.target_carries
    assert "east" not in returned.trained_on
