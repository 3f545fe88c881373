"""Write ``reference/command-line.md`` from what ``--help`` says; a test compares the two.

Run it after changing a command: ``python docs/make_cli_reference.py``.
"""

# ruff: noqa: INP001 -- a script, not a package

import json
import os
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "reference" / "command-line.md"

PLAIN = {
    "COLUMNS": "80",
    "LINES": "24",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PYTHONUTF8": "1",
}
"""What the terminal is told to be, so that every machine prints the same."""

HEAD = """# Command line

Written by `docs/make_cli_reference.py` from what `--help` says.

`./run.sh demo ...` in a checkout is `cobasis demo ...`, with the set-up done first. An error is one
message with a [code](../errors/index.md). The exit code is 2 where something on this side is to be
changed, 3 where another side is to change what it sent, and 4 where others' files have to come
first.
"""


ASK = """
import json, sys
import typer
from typer.testing import CliRunner
from cobasis.cli.main import COMMANDS, app

whole, names = typer.main.get_command(app), [[]]
for name in COMMANDS:
    _, command, _ = whole.resolve_command(None, [name])
    names += [[name], *([name, word] for word in getattr(command, "commands", ()))]
ask = CliRunner()
said = {
    " ".join(("cobasis", *name)): ask.invoke(app, [*name, "--help"], prog_name="cobasis").stdout
    for name in names
}
json.dump(said, sys.stdout)
"""
"""Run in a process of its own, which takes the terminal to be plain from its start."""


def helps() -> dict[str, str]:
    """Return what ``cobasis ... --help`` prints, for every command, on 80 plain columns."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_COLOR")}
    done = subprocess.run(  # noqa: S603 -- our own command
        [sys.executable, "-c", ASK],
        env={**environment, **PLAIN},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    said: dict[str, str] = json.loads(done.stdout)
    return said


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for name, text in helps().items():
        lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
        parts.append(f"## `{name}`\n\n```text\n{lines}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
