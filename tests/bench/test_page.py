"""The page on speed is made from the result, and says so where there is none."""

import json
import runpy
from pathlib import Path

import pytest
from benchmarks import goals, results
from benchmarks.machine import machine
from experiments.harness.store import versions

ROOT = Path(__file__).parents[2]
PAGE = "".join(
    (ROOT / "docs" / page).read_text(encoding="utf-8")
    for page in ("explanation/speed.md", "how-to/large-training.md")
)
FIGURES = runpy.run_path(str(ROOT / "docs" / "speed_figures.py"))


@pytest.fixture
def result(tmp_path):
    ratio = {"median": 1.5, "low": 1.4, "high": 1.6}
    points = [
        {"a": 1000, "l": size, "c": 50, "seconds": {"ours": size / 1e4}, "scipy loop / ours": ratio}
        for size in (50, 100, 200)
    ]
    judged = [
        goals.goal("||G'G - I||", 1e-15, most=1e-12),
        goals.goal("as fast | as asked", 1.2, least=2.0, unit="x"),
        goals.not_measured("two threads", why="no second core"),
    ]
    left_out = {"Imakura, full SVD + pinv": {"bytes": 2e10, "seconds": 1234.0}}
    published = [{"a": 1000, "l": 50, "c": 1000, "seconds": {}, "does not fit": left_out}]
    consensus = {
        "a": 200,
        "l": 20,
        "c": 10,
        "anchor": "uniform",
        "alternation / momentum": ratio,
        "iterations": {"momentum": 4, "alternation": 9},
        "objective, momentum / alternation": 1.0,
    }
    sections = {
        "published": {"points": published, "limits": {"bytes": 12e9, "seconds": 20.0}},
        "papers": {
            "input": "unrelated",
            "points": points,
            "goals": judged,
            "section_seconds": 60.0,
        },
        "gopp": {"inputs": [consensus]},
    }
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(results.whole(sections, quick=False)))
    return path


def test_every_place_on_the_page_has_a_figure():
    assert set(FIGURES["PLACE"].findall(PAGE)) == set(FIGURES["FIGURES"])


def test_without_a_result_the_page_says_so(tmp_path):
    filled = FIGURES["filled"](PAGE, path=tmp_path / "absent.json")
    assert filled.count("Not measured yet") == len(FIGURES["FIGURES"])


def test_with_a_result_tables_and_charts_are_in_place_the_same_every_time(result):
    filled = FIGURES["filled"](PAGE, path=result)
    assert filled == FIGURES["filled"](PAGE, path=result)
    assert "<script" not in filled
    assert "{{" not in filled
    assert filled.count("<svg") == 2
    assert r"\|\|G'G - I\|\|" in filled
    assert "**met**" in filled
    told = filled.split("| goal |")[0]
    assert "- Met: 1." in told
    assert r"- Missed: 1: as fast \| as asked (1.2x)." in told
    assert "- Failed: 0." in told
    assert "- Not measured: 1: two threads (papers)." in told
    assert "| Imakura, full SVD + pinv | 50 | 1000 | 1000 | 20.0 GB | 1234 s a run |" in filled
    assert "more than 12.0 GB, or more than 20 seconds a run by their estimate" in filled
    assert "| ODC, ours | 1.00 (R2 1.00) |" in filled
    assert "| different, uniform anchor, l = 20, a = 200, c = 10 | " in filled


def test_sections_of_two_machines_are_told_apart(result):
    found = json.loads(result.read_text(encoding="utf-8"))
    here = {**machine(), "processor": "Some Processor", "blas_threads": 4}
    found["sections"]["gopp"] |= {"machine": here, "versions": versions(), "commit": "a" * 40}
    result.write_text(json.dumps(found), encoding="utf-8")
    told = FIGURES["filled"]("{{ machines }}", path=result)
    assert f"- a machine that was not recorded: `unknown` published, papers{chr(10)}" in told
    assert f"- Some Processor, {here['cores']} cores, " in told
    assert f"numpy {versions()['numpy']}" in told
    assert told.endswith(": `aaaaaaaaaa` gopp (4 threads)")
    assert f"Seed {found['seed']}, 1 minutes in all." in told


def test_the_page_says_which_figures_were_not_measured_in_turns():
    words = " ".join(PAGE.split())
    assert "Each divides two medians of different sections" in words
    assert "The busy machine's figure is one median over another" in words
    assert "are read before they are used, in every round in that order" in words
