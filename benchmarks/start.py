"""How long a fresh process waits for us, beside the libraries that we stand on."""

import os
import subprocess
import sys
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import goals
from benchmarks.timing import interleaved, ratio
from cobasis.cli.main import COMMANDS

ROUNDS, ROUNDS_QUICK = 15, 7
EMPTY = """
import typer
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
for name in {names}:
    app.command(name, help="Do what it is called, and say what was done.")(lambda: None)
app(["--help"])
"""
SCRIPTS = {
    "simulate": "from cobasis import simulate",
    "core": "from cobasis import Agreement, Analyst, Party, simulate",
    "libraries": "import numpy, scipy.linalg, pydantic",
    "help": "from cobasis.cli.main import app; app(['--help'])",
    "empty": EMPTY,
}


def measure(*, quick: bool) -> dict[str, Any]:
    names = list(COMMANDS)
    with TemporaryDirectory() as compiled:
        calls = {
            name: partial(fresh, script.replace("{names}", str(names)), compiled=compiled)
            for name, script in SCRIPTS.items()
        }
        times = interleaved(calls, rounds=ROUNDS_QUICK if quick else ROUNDS)
    imported, helped = ratio(times, "simulate", "libraries"), ratio(times, "help", "empty")
    core = ratio(times, "core", "libraries")
    beside = "from cobasis import simulate, beside import numpy, scipy.linalg, pydantic"
    empty = f"cobasis --help, beside an empty typer app with {len(names)} commands"
    return {
        "seconds": times,
        "simulate / libraries": imported,
        "core / libraries": core,
        "help / empty": helped,
        "goals": [
            goals.goal(beside, imported["median"], most=1.2, unit="x"),
            goals.goal("the same with Agreement, Party and Analyst", core["median"], unit="x"),
            goals.goal(empty, helped["median"], most=1.5, unit="x"),
        ],
    }


def fresh(script: str, *, compiled: str) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(  # noqa: S603 -- our own scripts
        [sys.executable, "-c", script],
        env=kept | {"PYTHONPYCACHEPREFIX": compiled},
        stdout=subprocess.DEVNULL,
        check=True,
    )
