import importlib
import sys

import pytest
from benchmarks import __main__ as command
from benchmarks import goals, machine, results
from benchmarks.__main__ import SECTIONS, Section
from benchmarks.machine import ONE_THREAD, in_a_child, memory_bytes

BROKEN = Section(title="none", work="machine:measure")
KEPT = {"title": "kept", "goals": [], "section_seconds": 600.0}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(results, "RESULT", tmp_path / "results" / "bench.json")

    def run(*arguments, status, broken=(), **kept):
        monkeypatch.setattr(command, "in_a_child", child)
        monkeypatch.setattr(command, "SECTIONS", SECTIONS | dict.fromkeys(broken, BROKEN))
        monkeypatch.setattr(sys, "argv", ["bench", *arguments])
        if kept:
            results.write(results.RESULT, results.whole(kept, quick=False))
        assert command.main() == status
        return capsys.readouterr().out, results.read(results.RESULT)

    return run


def child(work, **options):
    """Answer for one section, which is slower than asked; run any other."""
    missed = {"result": {"goals": [goals.goal("fast", 1.0, least=2.0)]}, "blas_threads": 1}
    return missed if work == SECTIONS["trees"].work else in_a_child(work, **options)


def test_a_quick_run_keeps_nothing_and_a_missed_goal_is_no_failure_but_a_section_that_raises(run):
    asked = ("--quick", "--only", "gopp", "--only", "trees")
    told, kept = run(*asked, status=1, broken=["gopp"])
    assert "1 missed, 1 failed" in told
    assert kept == {}
    assert "1 missed" in run("--quick", "--only", "trees", status=0)[0]


def test_sections_are_put_into_the_result_that_is_there_but_no_failure_over_figures(run):
    _, found = run("--only", "trees", status=0, exactness=KEPT)
    assert found["sections"]["exactness"]["title"] == "kept"
    took = found["sections"]["trees"]["section_seconds"]
    assert found["seconds"] == pytest.approx(600 + took)
    failed = {"title": "kept", "failed": "before"}
    asked = ("--only", "trees", "--only", "gopp")
    told, found = run(*asked, status=1, broken=["trees", "gopp"], trees=KEPT, gopp=failed)
    assert found["sections"]["trees"] == KEPT
    assert "machine:measure" in found["sections"]["gopp"]["failed"]
    assert "trees failed: its figures of before stay" in told


def test_a_childs_peak_memory_and_threads_are_its_own(monkeypatch):
    """One exported variable had pinned sections that were to use both cores."""
    large = bytearray(300 * 2**20)
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "3")
    pinned = in_a_child("machine:memory_bytes")
    assert (pinned["result"], pinned["blas_threads"]) == (memory_bytes(), 1)
    assert 0 < pinned["peak_bytes"] < len(large)
    free = in_a_child("machine:machine", threads=True)
    assert free["blas_threads"] == free["result"]["cores"] == machine.machine()["cores"]


def test_every_section_is_work_that_can_be_loaded():
    for each in SECTIONS.values():
        module, _, name = each.work.partition(":")
        assert callable(getattr(importlib.import_module(f"benchmarks.{module}"), name))
