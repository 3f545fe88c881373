"""What the documentation must and must not say."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
WRITTEN = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "changes").glob("*.md"),
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    ]
)
PAGES = [path for path in WRITTEN if path.suffix == ".md"]
HONEST = "pseudonymised personal data, not anonymous data"
NOT_OURS = re.compile(r"\.\./shared|/work/|/home/|seed 00\d|\bDESIGN\b|pypi\.org|/simple\b")
CODE = sorted(
    path
    for folder in ("tests", "experiments", "benchmarks", "docs", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".toml", ".sh", ""} and path.is_file() and path != Path(__file__)
)
PLACES = re.compile(r"/(work|home|root)/|pypi\.org|/simple\b")
DIFFERENTIAL = re.compile(r"differential(ly)? priva", re.IGNORECASE)
MAY_SAY_IT = {
    *(f"docs/{page}.md" for page in ("explanation/differential-privacy", "reference/agreement")),
    "docs/how-to/read-the-audit.md",
    "docs/decisions/0012-noise-with-a-guarantee.md",
    *(f"src/cobasis/protocol/{name}.py" for name in ("dp_terms",)),
    *(f"src/cobasis/privacy/{name}.py" for name in ("mechanism", "audit/subject", "audit/report")),
}
"""Where the guarantee of an agreement's [dp] section is made, explained or stated."""


def text_of(path):
    """The words, with markup and line ends taken away."""
    return " ".join(path.read_text(encoding="utf-8").replace("*", "").split())


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_upload_is_called_what_it_is_and_nothing_else(path):
    assert "anonym" not in text_of(path).replace(HONEST, "").lower().replace("pseudonym", "")


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_else_claims_differential_privacy_or_names_a_place_outside_the_project(path):
    claimed = DIFFERENTIAL.search(text_of(path))
    assert not claimed or str(path.relative_to(ROOT)) in MAY_SAY_IT
    assert not NOT_OURS.search(text_of(path))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_power_sets_the_words_behind_it_in_bold(path):
    """Two of ``2**53`` in one paragraph do, unless they stand in backquotes."""
    prose = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert not re.search(r"\w\*\*\w", prose)


@pytest.mark.parametrize(
    "condition",
    ["replace-one", "haar", "public by declaration", "NaN", "randomised", "ledger", "grid"],
)
def test_the_page_on_the_guarantee_names_its_conditions(condition):
    assert condition in text_of(ROOT / "docs/explanation/differential-privacy.md")


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_code_names_a_place_of_one_machine(path):
    assert not PLACES.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name", ["README.md", "docs/index.md", "docs/explanation/threat-model.md", "CONTRIBUTING.md"]
)
def test_the_honest_sentence_stands_where_people_begin(name):
    assert HONEST in text_of(ROOT / name)
    assert "no formal guarantee" in text_of(ROOT / name).lower() or name == "CONTRIBUTING.md"


def test_every_dependency_has_its_row_with_a_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    named = {Requirement(line).name for group in groups for line in group}
    page = (ROOT / "docs/decisions/0005-dependencies.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    listed = {row[0].strip(): row for row in rows if row[0].strip() != "package"}
    assert set(listed) == named
    assert all(len(row) == 5 and all(cell.strip() for cell in row) for row in listed.values())
