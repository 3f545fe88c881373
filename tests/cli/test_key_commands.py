"""``cobasis key`` as people type it."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cli.round_by_commands import Typed
from cobasis.cli.main import app
from cobasis.protocol.enrolment import PublicIdentity
from party_side.sites import agreed


def test_without_a_terminal_or_a_file_there_is_no_passphrase(tmp_path, monkeypatch):
    monkeypatch.delenv("COBASIS_PASSPHRASE_FILE", raising=False)
    done = CliRunner().invoke(app, ["key", "new", "north", "--home", str(tmp_path / "home")])
    assert done.exit_code == 2
    assert "[CB701]" in done.stderr


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_passphrase_file_that_others_can_read_or_change_is_refused_as_ssh_does(tmp_path, mode):
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse battery staple\n", encoding="utf-8")
    secret.chmod(mode)
    words = ["--home", str(tmp_path / "home"), "--passphrase-file", str(secret)]
    done = CliRunner().invoke(app, ["key", "new", "north", *words])
    assert done.exit_code == 2
    assert "[CB701]" in done.stderr
    assert f"has mode {mode:04o}" in done.stderr
    assert "correct horse" not in done.output
    assert not (tmp_path / "home" / "keys" / "north.key").exists()


def test_a_key_is_made_and_used_as_typed(tmp_path):
    """The one test that really types: two processes and a passphrase file."""
    secret = tmp_path / "passphrase"
    secret.write_text("correct horse battery staple\n", encoding="utf-8")
    secret.chmod(0o600)
    told = {"COBASIS_HOME": str(tmp_path / "fresh"), "COBASIS_PASSPHRASE_FILE": str(secret)}

    def typed(*words):
        return subprocess.run(
            [sys.executable, "-m", "cobasis", *words],
            env={**os.environ, **told},
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    made = typed("key", "new", "west")
    assert made.returncode == 0, made.stderr
    key = tmp_path / "fresh" / "keys" / "west.key"
    assert key.stat().st_mode & 0o777 == 0o600
    public = PublicIdentity.from_text((tmp_path / "west.pub").read_text(encoding="utf-8"))
    assert (public.name, public.role) == ("west", "party")
    assert public.fingerprint in made.stdout
    refused = typed("sign", str(agreed(tmp_path)))
    assert refused.returncode == 2
    assert "[CB304]" in refused.stderr


@pytest.fixture
def cobasis(tmp_path, monkeypatch):
    return Typed(tmp_path, monkeypatch)


def test_a_public_half_says_its_role(cobasis):
    for words, role in (("key new north", "party"), ("key new lab --analyst", "analyst")):
        found = cobasis.json(words)
        public = PublicIdentity.from_text((cobasis.folder / found["path"]).read_text())
        assert public.role == found["role"] == role
        assert public.fingerprint == found["fingerprint"]


def test_a_key_that_is_there_stays_as_it_is_and_its_public_half_is_written_again(cobasis):
    cobasis("key new north")
    pub, key = cobasis.folder / "north.pub", cobasis.folder / "home-north/keys/north.key"
    before = pub.read_bytes(), key.read_bytes()
    pub.unlink()
    assert "was there" in cobasis("key new north").stdout
    assert (pub.read_bytes(), key.read_bytes()) == before
    told = cobasis("key new north --analyst", code=2).stderr
    assert "its role is party, not analyst" in told
    assert "[CB702]" in told


def test_a_file_in_the_way_is_refused_before_a_key_is_made(cobasis):
    (cobasis.folder / "north.pub").write_text("another's\n")
    assert "[CB601]" in cobasis("key new north", code=2).stderr
    assert not (cobasis.folder / "home-north/keys/north.key").exists()
    (cobasis.folder / "north.pub").unlink()
    cobasis("key new north")
    (cobasis.folder / "north.pub").write_text("another's\n")
    assert "[CB601]" in cobasis("key new north", code=2).stderr
    assert (cobasis.folder / "north.pub").read_text() == "another's\n"
