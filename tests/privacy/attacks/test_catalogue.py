"""Every attack stands on the page on the threat model, with a test that shows it."""

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
FIELDS = ("needs", "recovers", "stopped by", "not stopped by")
ENTRY = re.compile(
    r"\n\*\*[^*\n]+\*\* \(`(\w+)\.(\w+)`\)\n\n"
    + "".join(rf"- {field}: \S[^\n]*\n" for field in FIELDS)
    + r"- shown by `(.+)`: \*(.+)\*\n"
)
ENTRIES = {f"{found[1]}.{found[2]}": found.groups() for found in ENTRY.finditer(PAGE)}
NO_ATTACKS = {"public_sample.Clouds", "scores.Content", "scores.Share"}
"""What attacks take and return."""

MODULES = {
    found.name: importlib.import_module(f"{package.__name__}.{found.name}")
    for package in (cobasis.privacy.attacks, experiments.attacks)
    for found in pkgutil.iter_modules(package.__path__)
}


def test_every_module_and_every_class_is_on_the_page():
    classes = {
        f"{module}.{name}"
        for module, found in MODULES.items()
        for name, each in vars(found).items()
        if inspect.isclass(each) and each.__module__ == found.__name__ and name[0] != "_"
    }
    assert {module for module, *_ in ENTRIES.values()} == set(MODULES)
    assert classes - set(ENTRIES) == NO_ATTACKS
    assert PAGE.count("- shown by ") == len(ENTRIES)


@pytest.mark.parametrize("name", ENTRIES)
def test_an_attack_exists_and_so_does_the_test_that_shows_it(name):
    module, attack, path, claim = ENTRIES[name]
    assert callable(getattr(MODULES[module], attack))
    text = (ROOT / path).read_text(encoding="utf-8")
    assert attack in text
    assert f"\ndef test_{claim.replace(' ', '_')}(" in text
