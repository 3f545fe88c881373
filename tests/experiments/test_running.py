import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from experiments.harness import runner
from experiments.harness.runner import Run, Task
from experiments.harness.store import Results
from rich.console import Console


def task(name, repeat, expected):
    return Task(study=name, settings={}, repeat=repeat, expected=expected)


def test_a_run_measures_what_it_can_and_says_what_is_missing_or_failed(command_here, tmp_path):
    run = command_here("quick", "needing", "broken")
    said = run("all", "--workers", "1", status=1)
    for file in ("a.csv", "b.csv"):
        assert said.count(f"{file} is not in the folder that COBASIS_DATA names") == 1
    assert "Get the toy shop's file" in said
    assert "Needed by needing" in said
    assert said.count("failed: broken raises/0: ZeroDivisionError: by no means") == 1
    assert "raises/1" not in said
    kept = json.loads((tmp_path / "work" / "quick.json").read_text())
    assert {"seed", "versions", "settings", "source", "title", "unit"} <= set(kept)
    assert {"commits", "seconds", "wall", "repeats", "settings", "values"} == set(kept["cells"][0])
    assert [each["repeats"] for each in kept["cells"]] == [[0, 1]] * 3
    assert "odc/mlp" in (tmp_path / "work" / "evidence.md").read_text()
    assert "3 of 3 cells measured" in run("quick", "--repeats", "3")


def test_a_check_finds_a_digit_that_differs_and_leaves_times_out(command_here, tmp_path):
    run = command_here("quick")
    assert "Nothing is recorded" in run("quick", "--check", status=2)
    run("quick", "--record", "--repeats", "1")
    assert "3 of 3 numbers have the same digits" in run("quick", "--check")
    path = tmp_path / "recorded" / "quick.json"
    whole = json.loads(path.read_text())
    whole["cells"][0]["values"]["odc/mlp"][0] += 0.01
    whole["versions"]["numpy"] = "0.1"
    path.write_text(json.dumps(whole))
    said = run("quick", "--check", status=1)
    assert "2 of 3 numbers have the same digits; 3 times are not compared" in said
    assert "numpy 0.1 then" in said
    assert "evidence" not in said


def test_ctrl_c_leaves_whole_results_and_the_next_run_goes_on(command_here, tmp_path, monkeypatch):
    run, wait, waits = command_here("quick"), runner.wait, iter([False, False, True, *[False] * 9])

    def interrupted(*given):
        if next(waits):
            raise KeyboardInterrupt
        return wait(*given)

    monkeypatch.setattr(runner, "wait", interrupted)
    assert "the same command goes on" in run("quick", "--workers", "1", status=130)
    first = Results("quick", folder=tmp_path / "work").read().cells
    assert len(first) == 2
    run("quick")
    whole = Results("quick", folder=tmp_path / "work").read().cells
    assert (len(whole), {place: whole[place] for place in first}) == (6, first)


def test_a_process_that_dies_is_the_trouble_of_its_cell_alone(capsys):
    left = Run(rest=[], kept={}, until=0.0, console=Console(width=200))
    assert not left.keep(task("short", 0, 0.0), runner.worker().submit(os._exit, 9))
    assert left.failed == ["short 0"]
    assert "failed: short 0: its process ended; was it short of memory?" in capsys.readouterr().out


def test_what_is_late_by_the_grace_is_dropped_and_what_would_be_late_is_not_begun(monkeypatch):
    monkeypatch.setattr(runner, "worker", lambda: ThreadPoolExecutor(1))
    monkeypatch.setattr(runner, "answer", lambda _: time.sleep(1))
    rest = [task("long", 0, 100.0), task("short", 0, 0.0)]
    left = Run(rest=rest, kept={}, until=time.monotonic() + 0.5, console=Console())
    before = {*threading.enumerate()}
    left.finish(workers=2, grace=0.1)
    assert left.dropped == ["short 0"]
    assert {*threading.enumerate()} <= before  # at the end Python wakes no thread of theirs


def test_a_file_has_a_line_for_all_repeats_of_a_cell_and_gives_them_back_in_their_order(
    tmp_path, toys, toy_results
):
    study = toys()
    results = toy_results(study, repeats=3)
    stopped = list(results.cells)[1]
    results.cells[stopped].values.pop("odc", None)
    results.cells[stopped].values["undetermined, l=2"] = 1.0
    results.write(study)
    again = Results("toy", folder=tmp_path).read()
    assert again.cells == results.cells
    assert [cell.repeat for cell in again.cells.values()] == [0] * 6 + [1] * 6 + [2] * 6
    written = (tmp_path / "toy.json").read_text().splitlines()
    assert sum(line.startswith('{"settings"') for line in written) == len(study.cells)
