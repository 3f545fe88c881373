"""A key file: encrypted, for its owner only, never written over, and clear about what is wrong."""

import json
import stat

import pytest

from cobasis.errors import CobasisError, DiskError, IdentityError, PassphraseError
from cobasis.keys.identity import Identity, load_identity, save_identity
from keys.age_by_hand import under_passphrase

WORDS = "correct horse battery"
NORTH = Identity.new("north")
FIELDS = {
    "format": "cobasis/key/1",
    "name": "north",
    "role": "party",
    "signing_key": NORTH._signing.private_bytes_raw().hex(),
    "age_key": str(NORTH._age),
}
SECRETS = (WORDS, FIELDS["signing_key"], FIELDS["age_key"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "north.key"


def by_hand(path, text=None, **changes):
    """A key file that is quick to open."""
    plain = json.dumps({**FIELDS, **changes}).encode() if text is None else text
    path.write_bytes(under_passphrase(plain, WORDS))
    path.chmod(0o600)
    return path


def refused(path, error, words, passphrase=WORDS):
    with pytest.raises(error, match=words) as found:
        load_identity(path, passphrase=passphrase)
    shown = f"{found.value}{found.value.args!r}"
    assert not [secret for secret in (*SECRETS, passphrase) if secret in shown]


def test_a_key_is_kept_and_comes_back_the_same(path):
    save_identity(NORTH, path, passphrase=WORDS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["north.key"]
    data = path.read_bytes()
    assert data.startswith(b"age-encryption.org/v1\n-> scrypt ")
    assert not [secret for secret in (*SECRETS, "north") if secret.encode() in data]
    again = load_identity(path, passphrase=WORDS)
    assert again.public == NORTH.public
    assert again.unseal_own(NORTH.seal_for_self(b"kept")) == b"kept"


def test_a_key_file_that_was_written_from_ages_specification_is_read(path):
    assert load_identity(by_hand(path), passphrase=WORDS).public == NORTH.public


def test_another_passphrase_is_refused(path):
    by_hand(path)
    for passphrase in ("correct horse batteri", "Correct horse battery", "\t\t", "x" * 10_000):
        refused(path, PassphraseError, "not opened by this passphrase", passphrase)


def test_an_empty_passphrase_is_refused(path):
    with pytest.raises(PassphraseError, match="empty passphrase"):
        save_identity(NORTH, path, passphrase="")
    assert not path.exists()


def test_a_key_is_never_written_over(path):
    for there in (lambda: path.write_bytes(b"old"), lambda: path.symlink_to("nowhere")):
        there()
        with pytest.raises(IdentityError, match="never written over"):
            save_identity(NORTH, path, passphrase=WORDS)
        path.unlink()


def test_a_key_that_others_may_read_is_refused(path):
    by_hand(path)
    for mode in (0o640, 0o604, 0o620, 0o666):
        path.chmod(mode)
        refused(path, IdentityError, f"has mode {mode:04o}")
    path.chmod(0o400)
    assert load_identity(path, passphrase=WORDS).public == NORTH.public


def test_a_missing_key_is_refused_with_what_to_do(path):
    refused(path, IdentityError, "No such file or directory.*cobasis key new")
    path.mkdir()
    refused(path, IdentityError, "no key to be read")


def test_a_damaged_key_is_refused(path):
    whole = by_hand(path).read_bytes()
    for at in [*range(0, len(whole), 11), len(whole) - 1]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CobasisError) as found:
            load_identity(path, passphrase=WORDS)
        assert isinstance(found.value, IdentityError | PassphraseError)
    for length in (0, 20, 150, len(whole) - 1):
        path.write_bytes(whole[:length])
        refused(path, IdentityError, "is damaged")
    path.write_bytes(bytes(2**20))
    refused(path, IdentityError, "is damaged")


@pytest.mark.parametrize(
    "changes",
    [
        {"text": b"AGE-SECRET-KEY-1 of another program"},
        {"text": b"[]"},
        {"text": b"\xff"},
        {"format": "cobasis/key/2"},
        {"signing_key": "00"},
        {"signing_key": None},
        {"age_key": "AGE-SECRET-KEY-1QQQ"},
    ],
)
def test_what_is_no_key_of_ours_under_the_right_passphrase_is_refused(path, changes):
    refused(by_hand(path, **changes), IdentityError, "is damaged, or no key")


def test_a_full_disk_leaves_no_key(path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Identity, "encrypted", lambda *_: b"sealed")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(DiskError, match="No space left"):
            save_identity(NORTH, path, passphrase=WORDS)
    assert list(path.parent.iterdir()) == []
