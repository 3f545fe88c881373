import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
TOP = tuple(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "changes").glob("*.md"), *TOP])
WRITTEN = sorted([*PAGES, *(ROOT / "src").rglob("*.py")])
CODE = sorted(
    path
    for folder in ("tests", "experiments", "benchmarks", "docs", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".toml", ".sh", ""} and path.is_file() and path != Path(__file__)
)
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
PATH = re.compile(r"`((?:src|tests|experiments|benchmarks|docs|changes)/[\w/.-]+)`")
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
FRAGMENT = re.compile(r"\d+\.(feature|fix|removal|doc)(\.\d+)?\.md")
HONEST = "pseudonymised personal data, not anonymous data"
NOT_OURS = re.compile(r"\.\./shared|/work/|/home/|seed 00\d|\bDESIGN\b|pypi\.org|/simple\b")
PLACES = re.compile(r"/(work|home|root)/|pypi\.org|/simple\b")
DIFFERENTIAL = re.compile(r"differential(ly)? priva", re.IGNORECASE)
MAY_SAY_IT = {
    *(f"docs/{page}.md" for page in ("explanation/differential-privacy", "reference/agreement")),
    "docs/how-to/read-the-audit.md",
    "docs/decisions/0012-noise-with-a-guarantee.md",
    "docs/decisions/0019-noise-on-sums.md",
    *(f"src/cobasis/protocol/{name}.py" for name in ("dp_terms", "sums_terms")),
    *(f"src/cobasis/privacy/{name}.py" for name in ("discrete", "mechanism")),
    "src/cobasis/party_side/checks.py",
}
"""Where the guarantee of an agreement's [dp] section is made, explained or stated."""


def named(path):
    return str(path.relative_to(ROOT))


def prose(page):
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def text_of(path):
    return " ".join(path.read_text(encoding="utf-8").replace("*", "").split())


def anchors(page):
    heads = re.findall(r"^#+ +(.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def lost_links(page):
    """Which relative links lead to no file or heading of ours."""
    for target in LINK.findall(prose(page)):
        name, _, anchor = target.partition("#")
        found = (page.parent / name).resolve() if name else page
        if target.startswith(("https://", "mailto:")):
            continue
        lost = not found.exists() or ROOT not in found.parents
        if lost or (anchor and anchor not in anchors(found)):
            yield target


def test_every_link_leads_somewhere_and_every_file_that_is_named_exists():
    assert {named(page): found for page in PAGES if (found := [*lost_links(page)])} == {}
    assert sum(len(LINK.findall(prose(page))) for page in PAGES) > 50
    files = {each for page in PAGES for each in PATH.findall(prose(page))}
    assert [each for each in sorted(files) if not (ROOT / each).exists()] == []


def test_every_test_that_a_page_names_exists():
    code = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    told = {each for page in PAGES for each in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))}
    assert [each for each in told if f"def {each}(" not in code] == []


def test_every_page_of_the_site_has_one_title_and_no_power_sets_words_in_bold():
    for page in PAGES:
        if ROOT / "docs" in page.parents:
            assert len(re.findall(r"^# ", prose(page), re.MULTILINE)) == 1, page
        # two of 2**53 in one paragraph do, unless they stand in backquotes
        bare = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"\w\*\*\w", bare), page


def test_an_upload_is_called_what_it_is_and_nothing_else_claims_a_guarantee_or_names_a_place():
    for path in WRITTEN:
        text = text_of(path)
        bare = text.replace(HONEST, "").lower().replace("pseudonym", "")
        assert "anonym" not in bare, path
        assert not DIFFERENTIAL.search(text) or named(path) in MAY_SAY_IT, path
        assert not NOT_OURS.search(text), path
    assert [named(path) for path in CODE if PLACES.search(path.read_text(encoding="utf-8"))] == []


def test_the_honest_sentence_stands_where_people_look_for_it():
    for name in ("README.md", "docs/index.md", "docs/explanation/threat-model.md"):
        assert HONEST in text_of(ROOT / name)
        assert "no formal guarantee" in text_of(ROOT / name).lower()
    assert HONEST in text_of(ROOT / "CONTRIBUTING.md")


def test_every_dependency_has_its_row_with_a_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
        *project["dependency-groups"].values(),
    ]
    page = (ROOT / "docs/decisions/0005-dependencies.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if line.startswith("| ")]
    listed = {row[0].strip(): row for row in rows if row[0].strip() != "package"}
    assert set(listed) == {Requirement(line).name for group in groups for line in group}
    assert all(len(row) == 5 and all(cell.strip() for cell in row) for row in listed.values())


def test_every_file_in_changes_is_a_fragment_that_says_something():
    names = sorted(path.name for path in (ROOT / "changes").iterdir())
    assert [name for name in names if not FRAGMENT.fullmatch(name)] == ["README.md"]
    for path in (ROOT / "changes").glob("[0-9]*.md"):
        assert re.fullmatch(r"[^#].*[.]\s*", path.read_text(encoding="utf-8"), re.DOTALL), path


PAPERS = {
    *("Algorithm 1", "Algorithm 2", "Algorithm 3", "Algorithm 4"),
    *("Algorithm 2 of arXiv v4, Appendix B", "Theorem 2.1", "Theorem 2.2"),
    *("Theorem 4.3", "Theorem 5.3"),
}


def test_the_paper_map_has_every_algorithm_under_its_title_with_module_and_test():
    page = (ROOT / "docs/explanation/paper-map.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith(("| Algorithm", "| Theorem"))
    ]
    assert {row[0] for row in rows} == PAPERS
    algorithms = [row for row in rows if row[0].startswith("Algorithm")]
    assert all(row[2].startswith("`src/") and row[3].startswith("`tests/") for row in algorithms)
    methods = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src/cobasis/algorithms").glob("*.py")
        if "References\n" in path.read_text(encoding="utf-8")
    }
    assert methods <= set(PATH.findall(page))
    assert len(methods) > 5


def test_the_unit_that_the_page_shows_is_one(tmp_path):
    """A unit of systemd, checked by its own tool where there is one."""
    if (tool := shutil.which("systemd-analyze")) is None:
        pytest.skip("the tool systemd-analyze is not installed: apt-get install systemd")
    page = (ROOT / "docs/how-to/serve.md").read_text(encoding="utf-8")
    [unit] = re.findall(r"```ini\n(.*?)```", page, re.DOTALL)
    assert "NoNewPrivileges=yes" in unit
    [name] = re.findall("LoadCredentialEncrypted=(.*):", unit)
    assert f"`systemd-creds encrypt --name={name} - " in page  # or systemd refuses it
    there = unit.replace("/opt/cobasis/bin/cobasis", sys.executable)
    (tmp_path / "cobasis.service").write_text(there)
    done = subprocess.run(
        [tool, "verify", tmp_path / "cobasis.service"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
