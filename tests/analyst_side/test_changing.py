"""A party that comes late, one that leaves, and what is said of it; uploads that are destroyed."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from analyst_side.rounds import NAMES, real_round
from analyst_side.test_receiving import contents
from analyst_side.test_running import opened_return
from cobasis.analyst_side.forget import forget
from cobasis.analyst_side.membership import check_removal, remove
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run
from cobasis.bundle import run_folder
from cobasis.bundle.transcript import verify_transcript
from cobasis.errors import (
    RetentionError,
    SignatureError,
    StepError,
    UnknownPartyError,
)
from cobasis.keys.identity import Identity
from cobasis.models.chain_file import encode_chain

EARLY = ("east", "north", "south")
PAST = "2026-01-01T00:00:00Z"


def add(made, name):
    """What the analyst types when somebody comes late."""
    made.upload(name)
    assert not receive(made.session(), [made.inbox / f"{name}.upload"]).refused
    return run(made.session(), confirmed=[name]).concluded


@pytest.fixture
def ran(tmp_path):
    """Three parties have run; the fourth has not uploaded."""
    made = real_round(tmp_path, minimum_parties=2, deadline=PAST)
    made.uploads(EARLY)
    receive(made.session(), [made.inbox])
    run(made.session())
    return made


def changes(made, names):
    return {name: opened_return(made, name).change_of_basis for name in names}


def test_a_late_party_is_fitted_to_the_frozen_target_and_nobody_elses_fit_changes(ran):
    before = changes(ran, EARLY)
    late = add(ran, "west")
    after = changes(ran, NAMES)
    for name in EARLY:
        np.testing.assert_array_equal(after[name], before[name])
    assert late.outcome.n_rows == 160
    got = opened_return(ran, "west")
    assert (got.trained_on, got.target_carries) == (NAMES, ("east",))
    rows = ran.party("west")._basis.project(ran.rows["west"][0]) @ got.change_of_basis
    assert (got.model.predict(rows) == ran.rows["west"][1]).mean() > 0.9


def test_a_run_after_a_late_party_has_nothing_new_and_the_same_model(ran):
    first = add(ran, "west")
    again = run(ran.session())
    assert again.concluded.outcome == first.outcome
    assert again.written == {}


def test_to_add_a_party_reads_the_target_once(ran, monkeypatch):
    read = []
    kept = run_folder.read_tables
    monkeypatch.setattr(
        run_folder, "read_tables", lambda path, **of: read.append(path.name) or kept(path, **of)
    )
    add(ran, "west")
    assert read.count("target.safetensors") == 1


def test_a_removal_trains_again_and_leaves_the_others_changes_of_basis_alone(ran):
    before = changes(ran, EARLY)
    first = encode_chain(opened_return(ran, "north").model)
    done = remove(ran.session(), "east")
    for name, change in changes(ran, ("north", "south")).items():
        np.testing.assert_array_equal(change, before[name])
    got = opened_return(ran, "north")
    assert encode_chain(got.model) != first
    assert (got.trained_on, got.target_carries) == (("north", "south"), ("east",))
    assert set(done.concluded.files) == {"north", "south"}


def test_the_rows_that_were_removed_are_nowhere_in_the_work_folder(ran):
    rows = np.frombuffer(ran.work.payload("south").read_bytes()[-48:], dtype="<f8")
    assert [1 for data in contents(ran.work.path).values() if rows.tobytes() in data]
    models = contents(ran.work.models)
    remove(ran.session(), "south")
    left = contents(ran.work.path)
    assert not [name for name, data in left.items() if rows.tobytes() in data]
    assert not ran.sealed("south").exists()
    assert not set(models.values()) & set(left.values())  # models that they shaped went, too


def test_the_certificate_says_what_is_and_what_is_not_gone_and_is_signed(ran):
    done = remove(ran.session(), "east")
    data, text = (path.read_text() for path in done.files)
    told = check_removal(data.encode(), analyst=ran.identities["lab"].public)
    for sentence in (
        "The rows of 'east' are out",
        "The model was trained again, on north, south alone",
        "The changes of basis of the other parties are unchanged",
        "The target still descends from east.",
        "are not reached by this removal",
    ):
        assert sentence in text
        assert any(sentence in each for each in (*told["gone"], *told["not_gone"]))
    assert "as if" not in text + data
    with pytest.raises(SignatureError):
        check_removal(data.encode(), analyst=Identity.new("lab").public)
    forged = json.loads(data)
    forged["removal"]["party"] = "north"
    with pytest.raises(SignatureError):
        check_removal(json.dumps(forged).encode(), analyst=ran.identities["lab"].public)


def test_only_realign_makes_a_target_without_the_party_that_left(ran):
    before = changes(ran, ("north", "south"))
    first = remove(ran.session(), "east")
    assert not first.removal.realigned
    done = remove(ran.session(), "east", realign=True)
    got = opened_return(ran, "south")
    assert got.target_carries == ("north",)
    assert not np.allclose(got.change_of_basis, before["south"])
    text = done.files[1].read_text()
    assert "made again without its anchor image" in text
    assert "are unchanged" not in text
    assert "still descends from north." in text
    assert len(list(ran.work.alignments.iterdir())) == 1  # the old target went


def test_a_removal_that_is_certified_again_knows_of_a_later_realignment(ran):
    add(ran, "west")
    assert not remove(ran.session(), "south").removal.realigned
    remove(ran.session(), "east", realign=True)
    again = remove(ran.session(), "south").removal
    assert again.realigned
    assert not any("unchanged" in sentence for sentence in again.not_gone)


def test_a_party_whose_upload_no_model_was_trained_on_is_removed_without_returns(tmp_path):
    made = real_round(tmp_path, minimum_parties=2, deadline=PAST)
    made.uploads(EARLY)
    receive(made.session(), [made.inbox])
    done = remove(made.session(), "east")
    assert done.concluded is None
    assert "No model of this round was trained on the rows of 'east'." in done.removal.gone
    assert "unchanged" not in done.removal.text()
    ran = run(made.session())
    assert set(ran.concluded.files) == {"north", "south"}


def test_an_upload_that_was_removed_is_not_taken_again(ran):
    remove(ran.session(), "east")
    assert [each.code for each in receive(ran.session(), [ran.inbox]).refused] == ["CB805"]
    ran.upload("east")
    refused = receive(ran.session(), [ran.inbox]).refused
    assert ["removed from this round" in each.reason for each in refused] == [True]


def test_a_party_that_sent_nothing_is_not_removed_but_left_out(ran):
    with pytest.raises(UnknownPartyError, match="cobasis run --without west"):
        remove(ran.session(), "west")


def test_somebody_who_is_asked_may_stop_a_destruction_and_nothing_is_gone(ran):
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forget(ran.session(), early=True, ask=stop)
    assert not ran.session().history.forgotten
    with pytest.raises(StepError, match="agreed to be kept until"):  # refused before it asks
        forget(ran.session(), ask=stop)


def test_removing_somebody_unknown_or_below_the_minimum_changes_nothing(ran):
    with pytest.raises(UnknownPartyError):
        remove(ran.session(), "west")
    remove(ran.session(), "east")
    before = contents(ran.work.path)
    with pytest.raises(StepError, match=r"without party 'north' 1 would stay .south."):
        remove(ran.session(), "north")
    assert contents(ran.work.path) == before


def test_once_uploads_are_destroyed_receive_remove_and_run_give_one_clear_code(ran):
    with pytest.raises(StepError, match="agreed to be kept until"):
        forget(ran.session())
    forget(ran.session(), now=datetime.now(UTC) + timedelta(days=31))
    for call in (
        lambda: remove(ran.session(), "east"),
        lambda: run(ran.session()),
        lambda: receive(ran.session(), [ran.inbox]),
    ):
        with pytest.raises(RetentionError, match=r"were destroyed on .*\[CB313\]"):
            call()
    assert not ran.work.payloads.exists() or not list(ran.work.payloads.iterdir())
    assert not list(ran.work.received.iterdir())


def test_an_upload_that_vanished_gives_the_same_code(ran):
    ran.sealed("north").unlink()
    ran.work.payload("north").unlink()
    with pytest.raises(RetentionError, match="'north'"):
        add(ran, "west")


def test_uploads_may_be_destroyed_early_and_twice(ran):
    first = forget(ran.session(), early=True)
    assert forget(ran.session(), early=True) == first


def test_the_key_may_be_destroyed_with_them_and_the_transcript_says_so(ran, tmp_path):
    key, desk = tmp_path / "lab.key", ran.session()
    key.write_bytes(b"sealed")
    forget(desk, early=True)
    forget(desk, early=True, key=key)
    assert not key.exists()
    last = verify_transcript(ran.work.transcript).entries[-1]
    assert last.event == "key destroyed"
    assert last.told == {"fingerprint": desk.identity.public.fingerprint}
