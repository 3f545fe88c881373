"""Parties that come by a code: what passes the server, which must not be trusted with it."""

import re
from contextlib import chdir
from datetime import UTC, datetime, timedelta

import pytest

from cli.round_by_commands import Typed, write_table
from cobasis.errors import CertificateError, RequestError, UnreachableError
from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import moment_text
from cobasis.transport import client
from cobasis.transport.certificate import certificate_at, make_certificate, pin_of
from cobasis.transport.client import Post
from cobasis.transport.invites import Code
from cobasis.transport.mailbox import address_of, vouched
from transport import serving
from transport.serving import World, free_port

TERMS = f"{serving.TERMS} --n-components 3 --minimum-parties 2"
INVITED = ("south", "east")


class Meeting(World):
    """An author, an analyst who serves, and two parties of whom nobody has anything yet."""

    def __init__(self, root, monkeypatch):
        self.root, self.port, self.lab = root, free_port(), root / "lab"
        for name in ("north", *INVITED, "lab"):
            (root / name).mkdir(parents=True)
        self.typed = Typed(root, monkeypatch)
        self.typed("key new north", by="north")
        self.typed("key new lab --analyst", by="lab")
        for seed, name in enumerate(("public", "north", *INVITED)):
            write_table(root / f"{name}.csv", seed=seed)
        self.listed = self.lab / "icu.invites"
        self.invite(f"--analyst lab.pub --server https://localhost:{self.port} {TERMS}")
        self.certificate, self.key = make_certificate(self.lab / ".server")

    def invite(self, words="--yes"):
        asked = " ".join(f"--invite {name}" for name in INVITED)
        self.said = self.typed.json(f"agreement new icu.toml {asked} {words}")
        (self.root / "icu.invites").rename(self.listed)
        return self.said["invited"]

    def run_out(self):
        self.listed.write_text(re.sub('"until":"....', '"until":"2020', self.listed.read_text()))

    def code(self, name):
        return Code.of_words(self.said["invited"][name])

    def come(self, name, more="--wait 0", **options):
        words = f"go {self.said['invited'][name]} ../{name}.csv --yes --signed-by O {more}"
        with chdir(self.root / name):
            return self.typed(words, by=name, **options)

    def author(self, **options):
        return self.typed("agreement new icu.toml north.pub --yes", **options)


@pytest.fixture
def meeting(tmp_path, monkeypatch):
    made = Meeting(tmp_path, monkeypatch)
    made.worker().step()
    return made


def test_with_a_code_a_party_types_one_command_from_nothing_to_the_model(meeting):
    with meeting.serving(), meeting.working():
        assert "south, east did not come" in meeting.author(code=4).output
        for name in INVITED:
            found = meeting.come(name, code=4).output
            assert re.search("Its fingerprint:\n  [a-z]+( [a-z]+){7}\n", found)
            assert "the agreement is not there yet" in found
        # who took another's code has a key of that name, and its own code says who it is
        meeting.typed(f"go {meeting.said['invited']['south']} east.csv", by="east", code=3)
        assert "Nothing changed since" not in meeting.author().output
        assert "Nothing changed since" in meeting.author().output  # and brings it once more
        found = meeting.come("south", code=4)  # the analyst looks at it yet
        assert "waits for 'lab' to put this very agreement" in found.output
        (meeting.lab / "icu.toml").write_bytes((meeting.root / "icu.toml").read_bytes())
        meeting.typed("sign lab/icu.toml -o lab/lab.sig --yes", by="lab")
        north = "go icu.toml north.csv --yes --signed-by O --wait 0"
        meeting.typed(north, code=4)  # the author signs, and brings the secrets
        meeting.come("south", code=4)
        meeting.come("east", code=4)
        meeting.sealed()
        meeting.typed(north, code=4)
        meeting.come("south", code=4)
        assert "Everything has come back" in meeting.come("east", "--wait 30").output
        assert "Everything has come back" in meeting.typed(north).output


def test_of_what_the_server_puts_in_no_agreement_is_taken_and_no_secret_sealed_to_a_key(meeting):
    code = meeting.code("south")
    address, false = address_of(bytes.fromhex(code.token)), Identity.new("south")
    mail = meeting.lab / ".server" / "mail"
    with meeting.serving():
        for name in INVITED:
            meeting.come(name, code=4)
        put_in = vouched(bytes(16), b"round_id = 1", slot="agreement")
        (mail / f"{address}.agreement").write_bytes(put_in)
        assert "[CB802]" in meeting.come("south", code=3).output
        # whoever has the server knows the token's hash, and not the token
        put_in = vouched(address.encode(), false.public.text().encode(), slot="key")
        (mail / f"{address}.key").write_bytes(put_in)
        assert "[CB802]" in meeting.author(code=3).output
    assert not (meeting.root / "south" / "icu.toml").exists()
    assert not [*meeting.root.glob("*.secret")]


@pytest.mark.usefixtures("quickly")
def test_what_an_invitation_takes(meeting):
    code = meeting.code("south")
    stranger = Code(**{**code.model_dump(), "token": "00" * 16})
    with meeting.serving():
        with Post(stranger) as post:
            for slot in ("key", "agreement"):
                with pytest.raises(RequestError, match="no such invitation is open"):
                    post.fetch(slot)
        with Post(code) as post:
            address = address_of(bytes.fromhex(code.token))
            looked = post.ask("HEAD", f"{code.server}/invites/{address}/key")
            assert looked.status_code == 202  # and the slot is not taken by that
            with pytest.raises(RequestError, match=r"65,536 bytes of a key"):
                post.bring("key", bytes(2**16))
            post.bring("key", b"first")
            post.bring("key", b"first")
            with pytest.raises(RequestError, match="is there, and is another"):
                post.bring("key", b"second")
            for _ in range(6):  # and four above
                post.bring("key", b"first")
            with pytest.raises(RequestError, match="ten times in a minute"):
                post.bring("key", b"first")
            assert post.fetch("key") == b"first"


def test_a_code_holds_the_certificates_pin_and_takes_no_older_one(meeting):
    assert not meeting.code("south").pin
    with meeting.serving():
        assert "no pin" not in meeting.typed("agreement new icu.toml --invite south --yes").output
        (meeting.root / "icu.invites").replace(meeting.listed)
        meeting.said = meeting.typed.json("agreement new icu.toml --invite south --yes")
        (meeting.root / "icu.invites").replace(meeting.listed)
        shown, code = pin_of(certificate_at(meeting.certificate)), meeting.code("south")
        assert code.pin == shown
        with Post(code):
            pass
        later = code.model_copy(update={"pin": "0" * 64})
        with pytest.raises(CertificateError, match="none that 'lab'"):
            Post(later)
        earlier = moment_text(datetime.now(UTC) + timedelta(days=13))
        with Post(later.model_copy(update={"until": earlier})):  # one that was renewed since
            pass


def test_codes_that_ran_out_are_made_anew(meeting):
    stale = Code(**{**meeting.code("south").model_dump(), "until": "2020-01-01T00:00:00Z"})
    told = meeting.typed(f"go {stale.words()} south.csv", by="south", code=2)
    assert "was good until 2020-01-01T00:00:00Z. Ask the agreement's author" in told.output
    assert not [*meeting.root.rglob("south.key")]
    meeting.run_out()
    old = meeting.said["invited"]
    with meeting.serving():
        for found in (meeting.come("south", code=3), meeting.author(code=3)):
            assert "The author makes new codes" in " ".join(found.output.split())
        assert not {*old.values()} & {*meeting.invite().values()}
        for name in INVITED:
            assert "the agreement is not there yet" in meeting.come(name, code=4).output
        assert "Next: cobasis go icu.toml data.csv" in meeting.author().output


def test_an_agreement_that_is_edited_after_it_was_brought_goes_by_hand(meeting):
    agreed = meeting.root / "icu.toml"
    with meeting.serving():
        for name in INVITED:
            meeting.come(name, code=4)
        meeting.author()
        meeting.come("south", code=4)  # has the first text, and waits for it
        for days in (31, 61):
            text = agreed.read_text()
            agreed.write_text(re.sub("retention_days = .*", f"retention_days = {days}", text))
            told = " ".join(meeting.author().output.split())
            assert "does not bring this text to south, east" in told
            meeting.run_out()
        (meeting.lab / "icu.toml").write_bytes(agreed.read_bytes())
        meeting.typed("go icu.toml north.csv --yes --wait 0", code=4)
        for name in INVITED:
            (meeting.root / name / "icu.toml").write_bytes(agreed.read_bytes())
            assert "waits for everybody's signature" in meeting.come(name, code=4).output


def test_a_code_or_an_invitation_that_is_none_and_what_is_no_text_are_refused(meeting, monkeypatch):
    code = meeting.said["invited"]["south"]
    for wrong in (code[:-5], code[:20], code[:30] + "A" + code[31:]):
        meeting.typed.refused(f"go {wrong} south.csv", "this code is cut", by="south")
    meeting.typed.refused(f"agreement new x.toml --invite west {TERMS}", "--invite needs")
    for bad, why in (("s\u00fcd", "accent"), ("west wing", "accent"), ("north", "is here already")):
        server = f"--analyst lab.pub --server https://localhost:1 --invite '{bad}'"
        meeting.typed.refused(f"agreement new x.toml {server} {TERMS}", why)
    east = meeting.code("east")
    words = east.model_copy(update={"server": "http://localhost:1"}).words()
    meeting.typed.refused(f"go {words} east.csv", "this code is cut, or changed")
    monkeypatch.setattr(client, "_PAUSES", ())
    with pytest.raises(UnreachableError, match="IPv4"):
        Post(east.model_copy(update={"server": "https://999.1.1.1"}))
    with meeting.serving():
        with Post(meeting.code("south")) as post:
            post.bring("key", b"\xff")
        meeting.come("east", code=4)
        assert "under the invitation of 'south' came no key" in meeting.author(code=2).stderr
        with Post(east) as post:
            post.bring("agreement", b"a = 1\n\xff")
        assert "Invalid statement (at line 2" in meeting.come("east", code=2).stderr
