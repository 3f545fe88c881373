"""Code on the analyst's side cannot reach a secret: the contract holds, and it bites."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from copy import deepcopy
from pathlib import Path

import grimp
import pytest
from importlinter.configuration import configure
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.protected import ProtectedContract

ROOT = Path(__file__).parents[2]
TO_SECRETS = "The analyst's side has no path to a secret"
SERVED = "What the world can reach opens nothing"
VAULTED = "Only the vault turns a secret into bytes"
ANALYSTS = {
    *("protocol.analyst", "protocol.sums", "protocol.totals", "protocol.messages"),
    *("protocol.vertical", "bundle", "analyst_side", "transport.worker"),
}
SECRETS = {
    *("protocol.secrets", "protocol.party", "protocol.projection", "protocol.plaintext"),
    *("protocol.masks", "protocol.sums_party"),
    *("tables", "vault", "party_side"),
}


def named(name):
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return next(each for each in settings["contracts"] if each["name"] == name)


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("cobasis", cache_dir=None)


def is_kept(name, graph):
    configure()
    contract = named(name)
    kind = {"forbidden": ForbiddenContract, "protected": ProtectedContract}[contract["type"]]
    made = kind(
        name=name, session_options={"root_packages": ["cobasis"]}, contract_options=contract
    )
    return made.check(graph, verbose=False).kept


def test_the_contract_names_both_sides_and_holds_while_parties_do_reach_secrets(graph):
    contract = named(TO_SECRETS)
    assert set(contract["source_modules"]) >= {f"cobasis.{name}" for name in ANALYSTS}
    assert set(contract["forbidden_modules"]) >= {f"cobasis.{name}" for name in SECRETS}
    assert not {"allow_indirect_imports", "ignore_imports"} & set(contract)
    for each in (TO_SECRETS, SERVED, VAULTED):
        assert is_kept(each, graph)
    for importer in ("protocol.party", "protocol.round", "tables"):
        assert graph.find_shortest_chain(
            f"cobasis.{importer}", "cobasis.protocol.secrets", as_packages=True
        )


MUTANTS = {  # who would import what
    TO_SECRETS: [
        ("protocol.analyst", "protocol.secrets"),
        ("protocol.analyst", "protocol.party"),
        ("protocol.messages", "protocol.secrets"),
        ("protocol.refusals", "protocol.secrets"),
        ("protocol.analyst", "protocol.masks"),
        ("protocol.training", "protocol.secrets"),
        ("bundle.uploads", "protocol.secrets"),
        ("bundle.folders", "protocol.projection"),
        ("analyst_side.passes", "tables.sources"),
        ("analyst_side.receive", "vault.vault"),
        ("transport.worker", "party_side.session"),
        ("analyst_side.membership", "protocol.plaintext"),
    ],
    SERVED: [
        ("transport.server", "keys.identity"),
        ("transport.inbox", "bundle.envelope"),
        ("transport.wire", "bundle.seal"),
        ("transport.server", "transport.worker"),
        ("bundle.agreement_file", "analyst_side.session"),
    ],
    VAULTED: [("tables.table", "protocol.plaintext")],
}


@pytest.mark.parametrize(
    ("name", "importer", "imported"), [(x, *pair) for x, pairs in MUTANTS.items() for pair in pairs]
)
def test_a_package_that_reaches_a_secret_breaks_its_contract(graph, name, importer, imported):
    mutated, both = deepcopy(graph), {f"cobasis.{importer}", f"cobasis.{imported}"}
    assert both <= mutated.modules
    mutated.add_import(importer=f"cobasis.{importer}", imported=f"cobasis.{imported}")
    assert not is_kept(name, mutated)


def test_an_import_inside_a_function_breaks_it_on_the_command_line_too(tmp_path):
    copied = tmp_path / "src" / "cobasis"
    shutil.copytree(ROOT / "src" / "cobasis", copied, ignore=shutil.ignore_patterns("__pycache__"))
    with (copied / "protocol" / "training.py").open("a") as file:
        file.write("\ndef f():\n    import cobasis.protocol.secrets\n")
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", script, "--config", str(ROOT / "pyproject.toml"), "--no-cache"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "120"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{TO_SECRETS} BROKEN" in done.stdout
    assert "cobasis.protocol.training -> cobasis.protocol.secrets" in done.stdout


@pytest.mark.parametrize("package", ["analyst_side", "bundle", "protocol"])
def test_no_module_of_ours_is_loaded_by_its_name_which_no_contract_sees(package):
    """`import_module("cobasis.vault.vault")` at the analyst kept all contracts."""
    texts = [path.read_text() for path in (ROOT / "src" / "cobasis" / package).rglob("*.py")]
    ways = [each for text in texts for each in re.findall(r"\w*import_module\(.*", text)]
    assert ways == ['import_module("distributed")'] * (package == "analyst_side")
    assert not any(re.search(r"__import__|sys\.modules|exec\(|eval\(", text) for text in texts)
