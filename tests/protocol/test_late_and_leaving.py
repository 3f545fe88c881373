"""A late party is fitted to the frozen target; a party that leaves changes nobody else."""

from typing import get_args

import numpy as np
import pytest

from cobasis import Analyst
from cobasis.algorithms import AlignerName
from cobasis.errors import StepError, UnknownPartyError
from cobasis.models.chain_file import encode_chain
from protocol.consortium import NAMES, consortium, tables, trained


def frozen(analyst):
    """Bytes of every G_i and of the target."""
    alignment = analyst.alignment
    changes = {name: each.tobytes() for name, each in alignment.changes_of_basis.items()}
    return changes, alignment.target.rows.tobytes()


@pytest.mark.parametrize("aligner", get_args(AlignerName))
def test_a_late_party_changes_no_other_change_of_basis_bitwise(aligner):
    made = consortium(aligner=aligner)
    analyst = made.received(without=["west"])
    analyst.run()
    changes, target = frozen(analyst)
    analyst.receive(made.parties["west"].prepare(*made.rows["west"]))
    changes_after, target_after = frozen(analyst)
    assert target_after == target
    assert {name: changes_after[name] for name in changes} == changes
    assert "west" in changes_after
    assert "west" not in analyst.alignment.target.shaped_by


def test_a_late_party_is_trained_with_after_a_new_certificate():
    made = consortium()
    analyst = made.received(without=["west"])
    analyst.run()
    analyst.receive(made.parties["west"].prepare(*made.rows["west"]))
    with pytest.raises(StepError, match="nothing is certified"):
        analyst.train()
    analyst.certify()
    returns = trained(analyst)
    assert returns["west"].trained_on == NAMES
    made.parties["west"].accept(returns["west"])
    rows, labels = tables(n_rows=100)["west"]
    assert np.mean(made.parties["west"].predict(rows) == labels) > 0.9


def test_a_late_party_gets_what_it_would_have_got_in_time():
    """Under ODC the target is the first party's image, so being late costs nothing."""
    made = consortium()
    uploads = made.uploads()
    late, in_time = Analyst(made.agreement), Analyst(made.agreement)
    for name in NAMES[:3]:
        late.receive(uploads[name])
    late.align()
    late.receive(uploads["west"])
    for upload in uploads.values():
        in_time.receive(upload)
    in_time.align()
    assert frozen(late) == frozen(in_time)


@pytest.mark.parametrize("aligner", get_args(AlignerName))
@pytest.mark.parametrize("leaver", ["north", "east"])
def test_a_party_that_leaves_changes_no_other_change_of_basis(aligner, leaver):
    """Also when it was the reference (north)."""
    analyst = consortium(aligner=aligner).received()
    analyst.run()
    changes, target = frozen(analyst)
    analyst.remove(leaver)
    changes_after, target_after = frozen(analyst)
    assert changes_after == {name: each for name, each in changes.items() if name != leaver}
    assert target_after == target
    assert tuple(analyst.uploads) == tuple(name for name in NAMES if name != leaver)


def test_returns_name_whose_trace_the_target_still_carries():
    analyst = consortium().received()
    analyst.run()
    analyst.remove("north")
    assert analyst.alignment.departed == ("north",)
    analyst.certify()
    for returned in trained(analyst).values():
        assert returned.target_carries == ("north",)
        assert "north" not in returned.trained_on


@pytest.mark.parametrize("aligner", get_args(AlignerName))
def test_realign_after_a_removal_is_a_round_without_the_party(aligner):
    made = consortium(aligner=aligner)
    uploads = made.uploads()
    left, never = Analyst(made.agreement), Analyst(made.agreement)
    for name, upload in uploads.items():
        left.receive(upload)
        if name != "north":
            never.receive(upload)
    left.run()
    left.remove("north")
    returns, expected = left.run(realign=True), never.run()
    assert left.alignment.departed == ()
    for name, returned in returns.items():
        assert "north" not in (*returned.target_carries, *returned.trained_on)
        np.testing.assert_array_equal(returned.change_of_basis, expected[name].change_of_basis)
        assert encode_chain(returned.model) == encode_chain(expected[name].model)


def test_without_realign_the_removed_reference_still_shapes_every_result():
    """The honest half of the sentence: dropping a fit is not exact removal."""
    made = consortium()
    analyst = made.received()
    analyst.run()
    kept = {name: change.copy() for name, change in analyst.alignment.changes_of_basis.items()}
    analyst.run(exclude=["north"], realign=True)
    moved = [
        np.abs(change - kept[name]).max()
        for name, change in analyst.alignment.changes_of_basis.items()
    ]
    assert min(moved) > 0.01


def test_a_party_that_left_may_come_back_as_a_late_party():
    made = consortium()
    analyst = made.received()
    analyst.run()
    changes, _ = frozen(analyst)
    upload = analyst.uploads["south"]
    analyst.remove("south")
    analyst.receive(upload)
    assert frozen(analyst)[0] == changes


def test_removing_twice_or_somebody_unknown_is_refused():
    analyst = consortium().received()
    analyst.remove("south")
    for name in ("south", "ghost"):
        with pytest.raises(UnknownPartyError, match=rf"'{name}' is not known here.*\[CB304\]$"):
            analyst.remove(name)
        assert name not in analyst.uploads
    assert len(analyst.uploads) == 3


def test_when_everybody_has_left_nothing_is_aligned_any_more():
    analyst = consortium().received()
    analyst.run()
    for name in NAMES:
        analyst.remove(name)
    for step in (analyst.certify, analyst.train, analyst.align):
        with pytest.raises(StepError):
            step()
