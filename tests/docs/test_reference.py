import inspect
import re
import runpy
from pathlib import Path
from typing import get_args

import yaml

import cobasis
import cobasis.estimators
from cobasis import errors
from cobasis.algorithms.bases import BASES
from cobasis.features.problems import Doubt, Problem
from cobasis.protocol.agreement import Agreement
from cobasis.transport.server import Server
from cobasis.transport.wire import FIELDS

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference"
CODES = {
    each.code: each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if each.__module__ == errors.__name__ and getattr(each, "code", "")
}
LEAVES = {each.__name__ for each in CODES.values() if issubclass(each, cobasis.CobasisError)}
"""The errors that have a page each."""

PUBLIC = [
    *(f"cobasis.{name}" for name in cobasis.__all__ if name not in LEAVES),
    *(f"cobasis.estimators.{name}" for name in cobasis.estimators.__all__),
    *(f"cobasis.privacy.gaussian.{name}" for name in ("noise_scale", "delta_of", "epsilon_of")),
    *(f"cobasis.privacy.sensitivity.{name}" for name in ("clip_rows", "sensitivity_of")),
]


def rows(page):
    """The cells of a page's tables, without back quotes."""
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in (REFERENCE / page).read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]


def test_the_python_reference_lists_every_public_name_once():
    text = (REFERENCE / "python-api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. auto(?:class|function|exception):: ([\w.]+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(PUBLIC)


def test_the_page_of_commands_is_what_their_help_says():
    written = runpy.run_path(str(DOCS / "make_cli_reference.py"))
    assert written["PAGE"].read_text(encoding="utf-8") == written["page"]()


def test_the_table_of_bases_is_the_codes():
    found = [[*row[:3], row[4]] for row in rows("bases.md") if row[0] in BASES]
    expected = [
        [name, rule.span, str(rule.exchanges), "yes" if rule.under_dp else "no"]
        for name, rule in BASES.items()
    ]
    assert found == expected


def defaults(kind):
    """What the reference says of a model's fields: their names, in order, with defaults."""
    return [
        [name, "" if field.is_required() else str(field.default) or '""']
        for name, field in kind.model_fields.items()
    ]


def test_fields_of_agreements_and_features_are_there_in_order_with_their_defaults_and_words():
    expected = defaults(Agreement)
    names = {name for name, _ in expected} - {"name"}
    found = {}
    for row in rows("agreement.md"):
        found.setdefault(row[0], row[2].strip("`"))  # tables of terms come later
    assert [[name, each] for name, each in found.items() if name in names] == expected
    found = [[row[0], row[2].strip("`")] for row in rows("features.md")]
    for kind in (cobasis.NumericFeature, cobasis.CategoryFeature):
        told = defaults(kind)
        assert any(found[at : at + len(told)] == told for at in range(len(found)))
    assert {*get_args(Problem), *get_args(Doubt)} <= {row[0] for row in rows("features.md")}
    for field in ("anchor", "basis", "aligner", "task", "model", "precision"):
        schema = Agreement.model_json_schema()["properties"][field]
        words = schema.get("enum") or next(x["enum"] for x in schema["anyOf"] if "enum" in x)
        [cell] = [row[1] for row in rows("agreement.md") if row[0] == field]
        assert re.findall(r"\w+", cell.replace("or nothing", "")) == words


def test_every_code_has_a_page_with_exit_code_causes_and_an_example_that_ends_in_it():
    pages = {page.stem: page.read_text(encoding="utf-8") for page in DOCS.glob("errors/CB*.md")}
    assert set(pages) == set(CODES)
    assert len(CODES) > 20
    for code, kind in CODES.items():
        text, example = " ".join(pages[code].split()), pages[code].partition("## Example")[2]
        assert pages[code].splitlines()[0] == f"# {code}: {kind.__name__}"
        ends = "the exit code stays 0"
        if not issubclass(kind, Warning):
            ends = f"The command line exits with {kind.exit_code}."
        for part in (ends, "## Common causes", "## What to do", ">>> "):
            assert part in text, (code, part)
        assert f"[{code}]" in " ".join(example.split())


def test_the_index_lists_every_code_with_class_exit_code_and_meaning():
    text = (DOCS / "errors" / "index.md").read_text(encoding="utf-8")
    row = r"^\| \[(CB\d+)\]\(\1\.md\) \| `(\w+)` \| (\S+) \| (.+) \|$"
    assert re.findall(row, text, re.MULTILINE) == [
        (code, kind.__name__, str(getattr(kind, "exit_code", "-")), kind.__doc__.splitlines()[0])
        for code, kind in sorted(CODES.items())
    ]


def test_the_file_for_programs_has_the_servers_routes_methods_and_limits(tmp_path):
    found = yaml.safe_load((REFERENCE / "https.openapi.yaml").read_text(encoding="utf-8"))["paths"]
    told = {path: {each.upper() for each in ways} - {"PARAMETERS"} for path, ways in found.items()}
    served = {}
    for each in Server(tmp_path).app().routes:
        served.setdefault(each.path, set()).update(each.methods)
    # HEAD comes with GET by itself, and says something of its own of an upload alone
    assert {path: ways - {"HEAD"} for path, ways in served.items()} == {
        path: ways - {"HEAD"} for path, ways in told.items()
    }
    page = (REFERENCE / "https.md").read_text(encoding="utf-8")
    assert {each for each in FIELDS if f"`{each}`" not in page} == set()
