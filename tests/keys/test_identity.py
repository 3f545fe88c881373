import json
import os
import re
import stat

import pyrage
import pytest

from cobasis.cli.options import Home
from cobasis.errors import DiskError, IdentityError, PassphraseError, SealError
from cobasis.keys.identity import (
    Identity,
    enrolled_key,
    key_path,
    load_identity,
    names,
    save_identity,
)
from cobasis.protocol.enrolment import PublicIdentity, Succession
from keys.quick import under_passphrase

NORTH, SOUTH = Identity.new("north"), Identity.new("south")
NEW = Identity.new("north", before=(NORTH,))
NEWEST = Identity.new("north", before=(NEW, *NEW.before))
WORDS = "correct horse battery"
FIELDS = {
    "format": "cobasis/key/1",
    "name": "north",
    "role": "party",
    "signing_key": NORTH._signing.private_bytes_raw().hex(),
    "age_key": str(NORTH._age),
}
SECRETS = (WORDS, FIELDS["signing_key"], FIELDS["age_key"])


def test_what_it_keeps_for_itself_comes_back_to_it_alone_undamaged_and_made_by_itself():
    """The public half is enough to seal for somebody; it is not enough to be them."""
    basis = b"a basis that the enemy knows"
    sealed = NORTH.seal_for_self(basis)
    assert NORTH.unseal_own(sealed) == basis
    with pytest.raises(SealError, match="sealed for another key"):
        SOUTH.unseal_own(sealed)
    for at in range(0, len(sealed), 7):
        with pytest.raises(SealError):
            NORTH.unseal_own(sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :])
    recipient = pyrage.x25519.Recipient.from_str(NORTH.public.recipient)
    signed = SOUTH.sign(b"cobasis/own/1\0" + basis)
    for forged in (basis, signed + basis, NORTH.sign(basis) + basis):
        with pytest.raises(SealError, match="'north' is sealed for them, and was not made by them"):
            NORTH.unseal_own(pyrage.encrypt(forged, [recipient]))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "north.key"


def by_hand(path, text=None, **changes):
    plain = json.dumps({**FIELDS, **changes}).encode() if text is None else text
    path.write_bytes(under_passphrase(plain, WORDS))
    path.chmod(0o600)
    return path


def refused(path, error, words, passphrase=WORDS):
    with pytest.raises(error, match=words) as found:
        load_identity(path, passphrase=passphrase)
    shown = f"{found.value}{found.value.args!r}"
    assert not [secret for secret in (*SECRETS, passphrase) if secret in shown]


def test_a_key_is_kept_as_age_does_and_a_newer_one_does_what_the_ones_before_did(path):
    """The one test that takes the passphrase's two seconds."""
    save_identity(NEWEST, path, passphrase=WORDS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    data, sealed = path.read_bytes(), NORTH.seal_for_self(b"kept")
    assert data.startswith(b"age-encryption.org/v1\n-> scrypt ")
    assert not [secret for secret in (*SECRETS, "north") if secret.encode() in data]
    again = load_identity(path, passphrase=WORDS)
    for each in (NORTH, NEW, NEWEST):
        assert enrolled_key(again, each.public).public == each.public
        assert enrolled_key(again, each.public).sign(b"x") == each.sign(b"x")
    assert again.unseal_own(sealed) == b"kept"
    with pytest.raises(SealError):
        NORTH.unseal_own(NEWEST.seal_for_self(b"kept"))
    with pytest.raises(IdentityError, match="not the one that is enrolled"):
        enrolled_key(NORTH, NEW.public)


def test_another_passphrase_is_refused_and_so_is_none(path):
    by_hand(path)  # from age's specification
    assert load_identity(path, passphrase=WORDS).public == NORTH.public
    for passphrase in ("correct horse batteri", "Correct horse battery", "\t\t", "x" * 10_000):
        refused(path, PassphraseError, "not opened by this passphrase", passphrase)
    path.unlink()
    with pytest.raises(PassphraseError, match="empty passphrase"):
        save_identity(NORTH, path, passphrase="")
    refused(path, IdentityError, "No such file or directory.*cobasis key new")
    path.mkdir()
    refused(path, IdentityError, "no key to be read")


def test_a_key_is_never_written_over_and_refused_where_others_may_read_it(path, monkeypatch):
    monkeypatch.setattr(pyrage.passphrase, "encrypt", under_passphrase)
    for there in (lambda: path.write_bytes(b"old"), lambda: path.symlink_to("nowhere")):
        there()
        with pytest.raises(IdentityError, match="never written over"):
            save_identity(NORTH, path, passphrase=WORDS)
        path.unlink()
    by_hand(path)
    for mode in (0o640, 0o604, 0o620, 0o666):
        path.chmod(mode)
        refused(path, IdentityError, f"has mode {mode:04o}")
    path.chmod(0o400)
    assert load_identity(path, passphrase=WORDS).public == NORTH.public


def test_a_damaged_key_is_refused_and_one_that_takes_long_is_tried_again(path, monkeypatch):
    pauses, whole = [], by_hand(path).read_bytes()
    for at in [*range(0, len(whole), 11), len(whole) - 1]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises((IdentityError, PassphraseError)):
            load_identity(path, passphrase=WORDS)
    for data in (b"", whole[:20], whole[:150], whole[:-1], bytes(2**20)):
        path.write_bytes(data)
        refused(path, IdentityError, "is damaged")
    monkeypatch.setattr("cobasis.keys.identity.time.sleep", pauses.append)
    path.write_bytes(re.sub(rb" \d+\n", b" 40\n", whole, count=1))  # 2^40 steps of work
    refused(path, IdentityError, "type the same command again when the machine has less to do")
    assert len(pauses) == 3
    odd = [{"text": text} for text in (b"AGE-SECRET-KEY-1 of another program", b"[]", b"\xff")]
    odd += [{"signing_key": "00"}, {"signing_key": None}]
    odd += [{"format": "cobasis/key/2"}, {"age_key": "AGE-SECRET-KEY-1QQQ"}]
    for changes in odd:  # under the right passphrase
        refused(by_hand(path, **changes), IdentityError, "is damaged, or no key")


def test_the_home_is_what_is_given_or_in_the_persons_own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home().folder() == tmp_path / ".cobasis"
    assert Home(home=tmp_path / "given").folder() == tmp_path / "given"
    assert stat.S_IMODE((tmp_path / "given").stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(DiskError, match="cannot be made"):
        Home(home=tmp_path / "file").folder()
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user by number alone
    with pytest.raises(IdentityError, match="--home, or in COBASIS_HOME"):
        Home().folder()


def test_a_key_has_its_place_and_no_name_leads_elsewhere(tmp_path):
    path = key_path(tmp_path, "north")
    assert path == tmp_path / "keys" / "north.key"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for name in ("south", "north.east"):
        key_path(tmp_path, name).touch()
    (tmp_path / "keys" / "notes.txt").touch()
    assert names(tmp_path) == ("north.east", "south")
    for name in ("", "..", "../x", "/etc/passwd", "a/b", ".a", "a\n", "x" * 101):
        with pytest.raises(IdentityError, match="no identity's name"):
            key_path(tmp_path, name)


def test_only_a_key_of_the_same_name_and_role_vouches_and_for_one_key_alone():
    word = Succession.from_text(NEWEST.succession.text())
    for known in (NORTH, NEW):
        assert word.vouches(known.public, NEWEST.public)
    lab = PublicIdentity(**{**NEWEST.public.model_dump(), "role": "analyst"})
    for known, new in ((SOUTH, NEWEST), (NORTH, SOUTH), (NORTH, NEW), (NEWEST, NEWEST)):
        assert not word.vouches(known.public, new.public)
    assert not word.vouches(NORTH.public, lab)
    told = dict.fromkeys(word.signatures, "0" * 128)
    assert not word.model_copy(update={"signatures": told}).vouches(NORTH.public, NEWEST.public)
