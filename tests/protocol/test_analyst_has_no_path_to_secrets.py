"""Code on the analyst's side cannot reach a secret: the contract holds, and it bites."""

import os
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
CONTRACT = "The analyst's side has no path to a secret"
ANALYSTS = {"protocol.analyst", "protocol.messages", "protocol.vertical", "bundle", "analyst_side"}
SECRETS = {
    *("protocol.secrets", "protocol.party", "protocol.projection", "protocol.plaintext"),
    *("protocol.masks", "protocol.sums_party"),
    *("tables", "vault", "party_side"),
}


def named(name):
    """One of the project's own contracts, as it stands in pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return next(each for each in settings["contracts"] if each["name"] == name)


@pytest.fixture(scope="module")
def contract():
    return named(CONTRACT)


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("cobasis", cache_dir=None)


def is_kept(contract, graph):
    configure()
    kind = {"forbidden": ForbiddenContract, "protected": ProtectedContract}[contract["type"]]
    options = {"root_packages": ["cobasis"]}
    made = kind(name=contract["name"], session_options=options, contract_options=contract)
    return made.check(graph, verbose=False).kept


def test_the_contract_names_both_sides_and_holds_while_parties_do_reach_secrets(contract, graph):
    assert set(contract["source_modules"]) >= {f"cobasis.{name}" for name in ANALYSTS}
    assert set(contract["forbidden_modules"]) >= {f"cobasis.{name}" for name in SECRETS}
    assert not {"allow_indirect_imports", "ignore_imports"} & set(contract)
    assert is_kept(contract, graph)
    for importer in ("protocol.party", "protocol.round", "tables"):
        assert graph.find_shortest_chain(
            f"cobasis.{importer}", "cobasis.protocol.secrets", as_packages=True
        )


MUTANTS = {
    "analyst imports secrets": ("protocol.analyst", "protocol.secrets"),
    "analyst imports the party": ("protocol.analyst", "protocol.party"),
    "messages import secrets": ("protocol.messages", "protocol.secrets"),
    "a helper of the analyst does": ("protocol.refusals", "protocol.secrets"),
    "what adds sums up has a mask key": ("protocol.analyst", "protocol.masks"),
    "aligned rows do": ("protocol.aligned", "protocol.secrets"),
    "what reads bundles does": ("bundle.uploads", "protocol.secrets"),
    "what keeps fits does": ("bundle.folders", "protocol.projection"),
    "what passes over files reads tables": ("analyst_side.passes", "tables.sources"),
    "what receives opens a vault": ("analyst_side.receive", "vault.vault"),
    "what runs borrows from a party": ("analyst_side.run", "party_side.session"),
    "what removes turns secrets to bytes": ("analyst_side.membership", "protocol.plaintext"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_package_whose_analyst_reaches_a_secret_breaks_the_contract(contract, graph, mutant):
    importer, imported = (f"cobasis.{name}" for name in MUTANTS[mutant])
    mutated = deepcopy(graph)
    assert {importer, imported} <= mutated.modules
    mutated.add_import(importer=importer, imported=imported)
    assert not is_kept(contract, mutated)


@pytest.mark.parametrize(
    "mutant",
    [
        ("transport.server", "keys.identity"),
        ("transport.inbox", "bundle.envelope"),
        ("transport.wire", "bundle.seal"),
        ("transport.server", "transport.worker"),
        ("bundle.agreement_file", "analyst_side.session"),
    ],
    ids=" imports ".join,
)
def test_a_server_that_reaches_a_key_breaks_its_contract(graph, mutant):
    contract, mutated = named("What the world can reach opens nothing"), deepcopy(graph)
    assert is_kept(contract, graph)
    importer, imported = (f"cobasis.{name}" for name in mutant)
    assert {importer, imported} <= mutated.modules
    mutated.add_import(importer=importer, imported=imported)
    assert not is_kept(contract, mutated)


def test_who_is_not_the_vault_turns_no_secret_into_bytes(graph):
    contract, mutated = named("Only the vault turns a secret into bytes"), deepcopy(graph)
    assert is_kept(contract, graph)
    mutated.add_import(importer="cobasis.tables.table", imported="cobasis.protocol.plaintext")
    assert not is_kept(contract, mutated)


def test_an_import_inside_a_function_breaks_it_on_the_command_line_too(contract, tmp_path):
    copied = tmp_path / "src" / "cobasis"
    shutil.copytree(ROOT / "src" / "cobasis", copied, ignore=shutil.ignore_patterns("__pycache__"))
    with (copied / "protocol" / "aligned.py").open("a") as file:
        file.write("\ndef f():\n    import cobasis.protocol.secrets\n")
    lines = ["[tool.importlinter]", 'root_package = "cobasis"', "[[tool.importlinter.contracts]]"]
    config = tmp_path / "contract.toml"
    config.write_text(
        "\n".join([*lines, *(f"{key} = {value!r}" for key, value in contract.items())])
    )
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", script, "--config", str(config), "--no-cache"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "COLUMNS": "120"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "0 kept, 1 broken" in done.stdout
    assert "cobasis.protocol.aligned -> cobasis.protocol.secrets" in done.stdout
