"""A run survives a section that fails, goes on where it was killed, and keeps whole results."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import analyst_training, goals, results, tables
from benchmarks.children import in_a_child
from benchmarks.machine import ONE_THREAD, memory_bytes
from benchmarks.sections import SECTIONS, Section
from rich.console import Console

ROOT = Path(__file__).parents[2]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Results and partial results in a folder of the test's own."""
    monkeypatch.setattr(results, "RESULT", tmp_path / "results" / "bench.json")
    monkeypatch.setattr(results.tempfile, "tempdir", str(tmp_path))
    return tmp_path


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    return command.main()


@pytest.mark.usefixtures("elsewhere")
def test_a_section_that_raises_is_recorded_and_the_run_goes_on(monkeypatch, capsys):
    broken = {"broken": Section(title="none", module="machine"), "gpu": SECTIONS["gpu"]}
    monkeypatch.setattr(command, "SECTIONS", broken)
    assert run(monkeypatch, "--quick") == 1
    told = capsys.readouterr().out
    assert "machine:measure failed" in told
    assert "gpu" in told
    assert "1 failed" in told


def test_a_quick_run_keeps_nothing(elsewhere, monkeypatch):
    assert run(monkeypatch, "--quick", "--only", "gpu") == 0
    assert list(elsewhere.iterdir()) == []


@pytest.mark.usefixtures("elsewhere")
def test_a_finished_section_is_not_measured_again_after_a_kill(monkeypatch, capsys):
    done = {"title": "of another run", "goals": []}
    results.Partial(quick=True).write("gpu", done)
    run(monkeypatch, "--quick", "--only", "gpu")
    assert "polar on a graphics card" not in capsys.readouterr().out
    assert results.Partial(quick=True).read("gpu") is None


@pytest.mark.usefixtures("elsewhere")
def test_one_section_alone_is_put_into_the_result_that_is_there(monkeypatch):
    kept = {"exactness": {"title": "kept", "goals": []}}
    results.commit_to_disk(results.whole(kept, quick=False, seconds=7))
    assert run(monkeypatch, "--only", "gpu") == 0
    found = json.loads(results.RESULT.read_text(encoding="utf-8"))
    assert list(found["sections"]) == ["exactness", "gpu"]
    assert found["sections"]["exactness"]["title"] == "kept"
    assert {"seed", "goals", "fig_6"} <= set(found)
    assert {"commit", "versions", "machine"} <= set(found["sections"]["gpu"])


@pytest.mark.usefixtures("elsewhere")
def test_the_time_of_a_result_is_that_of_all_its_sections(monkeypatch):
    kept = {"exactness": {"title": "kept", "goals": [], "section_seconds": 600.0}}
    results.commit_to_disk(results.whole(kept, quick=False, seconds=7))
    run(monkeypatch, "--only", "gpu")
    found = results.read_committed()
    took = found["sections"]["gpu"]["section_seconds"]
    assert found["seconds"] == pytest.approx(600 + took)


@pytest.mark.usefixtures("elsewhere")
def test_a_section_that_fails_alone_leaves_its_good_figures(monkeypatch, capsys):
    kept = {"gpu": {"title": "kept", "goals": []}}
    results.commit_to_disk(results.whole(kept, quick=False, seconds=7))
    monkeypatch.setattr(command, "SECTIONS", {"gpu": Section(title="none", module="machine")})
    assert run(monkeypatch, "--only", "gpu") == 1
    assert results.read_committed()["sections"] == kept
    assert "its figures of before stay" in capsys.readouterr().out


@pytest.mark.usefixtures("elsewhere")
def test_a_section_that_failed_before_and_again_is_told_with_its_last_failure(monkeypatch):
    kept = {"gpu": {"title": "kept", "failed": "before"}}
    results.commit_to_disk(results.whole(kept, quick=False, seconds=7))
    monkeypatch.setattr(command, "SECTIONS", {"gpu": Section(title="none", module="machine")})
    run(monkeypatch, "--only", "gpu")
    assert "machine:measure" in results.read_committed()["sections"]["gpu"]["failed"]


@pytest.mark.usefixtures("elsewhere")
def test_a_missed_goal_is_printed_and_the_run_did_not_fail(monkeypatch, capsys):
    missed = {"title": "of another run", "goals": [goals.goal("fast", 1.0, least=2.0)]}
    results.Partial(quick=True).write("gpu", missed)
    assert run(monkeypatch, "--quick", "--only", "gpu") == 0
    assert "1 missed" in capsys.readouterr().out


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


def test_the_goals_table_says_met_and_missed():
    judged = {"goal": "fast", "asked": ">= 2x", "figure": "1.5x", "where": "here", "section": "s"}
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(tables.goals_table([{**judged, "verdict": "missed"}]))
    assert "missed" in console.export_text()
    assert tables.verdicts([{"verdict": "met"}, {"verdict": "met"}]) == "2 met"


def test_the_command_line_names_every_section():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--help"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert all(name in done.stdout for name in SECTIONS)


def test_the_analyst_s_training_is_measured_in_processes_of_its_own(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(analyst_training, "ROWS_QUICK", 4_000)
    monkeypatch.setattr(analyst_training, "STEPS", ("ridge",))
    found = analyst_training.measure(quick=True)
    assert found["steps"]["ridge"]["accuracy"] > 0.7
    [judged] = found["goals"]
    assert judged["verdict"] == "met"
    assert judged["value"] == max(each["peak_bytes"] for each in found["steps"].values()) / 1e6
