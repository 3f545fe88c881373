"""A party that comes late, one that leaves, and what is said of it; uploads that are destroyed."""

import shutil
from datetime import UTC, datetime, timedelta
from unittest import mock

import numpy as np
import pytest

from analyst_side.rounds import EARLY, PAST, began, contents, refused
from cobasis.analyst_side.membership import check_removal
from cobasis.analyst_side.returns import Conclusion
from cobasis.bundle.agreement_file import inbox_of
from cobasis.errors import LabelError, RetentionError, SignatureError, StepError, UnknownPartyError
from cobasis.keys.identity import Identity
from cobasis.models.chain_file import encode_chain


def add(made, name):
    assert not refused(made.receive(made.upload(name)))
    return made.run(confirmed=[name]).concluded


@pytest.fixture
def ran(tmp_path):
    """Three parties have run; the fourth has not uploaded."""
    made = began(tmp_path, EARLY, minimum_parties=2, deadline=PAST)
    made.run()
    return made


def changes(made, names):
    return {name: made.returned(name).change_of_basis for name in names}


def test_a_removal_trains_again_leaves_the_others_changes_of_basis_alone_and_no_row_behind(ran):
    before, first = changes(ran, EARLY), encode_chain(ran.returned("north").model)
    rows = ran.work.payload("east").read_bytes()[-48:]
    assert [1 for data in contents(ran.work.path).values() if rows in data]
    models = contents(ran.work.models)
    done = ran.remove("east")
    left = contents(ran.work.path)
    assert not [name for name, data in left.items() if rows in data]
    assert not set(models.values()) & set(left.values())  # models that they shaped went, too
    assert not ran.sealed("east").exists()
    for name, change in changes(ran, ("north", "south")).items():
        np.testing.assert_array_equal(change, before[name])
    got = ran.returned("north")
    assert encode_chain(got.model) != first
    assert (got.trained_on, got.target_carries) == (("north", "south"), ("east",))
    assert set(done.concluded.files) == {"north", "south"}
    assert not ran.reply("east").exists()
    assert [each.code for each in refused(ran.receive())] == ["CB805"]
    ran.upload("east")
    assert "removed from this round" in refused(ran.receive())[0].reason


def test_the_certificate_says_what_is_and_what_is_not_gone_and_is_signed(ran):
    done = ran.remove("east")
    data, text = (path.read_text() for path in done.files)
    told = check_removal(data.encode(), analyst=ran.identities["lab"].public)
    for sentence in (
        "The rows of 'east' are out",
        "The model was trained again, on north, south alone",
        "The changes of basis of the other parties are unchanged",
        "The target still descends from east, of whose anchor image it is made.",
        "That includes 'east': a target is replaced by --realign; where there is one, a common",
        "are not reached by this removal",
    ):
        assert sentence in " ".join(text.split())
        assert any(sentence in each for each in (*told["gone"], *told["not_gone"]))
    forged = data.replace('"party":"east"', '"party":"north"')
    for text, analyst in ((data, Identity.new("lab")), (forged, ran.identities["lab"])):
        with pytest.raises(SignatureError):
            check_removal(text.encode(), analyst=analyst.public)


def test_only_realign_makes_a_target_without_those_who_left_which_all_certificates_know(ran):
    add(ran, "west")
    before = changes(ran, ("west",))
    for name in ("south", "east"):
        assert not ran.remove(name).removals[0].realigned
    done = ran.remove("east", realign=True)
    got = ran.returned("west")
    assert got.target_carries == ("north",)
    assert not np.allclose(got.change_of_basis, before["west"])
    text = done.files[1].read_text()
    assert "made again without its anchor image" in text
    assert "are unchanged" not in text
    assert len(list(ran.work.alignments.iterdir())) == 1  # the old target went
    assert ran.remove("south").removals[0].realigned


def test_a_removal_whose_training_is_refused_changes_nothing_of_the_record(ran):
    """As where those who stay have one class: nobody is out by the record and in by the model."""
    before = [each.line for each in ran.entries()]
    one_class = mock.patch("cobasis.analyst_side.run._train", side_effect=LabelError("one class"))
    with one_class, pytest.raises(LabelError):
        ran.remove("east")
    assert [each.line for each in ran.entries()] == before
    assert ran.run().concluded is None or set(ran.returned("east").trained_on) == set(EARLY)
    assert ran.remove("east").concluded.outcome.uploads.keys() == {"north", "south"}


@pytest.mark.parametrize("then", [("east", "south"), ("south",), ("east",)])
def test_several_that_leave_are_out_whatever_follows_a_kill(ran, then):
    add(ran, "west")
    killed = mock.patch.object(Conclusion, "record", side_effect=KeyboardInterrupt)
    with killed, pytest.raises(KeyboardInterrupt):
        ran.remove("east", "south")
    with pytest.raises(StepError, match="cobasis remove east"):
        ran.run()
    done = ran.remove(*then, then[0])
    staying = {"north", "west"}
    assert done.concluded.outcome.uploads.keys() == staying  # one training, a certificate each
    assert [(each.party, {*each.trained_on}) for each in done.removals] == [
        (name, staying) for name in then
    ]
    assert not any(place(name).exists() for name in then for place in (ran.reply, ran.sealed))


def test_a_late_party_that_leaves_is_out_also_when_the_round_is_aligned_anew(ran):
    """The others are those of the first run, whose folder of fits holds the late one's as well."""
    add(ran, "west")
    done = ran.remove("west", realign=True)
    assert tuple(done.concluded.outcome.uploads) == done.removals[0].trained_on == EARLY
    assert (done.concluded.outcome.n_rows, set(done.concluded.files)) == (120, set(EARLY))


def test_a_party_whose_upload_no_model_was_trained_on_is_removed_without_returns(tmp_path):
    made = began(tmp_path, EARLY, minimum_parties=2, deadline=PAST)
    done = made.remove("east")
    assert done.concluded is None
    assert "No model of this round was trained on the rows of 'east'." in done.removals[0].gone
    assert "unchanged" not in done.removals[0].text()
    assert set(made.run().concluded.files) == {"north", "south"}


def test_removing_who_sent_nothing_or_below_the_minimum_changes_nothing(ran):
    with pytest.raises(UnknownPartyError, match="cobasis run --without west"):
        ran.remove("west")
    ran.remove("east")
    before = contents(ran.work.path)
    with pytest.raises(StepError, match=r"without north 1 would stay .south."):
        ran.remove("north")
    assert contents(ran.work.path) == before


def test_an_upload_that_vanished_gives_one_clear_code(ran):
    ran.sealed("north").unlink()
    ran.work.payload("north").unlink()
    with pytest.raises(RetentionError, match=r"the upload of party 'north'.*\[CB313\]"):
        add(ran, "west")


def test_uploads_are_destroyed_when_their_time_is_over(ran):
    stop = mock.Mock(side_effect=KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        ran.forget(early=True, ask=stop)
    assert not ran.session().history.forgotten
    came = inbox_of(ran.path)
    shutil.copytree(ran.work.received, came)  # what a server took in
    ran.forget(now=datetime.now(UTC) + timedelta(days=31))
    for folder in (ran.work.payloads, ran.work.received, came):
        assert not list(folder.glob("*"))
