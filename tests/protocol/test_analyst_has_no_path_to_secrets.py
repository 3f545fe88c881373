"""Code on the analyst's side cannot reach a secret: the contract holds, and it bites."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
CONTRACT = "The analyst's side has no path to a secret"
ANALYSTS = (
    "cobasis.protocol.analyst",
    "cobasis.protocol.messages",
    "cobasis.protocol.refusals",
    "cobasis.protocol.aligned",
    "cobasis.protocol.vertical",
    "cobasis.bundle",
    "cobasis.analyst_side",
)
"""Packages stand for every module in them."""

SECRETS = (
    "cobasis.protocol.secrets",
    "cobasis.protocol.party",
    "cobasis.protocol.projection",
    "cobasis.protocol.plaintext",
    "cobasis.tables",
    "cobasis.vault",
    "cobasis.party_side",
)


@pytest.fixture(scope="module")
def graph():
    return grimp.build_graph("cobasis", cache_dir=None)


@pytest.mark.parametrize("analysts", ANALYSTS)
@pytest.mark.parametrize("secret", SECRETS)
def test_no_chain_of_imports_leads_from_the_analyst_to_a_secret(graph, analysts, secret):
    chain = graph.find_shortest_chain(importer=analysts, imported=secret, as_packages=True)
    assert chain is None


def test_the_graph_shows_the_chains_that_do_exist(graph):
    """Positive control: the party's side and the round do reach secrets."""
    for importer in ("cobasis.protocol.party", "cobasis.protocol.round", "cobasis.tables"):
        chain = graph.find_shortest_chain(importer=importer, imported=SECRETS[0], as_packages=True)
        assert chain


def contract():
    """The project's own contract, as it stands in pyproject.toml."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return next(each for each in settings["contracts"] if each["name"] == CONTRACT)


def lint(package_parent, tmp_path):
    """Run import-linter with that one contract on a package that lies in `package_parent`."""
    chosen = contract()
    lines = ["[tool.importlinter]", 'root_package = "cobasis"', "[[tool.importlinter.contracts]]"]
    lines += [f"{key} = {value!r}" for key, value in chosen.items() if key != "name"]
    config = tmp_path / "contract.toml"
    config.write_text("\n".join([*lines, 'name = "no path to a secret"', ""]))
    script = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    command = [sys.executable, "-c", script, "--config", str(config), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(package_parent), "COLUMNS": "120"}
    return subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )


def test_the_contract_names_the_analysts_files_and_the_secrets():
    chosen = contract()
    helpers = {f"cobasis.protocol.{name}" for name in ("refusals", "aligned")}
    assert set(chosen["source_modules"]) >= set(ANALYSTS) - helpers  # which those two import
    assert set(chosen["forbidden_modules"]) >= set(SECRETS)
    assert "allow_indirect_imports" not in chosen
    assert "ignore_imports" not in chosen


MUTANTS = {
    "analyst imports secrets": ("protocol.analyst", "import cobasis.protocol.secrets"),
    "analyst imports the party": ("protocol.analyst", "from cobasis.protocol.party import Party"),
    "messages import secrets": ("protocol.messages", "import cobasis.protocol.secrets"),
    "a helper of the analyst does": ("protocol.refusals", "import cobasis.protocol.secrets"),
    "inside a function": ("protocol.aligned", "def f():\n    import cobasis.protocol.secrets"),
    "what reads bundles does": ("bundle.uploads", "import cobasis.protocol.secrets"),
    "what keeps fits does": ("bundle.folders", "from cobasis.protocol.projection import Sink"),
    "what passes over files reads tables": ("analyst_side.passes", "import cobasis.tables.sources"),
    "what receives opens a vault": ("analyst_side.receive", "import cobasis.vault.vault"),
    "what runs borrows from a party": ("analyst_side.run", "import cobasis.party_side.session"),
    "what removes turns secrets to bytes": (
        "analyst_side.membership",
        "import cobasis.protocol.plaintext",
    ),
}


def test_the_contract_holds_for_the_package_as_it_is(tmp_path):
    done = lint(ROOT / "src", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 kept, 0 broken" in done.stdout


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_package_whose_analyst_reaches_a_secret_breaks_the_contract(mutant, tmp_path):
    module, line = MUTANTS[mutant]
    copied = tmp_path / "src" / "cobasis"
    shutil.copytree(ROOT / "src" / "cobasis", copied, ignore=shutil.ignore_patterns("__pycache__"))
    with (copied / f"{module.replace('.', '/')}.py").open("a") as file:
        file.write(f"\n{line}\n")
    done = lint(tmp_path / "src", tmp_path)
    assert done.returncode == 1
    assert "0 kept, 1 broken" in done.stdout
    assert f"cobasis.{module} -> cobasis." in done.stdout
