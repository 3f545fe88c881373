"""``cobasis key`` as people type it, and what every command of a party's has."""

import os
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

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


def test_every_command_has_an_example_in_its_help():
    groups = get_command(app).commands
    commands = {**groups["party"].commands, **groups["key"].commands}
    assert {"join", "check", "propose", "adopt", "prepare", "accept", "predict", "export"} <= set(
        commands
    )
    for name, command in commands.items():
        assert f" {name} " in command.help.splitlines()[-1], name
        assert command.help.splitlines()[-1].startswith("Example: cobasis "), name


def test_a_key_is_made_shown_and_used_as_typed(tmp_path):
    """The one test that really types: three processes and a passphrase file."""
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
        )

    made = typed("key", "new", "west")
    assert made.returncode == 0, made.stderr
    key = tmp_path / "fresh" / "keys" / "west.key"
    assert key.stat().st_mode & 0o777 == 0o600
    shown = typed("key", "show", "west")
    public = PublicIdentity.from_text(shown.stdout)
    assert public.name == "west"
    assert public.fingerprint in made.stdout
    words = (str(agreed(tmp_path)), "data.csv")
    refused = typed("party", "check", *words)
    assert refused.returncode == 2
    assert "[CB702]" in refused.stderr
