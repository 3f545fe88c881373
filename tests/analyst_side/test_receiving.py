"""Receiving: what is acknowledged lies on the disk, and one bad file never blocks another."""

import json
import os
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np
import pytest

from analyst_side.rounds import real_round
from cobasis.analyst_side.receive import receive
from cobasis.bundle.transcript import verify_transcript
from cobasis.disk.whole import file_digest
from cobasis.errors import AnotherRunError, DiskError, OptionError, TranscriptError
from cobasis.keys.identity import Identity
from cobasis.protocol.signatures import check_receipt
from faults import died, dying_after


@pytest.fixture
def made(tmp_path):
    return real_round(tmp_path)


def verdicts(reception):
    return {each.file: each.code or each.verdict for each in reception.files}


def contents(folder):
    """Every file below a folder, by its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_an_accepted_upload_lies_on_the_disk_as_it_came_and_has_a_signed_receipt(made):
    paths = made.uploads(["north", "south"])
    found = receive(made.session(), [made.inbox])
    assert verdicts(found) == {"north.upload": "accepted", "south.upload": "accepted"}
    assert (found.missing, found.late) == (("east", "west"), ())
    line = verify_transcript(made.work.transcript).entries[1]
    for name, path in paths.items():
        assert made.sealed(name).read_bytes() == path.read_bytes()
        check_receipt(
            made.news().receipts_of(1)[name],
            analyst=made.identities["lab"].public,
            agreement=made.agreement.digest().hex(),
            party=name,
            file=file_digest(path),
        )
    assert made.news().receipts_of(1)["north"].receipt.transcript == line.hash
    assert [each.n_rows for each in found.files] == [40, 40]


def test_an_inbox_that_is_received_again_changes_nothing(made):
    made.uploads(["north", "south"])
    receive(made.session(), [made.inbox])
    before = contents(made.work.path)
    again = receive(made.session(), [made.inbox])
    assert verdicts(again) == dict.fromkeys(("north.upload", "south.upload"), "received before")
    assert contents(made.work.path) == before


def test_a_second_upload_of_a_party_is_refused_and_the_first_stays(made):
    first = made.upload("north").read_bytes()
    receive(made.session(), [made.inbox])
    made.upload("north")
    made.upload("north", file="older.upload", created=datetime.now(UTC) - timedelta(hours=3))
    found = receive(made.session(), [made.inbox])
    assert verdicts(found) == {"north.upload": "CB805", "older.upload": "CB805"}
    assert made.sealed("north").read_bytes() == first


def test_each_bad_file_gets_its_code_and_the_good_one_between_them_is_taken(made):
    stranger = Identity.new("north")
    other = real_round(made.folder, identities=made.identities, round_id="other")
    made.upload("north", file="a-forged.upload", signer=stranger)
    made.upload("south", file="b-for-east.upload", to=("east",))
    other.upload("south", file="c-other-round.upload")
    made.upload("west", file="d-future.upload", created=datetime.now(UTC) + timedelta(hours=49))
    made.upload("east", file="e-good.upload")
    whole = made.upload("west", file="f-cut.upload").read_bytes()
    (made.inbox / "f-cut.upload").write_bytes(whole[:-10])
    (made.inbox / "g-junk.upload").write_bytes(b"PK\x03\x04" + bytes(100))
    (made.inbox / "h-empty.upload").touch()
    (made.inbox / "i-folder.upload").mkdir()
    (made.inbox / "j-gone.upload").symlink_to(made.inbox / "nowhere")
    (made.inbox / "k-text.txt").write_text("no file of ours")
    found = receive(made.session(), [made.inbox])
    assert verdicts(found) == {
        "a-forged.upload": "CB802",
        "b-for-east.upload": "CB801",
        "c-other-round.upload": "CB804",
        "d-future.upload": "CB806",
        "e-good.upload": "accepted",
        "f-cut.upload": "CB801",
        "g-junk.upload": "CB801",
        "h-empty.upload": "CB801",
        "j-gone.upload": "CB601",
        "k-text.txt": "CB801",
    }
    assert [path.name for path in made.work.payloads.iterdir()] == ["east.safetensors"]
    assert not made.work.incoming.exists()


def test_an_upload_whose_tables_cannot_be_used_is_refused_before_it_is_acknowledged(made):
    rows, labels = made.rows["north"]
    party = made.party("north")
    prepared = party.prepare(rows, labels)
    for name, broken in {
        "nan": {"rows": np.where(np.arange(3) == 1, np.nan, prepared.rows)},
        "huge": {"rows": prepared.rows * 1e200},
        "class": {"labels": prepared.labels + 5},
        "zero": {"anchor_image": prepared.anchor_image * 0},
        "short": {"anchor_image": prepared.anchor_image[:-1]},
    }.items():
        spoilt = type(prepared)(**{**vars(prepared), **broken})
        party.prepare = lambda *_, spoilt=spoilt, **__: spoilt
        made.upload("north", file=f"{name}.upload")
    found = receive(made.session(), [made.inbox])
    assert verdicts(found) == {
        "class.upload": "CB306",
        "huge.upload": "CB306",
        "nan.upload": "CB306",
        "short.upload": "CB306",
        "zero.upload": "CB203",
    }
    assert not list(made.work.received.iterdir())
    assert [each.event for each in verify_transcript(made.work.transcript).entries] == ["opened"]


def test_killed_after_every_call_nothing_acknowledged_is_lost_and_a_plain_retry_succeeds(tmp_path):
    trial = real_round(tmp_path)
    trial.uploads(["north", "south"])
    secret, identities = trial.secret, trial.identities
    for number in count(1):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = real_round(folder, identities=identities, secret=secret)
        made.inbox.symlink_to(trial.inbox)
        if not died(dying_after, number, lambda made=made: receive(made.session(), [made.inbox])):
            break
        path = made.work.transcript
        entries = verify_transcript(path).entries if path.exists() else ()
        told = [each.told for each in entries[1:]]
        for each in told:  # acknowledged: both files stand, whole
            assert file_digest(made.sealed(each["party"])) == each["file"]
            assert file_digest(made.work.payload(each["party"])) == each["payload"]
        if (folder / "icu.news").exists():  # a receipt only after that
            assert set(made.news().receipts_of(1)) <= {each["party"] for each in told}
        found = receive(made.session(), [made.inbox])
        assert not found.refused
        assert set(found.received) == set(made.news().receipts_of(1)) == {"north", "south"}
        assert not list(made.work.path.rglob("*.part"))


def test_two_processes_at_work_in_one_folder_are_refused(made):
    made.upload("north")
    with made.session().at_work(), pytest.raises(AnotherRunError, match=r"\[CB604\]"):
        receive(made.session(), [made.inbox])


def test_a_changed_transcript_stops_everything(made):
    made.uploads(["north", "south"])
    receive(made.session(), [made.inbox])
    text = made.work.transcript.read_text()
    made.work.transcript.write_text(text.replace('"n_rows":40', '"n_rows":41'))
    with pytest.raises(TranscriptError):
        receive(made.session(), [made.inbox])


def test_the_work_folder_of_another_agreement_is_refused(made):
    made.upload("north")
    receive(made.session(), [made.inbox])
    other = real_round(made.folder, identities=made.identities, secret=made.secret, purpose="b")
    with pytest.raises(AnotherRunError, match="another agreement"):
        receive(other.session(), [made.inbox])


def test_an_inbox_that_is_not_there_is_refused(made):
    with pytest.raises(OptionError, match="neither a file nor a folder"):
        receive(made.session(), [made.folder / "nowhere"])


def test_a_full_disk_of_the_analyst_stops_and_a_retry_goes_on(made, monkeypatch):
    made.uploads(["north", "south"])
    calls = []
    real = os.posix_fallocate

    def full(descriptor, offset, length):
        calls.append(length)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        return real(descriptor, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskError, match="No space left"):
        receive(made.session(), [made.inbox])
    monkeypatch.undo()
    assert set(receive(made.session(), [made.inbox]).received) == {"north", "south"}


def test_the_work_folder_holds_no_secret_and_only_its_owner_may_read_it(made):
    made.uploads()
    receive(made.session(), [made.inbox])
    secret = made.secret._key
    columns = [made.party(name)._basis._columns for name in made.agreement.parties]
    wanted = [secret, secret.hex().encode(), *(each.tobytes() for each in columns)]
    wanted += [made.rows[name][0][0].tobytes() for name in made.agreement.parties]
    for name, data in contents(made.work.path).items():
        assert not [needle for needle in wanted if needle in data], name
    assert made.work.path.stat().st_mode & 0o077 == 0
    told = json.loads(made.work.transcript.read_text().splitlines()[1])
    assert set(told["told"]) == {
        "party",
        "exchange",
        "message",
        "file",
        "payload",
        "created",
        "n_rows",
        "audit",
    }
