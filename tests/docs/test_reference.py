"""The reference names what exists, all of it, and says what the code says."""

import re
import runpy
from pathlib import Path
from typing import get_args

import pytest

import cobasis
import cobasis.estimators
from cobasis.algorithms.bases import BASES
from cobasis.features.problems import Problem
from cobasis.protocol.agreement import Agreement

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
LEAVES = {
    name
    for name, each in vars(cobasis.errors).items()
    if isinstance(each, type) and issubclass(each, cobasis.CobasisError) and each.code
}
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


def test_the_command_line_page_is_what_help_says():
    written = runpy.run_path(str(ROOT / "docs" / "make_cli_reference.py"))
    assert written["PAGE"].read_text(encoding="utf-8") == written["page"]()


def test_the_table_of_bases_is_the_codes():
    found = [[*row[:3], row[4]] for row in rows("bases.md") if row[0] in BASES]
    expected = [
        [name, rule.span, str(rule.exchanges), "yes" if rule.under_dp else "no"]
        for name, rule in BASES.items()
    ]
    assert found == expected


def test_the_agreements_fields_are_all_there_in_order_with_their_defaults():
    found = {row[0]: row[2].strip("`") for row in rows("agreement.md")}
    names = list(Agreement.model_fields)
    assert [name for name in found if name in names and name != "name"] == names
    for name, field in Agreement.model_fields.items():
        assert found[name] == ("" if field.is_required() else str(field.default) or '""'), name


@pytest.mark.parametrize("kind", [cobasis.NumericFeature, cobasis.CategoryFeature])
def test_a_features_fields_are_all_there_in_order_with_their_defaults(kind):
    expected = [
        [name, "" if field.is_required() else str(field.default) or '""']
        for name, field in kind.model_fields.items()
    ]
    found = [[row[0], row[2].strip("`")] for row in rows("features.md")]
    assert any(found[at : at + len(expected)] == expected for at in range(len(found)))


@pytest.mark.parametrize("problem", get_args(Problem))
def test_every_problem_that_a_check_finds_is_explained(problem):
    assert problem in {row[0] for row in rows("features.md")}


@pytest.mark.parametrize("field", ["anchor", "basis", "aligner", "task", "model", "precision"])
def test_the_words_that_a_field_takes_are_all_there(field):
    schema = Agreement.model_json_schema()["properties"][field]
    words = schema.get("enum") or next(each["enum"] for each in schema["anyOf"] if "enum" in each)
    [cell] = [row[1] for row in rows("agreement.md") if row[0] == field]
    assert re.findall(r"\w+", cell.replace("or nothing", "")) == words
