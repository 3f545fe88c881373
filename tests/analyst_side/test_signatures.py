"""Receiving before everybody has signed: signatures one by one, and nothing else."""

from itertools import count

import pytest

from analyst_side.rounds import NAMES, real_round
from cobasis.analyst_side.receive import receive, seal_only
from cobasis.analyst_side.session import AnalystSession
from cobasis.bundle.agreement_file import read_agreement
from cobasis.bundle.agreement_text import new_text
from cobasis.bundle.transcript import verify_transcript
from cobasis.protocol.signatures import News, sign_agreement
from faults import died, dying_after

EVERYBODY = (*NAMES, "lab")


class Unsigned:
    """A round whose agreement is a file that nobody has signed."""

    def __init__(self, folder, like=None):
        self.made = like or real_round(folder)
        self.path, self.inbox = folder / "icu.toml", folder / "inbox"
        agreement = self.made.agreement
        fields = {name: getattr(agreement, name) for name in type(agreement).model_fields}
        self.path.write_text(new_text(fields))
        self.inbox.mkdir()
        self.agreement = read_agreement(self.path).agreement

    def session(self):
        lab = self.made.identities["lab"]
        sealed = self.path.with_name("icu.sealed.toml").exists()
        return AnalystSession(self.agreement, identity=lab, path=self.path, sealed=sealed)

    def sign(self, *names, to=None, of=None):
        for name in names:
            who = self.made.identities[name]
            made = sign_agreement(of or self.agreement, name=name, sign=who.sign)
            ((to or self.inbox) / f"{name}.sig").write_text(made.text())

    def receive(self):
        return receive(self.session(), [self.inbox])

    @property
    def news(self):
        return News.from_text(self.path.with_name("icu.news").read_bytes(), self.agreement)


@pytest.fixture
def unsigned(tmp_path):
    return Unsigned(tmp_path)


def verdicts(found):
    return {each.file: each.code or each.verdict for each in found.files}


def test_signatures_are_taken_one_by_one_and_the_last_one_seals(unsigned):
    unsigned.sign("north", "south")
    found = unsigned.receive()
    assert verdicts(found) == {"north.sig": "accepted", "south.sig": "accepted"}
    assert (found.agreed, found.unsigned) == (("north", "south"), ("east", "west", "lab"))
    assert (found.sealed, unsigned.news.agreed) == (None, ("north", "south"))
    for path in unsigned.inbox.iterdir():
        path.unlink()  # what was taken is not needed again
    unsigned.sign("east", "west")
    unsigned.sign("lab", to=unsigned.path.parent)  # the analyst's own lies beside the agreement
    found = unsigned.receive()
    assert verdicts(found) == dict.fromkeys(("east.sig", "lab.sig", "west.sig"), "accepted")
    assert (found.unsigned, found.sealed) == ((), unsigned.path.with_name("icu.sealed.toml"))
    assert set(unsigned.news.agreed) == set(EVERYBODY)
    read_agreement(found.sealed).check_sealed()
    assert verdicts(unsigned.receive())["west.sig"] == "received before"


def test_until_then_no_other_file_is_taken_and_afterwards_the_same_file_is(unsigned):
    unsigned.sign("north")
    unsigned.made.agreement = unsigned.agreement
    unsigned.made.upload("north")
    found = unsigned.receive()
    assert verdicts(found) == {"north.sig": "accepted", "north.upload": "CB311"}
    unsigned.sign(*EVERYBODY)
    found = unsigned.receive()
    assert verdicts(found)["north.upload"] == "accepted"
    assert set(unsigned.news.receipts_of(1)) == {"north"}


def test_each_wrong_signature_gets_its_code_and_blocks_no_other(unsigned):
    other = unsigned.agreement.model_copy(update={"purpose": "another"})
    unsigned.sign("east", of=other)
    unsigned.sign("north")
    text = (unsigned.inbox / "north.sig").read_text()
    (unsigned.inbox / "south.sig").write_text(text.replace('"north"', '"south"'))
    (unsigned.inbox / "x.sig").write_text(text.replace('"north"', '"stranger"'))
    (unsigned.inbox / "cut.sig").write_text(text[:60])
    (unsigned.inbox / "north.pub").write_text(unsigned.made.identities["north"].public.text())
    assert verdicts(unsigned.receive()) == {
        "cut.sig": "CB801",
        "east.sig": "CB804",
        "north.pub": "passed over",
        "north.sig": "accepted",
        "south.sig": "CB802",
        "x.sig": "CB802",
    }


def test_a_signature_beside_the_agreement_that_cannot_be_read_blocks_no_command(unsigned):
    unsigned.path.with_name("cut.sig").write_text('{"format":"cobasis/signature/1"}')
    unsigned.sign(*EVERYBODY)
    assert unsigned.receive().sealed is not None


def test_a_text_that_is_edited_before_all_have_signed_begins_anew(unsigned):
    unsigned.sign("north", "south")
    unsigned.receive()
    text = unsigned.path.read_text()
    unsigned.path.write_text(text.replace('"a test"', '"a better test"'))
    unsigned.agreement = read_agreement(unsigned.path).agreement
    found = unsigned.receive()
    assert verdicts(found) == dict.fromkeys(("north.sig", "south.sig"), "CB804")
    assert (found.agreed, unsigned.news.agreed) == ((), ())
    unsigned.sign(*EVERYBODY)
    assert unsigned.receive().sealed is not None


def test_a_sealed_agreement_that_came_is_taken_for_its_signatures(unsigned, tmp_path):
    place = tmp_path / "north"
    place.mkdir()
    mine = place / "icu.toml"
    mine.write_bytes(unsigned.path.read_bytes())
    unsigned.sign(*EVERYBODY, to=place)
    found = seal_only(mine, [])
    assert (found.sealed, found.news) == (place / "icu.sealed.toml", None)
    found.sealed.replace(unsigned.inbox / "icu.sealed.toml")
    found = unsigned.receive()
    assert verdicts(found) == {"icu.sealed.toml": "accepted"}
    assert found.sealed.exists()


def test_a_party_seals_with_signatures_only_once_all_are_there(unsigned):
    unsigned.sign("north", "lab", "south")
    found = seal_only(unsigned.path, [unsigned.inbox])
    assert (found.sealed, found.unsigned) == (None, ("east", "west"))
    assert not unsigned.path.with_name("icu.round").exists()
    unsigned.sign("east", "west")
    assert seal_only(unsigned.path, [unsigned.inbox]).sealed is not None


def test_killed_anywhere_the_same_command_seals(tmp_path):
    like = real_round(tmp_path)
    for number in count(1, 4):  # the slow tests under fault take each
        folder = tmp_path / str(number)
        folder.mkdir()
        one = Unsigned(folder, like)
        one.sign(*EVERYBODY)
        if not died(dying_after, number, one.receive):
            break
        found = one.receive()
        assert (set(found.agreed), found.sealed is not None) == (set(EVERYBODY), True)
        events = [
            each.event for each in verify_transcript(folder / "icu.round/transcript.jsonl").entries
        ]
        assert [event for event in events if event != "repaired"] == ["opened"] + ["agreed"] * 5
    assert number > 30
