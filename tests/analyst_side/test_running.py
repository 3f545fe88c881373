"""Running: one span or one sealed return per party, one model, and what the agreement forbids."""

from datetime import UTC, datetime
from hashlib import sha256

import numpy as np
import pytest

from analyst_side.rounds import EARLY, NAMES, began, contents, real_round, refused, verdicts
from cobasis.errors import OptionError, SealError, StepError, UnknownPartyError, WaitingError
from cobasis.models.chain_file import encode_chain


@pytest.fixture
def made(tmp_path):
    return began(tmp_path)


def test_every_party_and_nobody_else_gets_its_own_change_of_basis_and_the_one_model(made):
    concluded = made.run().concluded
    outcome, models = concluded.outcome, set()
    for name in NAMES:
        got = made.returned(name)
        assert (got.trained_on, got.target_carries) == (NAMES, ("east",))
        assert got.evidence == outcome.evidence[name]
        models.add(encode_chain(got.model))
    assert len(models) == 1
    assert outcome.n_rows == concluded.card.n_rows == 160
    assert concluded.card == got.card.beside(None)
    assert got.card.others_sha256 == sha256(encode_chain(got.others)).hexdigest()
    for other in {*NAMES, "lab"} - {"north"}:
        with pytest.raises(SealError):
            made.opened("north", by=other)
    change = got.change_of_basis.tobytes()
    assert not [name for name, data in contents(made.outbox).items() if change in data]


def test_until_everybody_is_in_a_run_waits_and_nobody_is_left_out_or_taken_in_unsaid(tmp_path):
    made = began(tmp_path, ["north", "south"])
    with pytest.raises(WaitingError, match=r"Receive what they send\. \["):  # 3 are needed
        made.run()
    made.upload("east")
    made.receive()
    for without, error, told in (
        ([], WaitingError, r"upload of west, and no deadline.*--without west"),
        (["east"], WaitingError, r"upload of west.* Receive what they send\. \["),
        (["east", "west"], StepError, "Missing: nobody; left out: east, west"),
        (["lab"], UnknownPartyError, "lab"),
    ):
        with pytest.raises(error, match=told):
            made.run(without=without)
    with pytest.raises(OptionError, match="--without west and --with west contradict each other"):
        made.run(without=["west"], again=["west"])
    made.run(without=["west"])
    made.upload("west")
    made.receive()
    with pytest.raises(StepError, match="nobody said that they are to be taken in"):
        made.run(again=["west"])
    with pytest.raises(StepError, match="cobasis remove south"):
        made.run(without=["south"])


def test_after_the_deadline_those_are_out_who_sent_nothing(tmp_path):
    before, after = (datetime(2030, 1, day, tzinfo=UTC) for day in (1, 3))
    made = began(tmp_path, ["north", "south"], deadline="2030-01-02T00:00:00Z")
    for now, words in ((before, "deadline is 2030-01-02"), (after, r"at least 3.*east, west")):
        with pytest.raises(WaitingError, match=words):
            made.run(now=now)
    made.upload("east")
    made.receive()
    with pytest.raises(WaitingError, match="deadline is 2030-01-02"):
        made.run(now=before)
    ran = made.run(now=after)
    assert (ran.plan.missing, ran.plan.without) == (("west",), ())
    assert sorted(contents(made.outbox)) == [f"icu.{name}.1-return" for name in EARLY]


def test_what_is_lost_is_written_again_and_nothing_else_and_the_last_family_stays(made):
    first = made.run(model="logistic").concluded.outcome
    kept, lines = contents(made.outbox), made.entries()
    assert made.run().written == {}
    assert (contents(made.outbox), made.entries()) == (kept, lines)
    made.work.payload("north").write_bytes(b"changed")
    made.work.payload("south").unlink()
    made.reply("south").unlink()
    again = made.run()  # opened uploads are made again from the sealed ones
    assert again.written == {"south": made.reply("south")}
    assert again.concluded.outcome.model_sha256 == first.model_sha256
    assert made.returned("south").model.family == "logistic"
    for name, data in contents(made.outbox).items():
        assert (data == kept[name]) == (name != "icu.south.1-return")
    assert made.returned("south").trained_on == NAMES


# Where a common span comes first.


@pytest.fixture
def consensual(tmp_path):
    return real_round(tmp_path, basis="consensus")


def spanned(made, names=NAMES, **options):
    for name in names:
        made.proposal(name)
    assert not refused(made.receive())
    return made.run(**options)


def test_who_leaves_behind_a_common_span_is_told_to_have_shaped_it(consensual):
    spanned(consensual)
    [told] = consensual.remove("east").removals
    assert "The common span still descends from east, north, south, west." in told.not_gone
    assert any("only replaced by a new round" in each for each in told.not_gone)


def test_once_made_the_span_stays_and_late_parties_get_it_too(consensual):
    made = consensual
    first = spanned(made, EARLY, without=["west"])
    assert (first.plan.members, first.plan.without) == (EARLY, ("west",))
    rows = made.adopted("west").rows
    made.proposal("west")
    late = made.receive()
    assert verdicts(late)["west.proposal"] == "CB804"
    assert "came after the common span was made" in refused(late)[0].reason
    made.receive()
    assert [each.event for each in made.entries()].count("late") == 1  # once for a file
    made.reply("north", 0).unlink()
    again = made.run()
    assert (again.plan.members, set(again.written)) == (EARLY, {"north"})
    np.testing.assert_array_equal(made.adopted("north").rows, rows)
    with pytest.raises(WaitingError):  # nothing is lost now
        made.run()
