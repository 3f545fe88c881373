"""The papers' tables and figures, run again: ``./run.sh experiment NAME [--repeats N]``."""

import argparse
import re
import time
from fnmatch import fnmatch

from rich.console import Console

from experiments.harness import runner
from experiments.harness.page import write_page
from experiments.harness.runner import Task
from experiments.harness.statistics import summary
from experiments.harness.store import (
    RECORDED,
    WORK,
    DamagedResultsError,
    Results,
    recorded,
    versions,
)
from experiments.harness.study import key, load, names


def check(name: str, again: Results, console: Console) -> bool:
    """Tell whether numbers, but no times, have the digits that are printed of the recorded ones."""
    study, before = load(name), recorded(name)
    repeats, compared, left_out = before.values(), 0, 0
    differ: list[str] = []
    for place, cell in again.cells.items():
        for value_name, value in before.cells[place].values.items():
            number = key(cell.settings, value_name)
            if "seconds" in number or any(fnmatch(number, pattern) for pattern in study.times):
                left_out += 1
                continue
            compared += 1
            printed = summary(repeats[number]).printed
            there = cell.values.get(value_name)
            now = "nothing" if there is None else printed(there)
            if printed(value) != now:
                differ.append(f"  {number}: {printed(value)} recorded, {now} now")
    same = f"{compared - len(differ)} of {compared} numbers have the same digits"
    then = before.recorded_with
    other = [f"{n} {then[n]} then, {v} here" for n, v in versions().items() if then.get(n, v) != v]
    told = [f"  other versions: {'; '.join(other)}"] if differ and other else []
    for line in (f"{name}: {same}; {left_out} times are not compared", *differ, *told):
        console.print(line, markup=False, highlight=False)
    return not differ


MINUTES = {"m": 60.0, "h": 3600.0, "s": 1.0}
FAILED, WRONG, INTERRUPTED = 1, 2, 130


def main() -> int:
    console = Console(stderr=True, soft_wrap=True)
    asked = options()
    studies = names() if asked.name == "all" else [asked.name]
    try:
        return (again if asked.check else measure)(studies, asked, console)
    except KeyboardInterrupt:
        console.print(
            "Stopped; nothing is changed."
            if asked.check
            else "Stopped; every cell that was done is kept, and the same command goes on."
        )
        return INTERRUPTED
    except DamagedResultsError as error:
        console.print(str(error), markup=False)
        return WRONG


def measure(studies: list[str], asked: argparse.Namespace, console: Console) -> int:
    """Measure what is missing and write the page; 1 where cells failed, 2 where data is missing."""
    kept = {name: Results(name, folder=RECORDED if asked.record else WORK) for name in studies}
    if not asked.fresh:
        for results in kept.values():
            results.read()
    tasks = runner.waiting(studies, asked.repeats, kept)
    outcome = execute(tasks, kept, asked=asked, console=console)
    shown = [name for name in names() if name in kept or Results(name, folder=WORK).path.exists()]
    pages = {name: kept.get(name) or Results(name).read() for name in shown}
    page = write_page(shown, pages, WORK)
    console.print(f"{outcome.measured} of {len(tasks)} cells measured; tables in {page}")
    left = len(tasks) - outcome.measured - len(outcome.failed)
    if left and not outcome.missing and not outcome.failed:
        console.print("The time was up before the rest; the same command goes on with it.")
    return status(outcome)


def again(studies: list[str], asked: argparse.Namespace, console: Console) -> int:
    """Measure repeat 0 again and compare; 1 where digits differ, 2 where nothing is recorded."""
    kept = {name: Results(name, folder=WORK / "check") for name in studies}
    tasks = [
        Task(name, cell.settings, 0, expected=cell.seconds)
        for name in studies
        for cell in recorded(name).cells.values()
        if cell.repeat == 0 and cell.settings in load(name).cells
    ]
    if not tasks:
        console.print(f"Nothing is recorded in {RECORDED}; measure with --record first.")
        return WRONG
    outcome = execute(tasks, kept, asked=asked, console=console)
    alike = [check(name, kept[name], console) for name in dict.fromkeys(t.study for t in tasks)]
    if outcome.measured < len(tasks):
        console.print(f"{len(tasks) - outcome.measured} of {len(tasks)} cells were not measured.")
    return status(outcome) if all(alike) else FAILED


def execute(
    tasks: list[Task], kept: dict[str, Results], *, asked: argparse.Namespace, console: Console
) -> runner.Run:
    until = time.monotonic() + asked.budget
    outcome = runner.run(tasks, kept, console=console, until=until, workers=asked.workers)
    for each in outcome.dropped:
        console.print(f"dropped, the time was up: {each}", markup=False)
    for said, needed_by in outcome.missing.items():
        told = f"{said} Needed by {', '.join(needed_by)}."
        console.print(told, markup=False, highlight=False)
    return outcome


def status(outcome: runner.Run) -> int:
    return FAILED if outcome.failed else WRONG if outcome.missing else 0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run.sh experiment", description=__doc__)
    known = [*names(), "all"]
    parser.add_argument("name", choices=known, metavar="NAME", help=", ".join(known))
    told = "how many of each cell (default: as many as the study says)"
    parser.add_argument("--repeats", type=count, help=told)
    told = "stop after 90m, 2h or 300s"
    parser.add_argument("--budget", type=seconds, default=float("inf"), help=told)
    parser.add_argument("--workers", type=count, default=2, help="cells at a time (default 2)")
    for flag, told in (
        ("--fresh", "measure again what is there"),
        ("--record", f"write to {RECORDED.name}/, which the docs show"),
        ("--check", f"measure repeat 0 again and compare its digits with {RECORDED.name}/"),
    ):
        parser.add_argument(flag, action="store_true", help=told)
    return parser.parse_args()


def seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"'{text}' is no time; write 90m, 2h or 300s")
    return float(found[1]) * MINUTES[found[2]]


def count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of at least 1")
    return int(text)
