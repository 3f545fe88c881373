"""Write ``reference/command-line.md`` from what ``--help`` says; a test compares the two.

Run it after changing a command: ``python docs/make_cli_reference.py``.
"""

# ruff: noqa: INP001 -- a script, not a package

import os
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "reference" / "command-line.md"

COMMANDS = [(), ("demo",)]

PLAIN = {
    "COLUMNS": "80",
    "LINES": "24",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "TYPER_USE_RICH": "0",
    "PYTHONUTF8": "1",
}
"""What the terminal is told to be, so that every machine prints the same."""

HEAD = """# Command line

Written by `docs/make_cli_reference.py` from what `--help` says.

`./run.sh demo ...` in a checkout is `cobasis demo ...`, with the set-up done first. An error is one
message with a [code](../errors/index.md). The exit code is 2 where something on this side is to be
changed, and 3 where another side is to change what it sent.
"""


def help_of(command: tuple[str, ...]) -> str:
    """Return what ``cobasis COMMAND --help`` prints on a plain terminal of 80 columns."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_COLOR")}
    done = subprocess.run(  # noqa: S603 -- our own command
        [Path(sys.executable).with_name("cobasis"), *command, "--help"],
        env={**environment, **PLAIN},
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for command in COMMANDS:
        name = " ".join(("cobasis", *command))
        parts.append(f"## `{name}`\n\n```text\n{help_of(command)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
