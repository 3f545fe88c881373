"""What users import: complete, sorted, small, and one version everywhere."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

import cobasis
import cobasis.estimators

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("module", [cobasis, cobasis.estimators], ids=lambda each: each.__name__)
def test_all_is_sorted_importable_and_small(module):
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name))
    assert len(module.__all__) <= 25
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_every_class_and_function_at_the_top_is_in_all():
    visible = {
        name
        for name, value in vars(cobasis).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("cobasis.")
    }
    assert visible == set(cobasis.__all__)


def test_the_version_is_one():
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert cobasis.__version__ == version("cobasis") == stated.group(1)


def test_experiments_use_public_names_only():
    imports = re.compile(r"^\s*(?:from|import) (cobasis\S*)", re.MULTILINE)
    used = {
        found
        for path in (ROOT / "experiments").rglob("*.py")
        for found in imports.findall(path.read_text(encoding="utf-8"))
    }
    page = (ROOT / "docs" / "reference" / "python-api.md").read_text(encoding="utf-8")
    attacks = re.findall(r"automodule:: (cobasis\.privacy\.\S+)", page)
    assert used <= {
        "cobasis",
        "cobasis.errors",
        "cobasis.planning.traffic",
        "cobasis.privacy.clipping",
        "cobasis.privacy.gaussian",
        *attacks,
    }
    assert "cobasis" in used
