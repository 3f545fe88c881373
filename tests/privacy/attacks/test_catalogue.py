"""Every attack stands in the catalogue, with a class, a test, and a line of the threat model."""

import ast
import importlib
import inspect
import pkgutil
import runpy
from pathlib import Path
from typing import get_args

import pytest

import cobasis.privacy.attacks
from cobasis.privacy.attacks.catalogue import CATALOGUE, Entry, Role
from cobasis.privacy.attacks.not_tested import NOT_TESTED

ROOT = Path(__file__).parents[3]
NO_ATTACKS = {
    "attribute.Inferred",
    "not_tested.NotTested",
    "catalogue.Entry",
    "known_records.FewestKnown",
    "linkage.Links",
    "matching.Clouds",
    "release.Attack",
    "release.Recovered",
    "release.Release",
    "scoring.Content",
    "scoring.Decision",
    "scoring.Share",
    "structure.Structure",
}
"""What attacks take and return."""


def classes():
    """Every public class of the package, by module and name."""
    for found in pkgutil.iter_modules(cobasis.privacy.attacks.__path__):
        module = importlib.import_module(f"cobasis.privacy.attacks.{found.name}")
        for name, each in vars(module).items():
            own = inspect.isclass(each) and each.__module__ == module.__name__
            if own and not name.startswith("_"):
                yield f"{found.name}.{name}"


def test_every_class_is_an_attack_of_the_catalogue_or_what_attacks_work_on():
    listed = {entry.attack.removeprefix("cobasis.privacy.attacks.") for entry in CATALOGUE}
    assert set(classes()) == listed | NO_ATTACKS
    assert not listed & NO_ATTACKS
    assert len(listed) == len(CATALOGUE)


def name_of(entry):
    return entry.name


@pytest.mark.parametrize("entry", CATALOGUE, ids=name_of)
def test_the_class_and_the_test_of_an_entry_exist(entry):
    module, _, name = entry.attack.rpartition(".")
    assert inspect.isclass(getattr(importlib.import_module(module), name))
    path, _, test = entry.test.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert test in found
    assert name in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("entry", CATALOGUE, ids=name_of)
def test_an_entry_says_everything_in_one_line_of_the_words_we_use(entry):
    assert entry.role in get_args(Role)
    for field in Entry.__dataclass_fields__:
        said = getattr(entry, field)
        assert said.strip() == said != ""
        assert "\n" not in said
        assert "|" not in said


def test_names_are_given_once():
    names = [each.name for each in (*CATALOGUE, *NOT_TESTED)]
    assert len(set(names)) == len(names)


def test_the_threat_model_shows_exactly_the_catalogue():
    written = runpy.run_path(str(ROOT / "docs" / "make_threat_model.py"))
    page = written["PAGE"].read_text(encoding="utf-8")
    assert page == written["page"]()
    between = page.split(written["BEGIN"])[1].split(written["END"])[0]
    assert between.count("- shown by ") == len(CATALOGUE)
    assert all(f"| {each.name} | {each.why} |" in between for each in NOT_TESTED)
