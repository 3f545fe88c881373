import ast
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import cobasis
import cobasis.estimators

ROOT = Path(__file__).parent.parent
ERRORS = {name: each for name, each in vars(cobasis.errors).items() if isinstance(each, type)}


@pytest.mark.parametrize("module", [cobasis, cobasis.estimators], ids=lambda each: each.__name__)
def test_all_is_sorted_importable_and_listed(module):
    assert list(module.__all__) == sorted(set(module.__all__))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert set(module.__all__) <= set(dir(module))


def test_besides_errors_there_are_few_names():
    assert len(set(cobasis.__all__) - set(ERRORS)) <= 31


def test_every_error_can_be_caught_by_its_name():
    assert set(ERRORS) < set(cobasis.__all__)
    for name, error in ERRORS.items():
        assert getattr(cobasis, name) is error


def test_a_type_checker_sees_the_names_that_are_loaded_on_first_use():
    tree = ast.parse(Path(cobasis.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.asname: node.module.removeprefix("cobasis.")
        for node in block.body
        for alias in node.names
    }
    assert seen == cobasis._HOMES


def test_a_name_that_is_not_there_is_missed_as_anywhere():
    with pytest.raises(AttributeError, match="module 'cobasis' has no attribute 'Rounds'"):
        cobasis.Rounds  # noqa: B018 -- the look-up is what is tested


LOADED = {
    "from cobasis import simulate": {"numpy", "pydantic", "scipy"},
    "from cobasis import *": {"scipy.special", "pandas"},
    "from cobasis import Agreement, Analyst, Party, Round, train": {"scipy.special", "narwhals"},
}
NEVER = {
    "sklearn",
    "polars",
    "pyarrow",
    "matplotlib",
    "onnx",
    "onnxruntime",
    "typer",
    "rich",
    "jinja2",
}


@pytest.mark.parametrize("line", LOADED)
def test_an_import_loads_no_more_than_it_needs(line):
    script = f"import sys; {line}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) & (LOADED[line] | NEVER) == set()


def test_the_version_is_one():
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert cobasis.__version__ == version("cobasis") == stated.group(1)


def test_experiments_use_public_names_and_attacks_only():
    imports = re.compile(r"^\s*(?:from|import) (cobasis\S*)", re.MULTILINE)
    used = {
        found
        for path in (ROOT / "experiments").rglob("*.py")
        if path.parent.name != "attacks"  # which look at what nobody else is given
        for found in imports.findall(path.read_text(encoding="utf-8"))
    }
    assert {name for name in used if not name.startswith("cobasis.privacy.attacks")} <= {
        "cobasis",
        "cobasis.errors",
        "cobasis.models.chain",  # with the next two: the local fit, measured as parties have it
        "cobasis.models.local",
        "cobasis.models.trainer",
        "cobasis.privacy.gaussian",
        "cobasis.privacy.sensitivity",
    }
    assert "cobasis" in used
