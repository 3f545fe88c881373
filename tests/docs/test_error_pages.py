"""Every code has a page, every page a code, and the table of codes is the tree."""

import inspect
import re
from pathlib import Path

import pytest

from cobasis import errors

FOLDER = Path(__file__).parents[2] / "docs" / "errors"
CODES = {
    each.code: each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if each.__module__ == errors.__name__ and getattr(each, "code", "")
}
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in FOLDER.glob("CB*.md")}


def exit_line(kind):
    """What the page says of the exit code."""
    if issubclass(kind, Warning):
        return "the exit code stays 0"
    return f"The command line exits with {kind.exit_code}."


def test_codes_and_pages_are_the_same():
    assert set(PAGES) == set(CODES)
    assert len(CODES) > 20


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_title_is_code_and_class(code):
    assert PAGES[code].splitlines()[0] == f"# {code}: {CODES[code].__name__}"


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_page_says_what_to_do_and_how_the_command_line_ends(code):
    text = " ".join(PAGES[code].split())
    assert exit_line(CODES[code]) in text
    for heading in ("## Common causes", "## What to do", "## Example"):
        assert heading in PAGES[code]


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_example_is_run_and_ends_in_the_code(code):
    example = PAGES[code].partition("## Example")[2]
    assert ">>> " in example
    assert f"[{code}]" in " ".join(example.split())


def test_the_index_lists_every_code_with_class_exit_code_and_meaning():
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| \[(CB\d+)\]\(\1\.md\) \| `(\w+)` \| (\S+) \| (.+) \|$", text, re.MULTILINE
    )
    expected = [
        (code, kind.__name__, str(getattr(kind, "exit_code", "-")), kind.__doc__.splitlines()[0])
        for code, kind in sorted(CODES.items())
    ]
    assert rows == expected
