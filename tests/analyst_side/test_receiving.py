"""Receiving: what is acknowledged lies on the disk, and one bad file never blocks another."""

from itertools import count

import pytest

from analyst_side.rounds import NAMES, RealRound, real_round, verdicts
from cobasis.analyst_side.history import UNREADABLE, audit_words
from cobasis.analyst_side.receive import FileVerdict, receive
from cobasis.bundle.agreement_file import read_agreement
from cobasis.cli.receive import said_of_files
from cobasis.disk.whole import copy_whole, file_digest
from cobasis.errors import AnotherRunError, OptionError, TranscriptError
from cobasis.keys.identity import Identity
from cobasis.protocol.signatures import check_receipt
from faults import died, dying_after

EVERYBODY = (*NAMES, "lab")


@pytest.fixture
def made(tmp_path):
    return real_round(tmp_path)


@pytest.fixture
def two(made):
    made.uploads(["north", "south"])
    return made


def test_an_accepted_upload_lies_on_the_disk_as_it_came_and_has_a_signed_receipt(made):
    paths = made.uploads(["north", "south"])
    found = made.receive()
    assert verdicts(found) == {"north.upload": "accepted", "south.upload": "accepted"}
    assert [each.n_rows for each in found] == [40, 40]
    for name, path in paths.items():
        assert made.sealed(name).read_bytes() == path.read_bytes()
        check_receipt(
            made.news().receipts_of(1)[name],
            analyst=made.identities["lab"].public,
            agreement=made.agreement.digest().hex(),
            party=name,
            file=file_digest(path),
        )
    assert made.news().receipts_of(1)["north"].receipt.transcript == made.entries()[1].hash
    assert made.work.path.stat().st_mode & 0o077 == 0


def test_what_lies_beside_an_agreement_is_found_whatever_its_name(made, monkeypatch):
    monkeypatch.setattr(RealRound, "path", made.folder / "icu[1].toml")
    for name in ("north", "south"):
        made.upload(name).rename(made.folder / f"icu[1].{name}.1-upload")
    assert set(verdicts(receive(made.session(), [])).values()) == {"accepted"}


def test_a_bad_file_gets_its_code_and_the_good_one_after_it_is_taken(made):
    (made.inbox / "i-folder.upload").mkdir(parents=True)
    (made.inbox / "d-table.csv").write_text("age,pulse\n61,80\n")
    (made.inbox / "g-north.secret").write_bytes(b"age-encryption.org/v1\n" + bytes(100))
    made.upload("west", file="e-forged.upload", signer=Identity.new("west"))
    made.upload("east", file="f-good.upload")
    (made.inbox / "h.pub").write_text(made.identities["north"].public.text())
    found = made.receive()
    assert verdicts(found) == {
        "d-table.csv": "CB801",
        "e-forged.upload": "CB802",
        "f-good.upload": "accepted",
        "g-north.secret": "CB804",
        "h.pub": "passed over",
    }
    said = {each.file: each.reason for each in found}
    assert "not sealed" in said["d-table.csv"]
    assert "delete it, and tell its sender" in said["d-table.csv"]
    assert "no analyst may have. Delete it" in said["g-north.secret"]
    assert [path.name for path in made.work.payloads.iterdir()] == ["east.safetensors"]
    assert not made.work.incoming.exists()


def test_a_file_that_changes_while_it_is_received_is_not_acknowledged(made, monkeypatch):
    path = made.upload("north")

    def changed(source, target):
        source.write_bytes(source.read_bytes() + b"more")
        return copy_whole(source, target)

    monkeypatch.setattr("cobasis.analyst_side.receive.copy_whole", changed)
    assert verdicts(made.receive()) == {path.name: "CB603"}
    assert (made.news().receipts, made.entries()[1:]) == ((), ())


def test_a_work_folder_is_one_processs_one_agreements_and_nobodys_to_change(two):
    with two.session().at_work(), pytest.raises(AnotherRunError, match=r"\[CB604\]"):
        two.receive()
    two.receive()
    two.agreement, mine = two.agreement.model_copy(update={"purpose": "b"}), two.agreement
    with pytest.raises(AnotherRunError, match="another agreement"):
        two.receive()
    two.agreement = mine
    text = two.work.transcript.read_text()
    two.work.transcript.write_text(text.replace('"n_rows":40', '"n_rows":41'))
    with pytest.raises(TranscriptError):
        two.receive()
    with pytest.raises(OptionError, match=r"neither a file nor a folder .* Make the folder"):
        two.receive(two.folder / "nowhere")
    two.identities["lab"] = Identity.new("lab", role="analyst")
    with pytest.raises(Exception, match=r"is not the one.*\[CB702\]"):
        two.session()


TOLD = {"policy": "cobasis/audit/1", "verdict": "pseudonymised", "report": "a" * 64}


def test_what_a_party_says_of_its_audit_is_kept_word_by_word_and_no_text_of_its_choice():
    assert (audit_words(TOLD), audit_words(None)) == ([*TOLD.values()], [])
    for odd in (None, 7, "", "line\nbreak", "\x1b[2Jsafe", "Protected by everything", "x" * 999):
        for place, word in enumerate(TOLD):
            assert audit_words({**TOLD, word: odd})[place] == UNREADABLE
    for verdict, message in (("accepted", "upload"), ("refused", "")):
        said = " ".join(said_of_files([FileVerdict(file="a", verdict=verdict, message=message)]))
        assert ("audit: none is named" in said) == bool(message)


# Before everybody has signed.


@pytest.fixture
def unsigned(tmp_path):
    return begun(tmp_path)


def begun(folder):
    made = real_round(folder)
    made.write(sealed=False)
    made.inbox.mkdir()
    return made


def test_signatures_are_taken_one_by_one_the_last_one_seals_and_other_files_wait(unsigned):
    unsigned.sign("north", "south")
    unsigned.upload("north")
    text, forged = (unsigned.inbox / "north.sig").read_text(), unsigned.inbox / "forged.sig"
    forged.write_text(text.replace('"north"', '"east"'))
    found = unsigned.receive()
    signed = dict.fromkeys(("north.sig", "south.sig"), "accepted")
    assert verdicts(found) == {**signed, "forged.sig": "CB802", "north.upload": "CB311"}
    forged.unlink()
    sealed = unsigned.folder / "icu.sealed.toml"
    assert (sealed.exists(), unsigned.news().agreed) == (False, ("north", "south"))
    for name in ("north", "south"):
        (unsigned.inbox / f"{name}.sig").unlink()  # what was taken is not needed again
    unsigned.sign("east", "west")
    unsigned.sign("lab", to=unsigned.folder)  # the analyst's own lies beside the agreement
    found = unsigned.receive()
    came = ("east.sig", "lab.sig", "north.upload", "west.sig")
    assert verdicts(found) == dict.fromkeys(came, "accepted")
    assert (sealed.exists(), set(unsigned.news().agreed)) == (True, set(EVERYBODY))
    assert set(unsigned.news().receipts_of(1)) == {"north"}
    assert verdicts(unsigned.receive())["west.sig"] == "received before"


def test_a_text_that_is_edited_before_all_have_signed_begins_anew(unsigned):
    unsigned.sign("north", "south")
    unsigned.receive()
    text = unsigned.path.read_text()
    unsigned.path.write_text(text.replace('"a test"', '"a better test"'))
    unsigned.agreement = read_agreement(unsigned.path).agreement
    found = unsigned.receive()
    assert verdicts(found) == dict.fromkeys(("north.sig", "south.sig"), "CB804")
    assert unsigned.news().agreed == ()
    unsigned.sign(*EVERYBODY)
    unsigned.receive()
    assert (unsigned.folder / "icu.sealed.toml").exists()


def test_killed_anywhere_the_same_command_seals(in_memory):
    for number in count(1, 7):  # the commands that tests/under_fault kills begin with all signed
        folder = in_memory / f"seals-{number}"
        folder.mkdir()
        one = begun(folder)
        one.sign(*EVERYBODY)
        if not died(dying_after, number, one.receive):
            break
        one.receive()
        assert (folder / "icu.sealed.toml").exists()
        events = [each.event for each in one.entries()]
        assert [event for event in events if event != "repaired"] == ["opened"] + ["agreed"] * 5
    assert number > 30
