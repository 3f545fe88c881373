"""Wrong input at the doors and the code it ends in, where no other test states which.

What `Party` and `Analyst` refuse stands in tests/protocol; files, in tests/under_fault. Lines for
the command line stand in refusals.json alone: one that is added there is measured like the others.
"""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cobasis import simulate
from cobasis.cli.main import app
from cobasis.errors import CobasisError
from party_side.sites import consortium
from protocol.consortium import NAMES, tables

RECORDED = Path(__file__).with_suffix(".json")
ODD = {
    "one row": lambda X, y: (X[:1], y[:1]),
    "no row": lambda X, y: (X[:0], y[:0]),
    "a constant column": lambda X, y: (np.where(np.arange(X.shape[1]) == 1, 1.0, X), y),
    "only zeros": lambda X, y: (0 * X, y),
    "one class": lambda X, y: (X, 0 * y),
}


def code(call):
    try:
        call()
    except CobasisError as error:
        return f"{error.code}, exit {error.exit_code}"
    return "accepted"


def simulated(change, parties=("west",), **options):
    """What a round ends in, after rows of some parties were changed."""
    rows = {name: change(*it) if name in parties else it for name, it in tables().items()}
    told = {"n_components": 3, "model": "ridge", **options}
    return code(lambda: simulate(rows, rng=np.random.default_rng(0), **told))


def at_simulate():
    found = {}
    for kind, change in ODD.items():
        for basis in ("svd", "pca", "lpp", "haar", "consensus"):
            found[f"{kind}, at one party, {basis}"] = simulated(change, basis=basis)
        for model in ("ridge", "logistic", "rff", "boosted_trees"):
            with_all = {"parties": NAMES, "basis": "haar", "model": model}
            found[f"{kind}, at all, {model}"] = simulated(change, **with_all)
    return found


def at_command_line():
    """Each line, typed in the folder of a round that everybody signed and nobody began."""
    found, typist = {}, CliRunner()
    with pytest.MonkeyPatch.context() as patch:
        site = consortium(Path.cwd(), patch)
        for name in ("north", "lab"):
            (site.home(name) / "keys").mkdir(parents=True)
            (site.home(name) / "keys" / f"{name}.key").touch()
        site.table("north")
        Path("passphrase").touch(mode=0o600)
        for name, text in (
            ("passphrase", "horse"),
            ("junk", "junk"),
            ("0.csv", ""),
            ("1.csv", ",\n1"),
        ):
            Path(name).write_text(text, encoding="utf-8")
        for line in json.loads(RECORDED.read_text(encoding="utf-8"))["command line"]:
            who, words = line.split(": ")
            told = {"COBASIS_HOME": str(site.home(who)), "COBASIS_PASSPHRASE_FILE": "passphrase"}
            done = typist.invoke(app, shlex.split(words), env=told)
            codes = re.findall(r"CB\d{3}", done.output) or ["no code"]
            crash = isinstance(done.exception, Exception)
            found[line] = repr(done.exception) if crash else f"{codes[-1]}, exit {done.exit_code}"
    return found


DOORS = {"simulate": at_simulate, "command line": at_command_line}
