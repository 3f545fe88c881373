"""Changelog fragments have names that say issue and kind; the citation file is complete."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FRAGMENT = re.compile(r"\d+\.(feature|fix|removal|doc)(\.\d+)?\.md")


def misnamed(names):
    """Names in ``changes`` that are neither fragments nor the page that explains them."""
    return sorted(name for name in names if name != "README.md" and not FRAGMENT.fullmatch(name))


def test_every_file_in_changes_is_a_fragment():
    assert misnamed(path.name for path in (ROOT / "changes").iterdir()) == []


def test_other_names_would_be_found():
    assert misnamed(["2.feature.md", "7.fix.2.md", "README.md"]) == []
    wrong = ["2.md", "feature.md", "2.change.md", "x.fix.md"]
    assert misnamed(wrong) == sorted(wrong)


def test_every_fragment_says_something_and_brings_no_heading():
    for path in (ROOT / "changes").glob("[0-9]*.md"):
        text = path.read_text(encoding="utf-8").strip()
        assert text.endswith("."), path
        assert not text.startswith("#"), path


def test_the_kinds_are_those_that_the_page_explains():
    text = (ROOT / "changes" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^- `(\w+)`", text, re.MULTILINE) == ["feature", "fix", "removal", "doc"]


def test_the_citation_names_the_version_the_licence_and_the_papers():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["cff-version"] == "1.2.0"
    assert (cited["type"], cited["title"]) == ("software", project["name"])
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    assert {"message", "authors"} <= set(cited)
    identifiers = {
        each["value"] for paper in cited["references"] for each in paper.get("identifiers", ())
    }
    assert {"arXiv:2403.02780", "arXiv:2404.14164"} <= identifiers
    for paper in cited["references"]:
        assert {"type", "title", "authors"} <= set(paper)
