"""Every attack stands on the page on the threat model, with its class and a test that shows it."""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import experiments.attacks
import pytest

import cobasis.privacy.attacks

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "explanation" / "threat-model.md").read_text(encoding="utf-8")
FIELDS = ("needs", "recovers", "stopped by", "not stopped by", "shown by")
ENTRY = re.compile(
    r"\n\*\*[^*\n]+\*\* \(`(\w+\.\w+)`\)\n\n"
    + "".join(rf"- {field}:? (?P<{field.replace(' ', '_')}>\S[^\n]*)\n" for field in FIELDS)
)
ENTRIES = {found[1]: found for found in ENTRY.finditer(PAGE)}
NO_ATTACKS = {
    "attribute.Inferred",
    "known_records.FewestKnown",
    "linkage.Links",
    "public_sample.Clouds",
    "release.Attack",
    "release.Recovered",
    "release.Release",
    "scores.Content",
    "scores.Decision",
    "scores.Share",
    "structure.Structure",
}
"""What attacks take and return."""


def classes():
    """Every public class, by module and name."""
    for package in (cobasis.privacy.attacks, experiments.attacks):
        for found in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{found.name}")
            for name, each in vars(module).items():
                own = inspect.isclass(each) and each.__module__ == module.__name__
                if own and not name.startswith("_"):
                    yield f"{found.name}.{name}"


def test_every_class_is_an_attack_of_the_page_or_what_attacks_work_on():
    assert set(classes()) == set(ENTRIES) | NO_ATTACKS
    assert not set(ENTRIES) & NO_ATTACKS
    assert PAGE.count("- shown by ") == len(ENTRIES)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_test_that_shows_an_attack_exists(name):
    path, claim = re.fullmatch(r"`(.+)`: \*(.+)\*", ENTRIES[name]["shown_by"]).groups()
    text = (ROOT / path).read_text(encoding="utf-8")
    assert name.split(".")[1] in text
    tests = {node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert f"test_{claim.replace(' ', '_')}" in tests
