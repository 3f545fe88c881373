"""A run survives a section that fails, and keeps whole results."""

import json
import sys
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import analyst_training, goals, results
from benchmarks.__main__ import SECTIONS, Section
from benchmarks.machine import ONE_THREAD, in_a_child, memory_bytes

ROOT = Path(__file__).parents[2]


BROKEN = Section(title="none", work="machine:measure")
KEPT = {"title": "kept", "goals": [], "section_seconds": 600.0}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Results in a folder of the test's own."""
    monkeypatch.setattr(results, "RESULT", tmp_path / "results" / "bench.json")
    return tmp_path


def run(monkeypatch, *arguments, **sections):
    """Run the command; some sections may stand in for the real ones."""
    monkeypatch.setattr(command, "SECTIONS", {**SECTIONS, **sections})
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    return command.main()


def keep(**sections):
    results.write(results.RESULT, results.whole(sections, quick=False))


def kept():
    return json.loads(results.RESULT.read_text(encoding="utf-8"))


def test_a_section_that_raises_is_recorded_and_the_run_goes_on(monkeypatch, capsys):
    asked = ("--quick", "--only", "gopp", "--only", "gpu")
    assert run(monkeypatch, *asked, gopp=BROKEN) == 1
    told = capsys.readouterr().out
    assert "machine:measure failed" in told
    assert SECTIONS["gpu"].title in told
    assert "1 failed" in told


def test_a_quick_run_keeps_nothing_and_a_missed_goal_is_no_failure(elsewhere, monkeypatch, capsys):
    missed = {"result": {"goals": [goals.goal("fast", 1.0, least=2.0)]}, "blas_threads": 1}
    monkeypatch.setattr(command, "in_a_child", lambda *_, **__: missed)
    assert run(monkeypatch, "--quick", "--only", "gpu") == 0
    assert "1 missed" in capsys.readouterr().out
    assert list(elsewhere.iterdir()) == []


def test_one_section_alone_is_put_into_the_result_that_is_there(monkeypatch):
    keep(exactness=KEPT)
    assert run(monkeypatch, "--only", "gpu") == 0
    found = kept()
    assert list(found["sections"]) == ["exactness", "gpu"]
    assert found["sections"]["exactness"]["title"] == "kept"
    assert {"seed", "goals", "fig_6"} <= set(found)
    assert {"commit", "versions", "machine"} <= set(found["sections"]["gpu"])
    took = found["sections"]["gpu"]["section_seconds"]
    assert found["seconds"] == pytest.approx(600 + took)


def test_a_section_that_fails_alone_leaves_its_good_figures_and_replaces_a_failure(
    monkeypatch, capsys
):
    keep(gpu=KEPT, gopp={"title": "kept", "failed": "before"})
    asked = ("--only", "gpu", "--only", "gopp")
    assert run(monkeypatch, *asked, gpu=BROKEN, gopp=BROKEN) == 1
    assert kept()["sections"]["gpu"] == KEPT
    assert "machine:measure" in kept()["sections"]["gopp"]["failed"]
    assert "gpu failed: its figures of before stay" in capsys.readouterr().out


def test_a_childs_peak_memory_is_its_own():
    large = bytearray(300 * 2**20)
    answer = in_a_child("machine:memory_bytes")
    assert answer["result"] == memory_bytes()
    assert 0 < answer["peak_bytes"] < len(large)


@pytest.mark.parametrize("threads", [False, True])
def test_a_childs_threads_are_not_its_parents(monkeypatch, threads):
    """One exported variable had pinned sections that were to use both cores."""
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "3")
    answer = in_a_child("machine:machine", threads=threads)
    assert answer["blas_threads"] == (answer["result"]["cores"] if threads else 1)


def test_the_analyst_s_training_is_measured_in_processes_of_its_own(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(analyst_training, "ROWS_QUICK", 4_000)
    monkeypatch.setattr(analyst_training, "STEPS", ("ridge",))
    found = analyst_training.measure(quick=True)
    assert found["steps"]["ridge"]["accuracy"] > 0.7
    [judged] = found["goals"]
    assert judged["verdict"] == "met"
    assert judged["value"] == max(each["peak_bytes"] for each in found["steps"].values()) / 1e6
