"""The paper map names files that exist, and numbers under their own titles."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/explanation/paper-map.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|") and "---" not in line
]
TITLES = {
    "Algorithm 1": "Overview of the DC algorithm",
    "Algorithm 2": "Imakura-DC's Basis Alignment Procedure",
    "Algorithm 3": "Kawakami-DC's Basis Alignment Procedure",
    "Algorithm 4": "ODC's Basis Alignment Procedure",
    "Algorithm 2 of arXiv v4, Appendix B": (
        "Alternating Minimization Algorithm with Spectral Initialization"
    ),
    "Theorem 2.1": "Privacy Against Semi-Honest Users",
    "Theorem 2.2": "Privacy Against a Semi-Honest Analyst",
    "Theorem 4.3": "Weak Concordance of Imakura-DC",
    "Theorem 5.3": "Orthogonal Concordance of ODC",
}
IMPLEMENTED = {  # the docstring of the file says which algorithm it is
    "src/cobasis/protocol/round.py": "Algorithm 1",
    "src/cobasis/algorithms/imakura.py": "Algorithm 2",
    "src/cobasis/algorithms/kawakami.py": "Algorithm 3",
    "src/cobasis/algorithms/odc.py": "Algorithm 4",
    "src/cobasis/algorithms/gopp.py": "Appendix B",
}
PATHS = sorted(set(re.findall(r"`((?:src|tests|experiments|benchmarks|docs)/[\w/.-]+)`", PAGE)))


@pytest.mark.parametrize("path", PATHS)
def test_every_file_that_the_map_names_exists(path):
    assert (ROOT / path).is_file()


def test_every_algorithm_and_theorem_stands_under_its_own_title():
    found = {row[0]: row[1] for row in ROWS if row[0].startswith(("Algorithm", "Theorem"))}
    assert found == TITLES


def test_every_algorithm_names_a_module_and_a_test():
    rows = [row for row in ROWS if row[0].startswith("Algorithm")]
    assert rows
    for _, _, module, tests, *_ in rows:
        assert module.startswith("`src/")
        assert tests.startswith("`tests/")


@pytest.mark.parametrize(("path", "algorithm"), IMPLEMENTED.items())
def test_the_module_itself_says_which_algorithm_it_is(path, algorithm):
    title, source = algorithm, (ROOT / path).read_text(encoding="utf-8")
    assert title in source
    [row] = [row for row in ROWS if len(row) > 2 and row[2] == f"`{path}`" and row[0] in TITLES]
    assert title in row[0]


def test_every_file_of_the_methods_is_on_the_map():
    methods = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "src/cobasis/algorithms").glob("*.py")
        if "References\n" in path.read_text(encoding="utf-8")
    }
    assert methods <= set(PATHS)
    assert len(methods) > 5
