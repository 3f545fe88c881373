"""The papers' tables and figures, run again: ``./run.sh experiment NAME [--repeats N]``."""

import argparse
import importlib
import os
import pkgutil
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

from rich.console import Console

from experiments import data
from experiments.data.sources import Source
from experiments.harness import runner
from experiments.harness.page import write_page
from experiments.harness.runner import Task
from experiments.harness.statistics import summary
from experiments.harness.store import RECORDED, WORK, DamagedResultsError, Results, versions
from experiments.harness.study import Study, key, load, names


def told(missing: Mapping[str, list[str]]) -> list[str]:
    """Return what to say about missing files, each once.

    A cell stops at the first file that it misses; whoever gets that one needs its neighbours too,
    so that all that are absent from the same folder are named.
    """
    where = os.environ.get("COBASIS_DATA")
    known = {source.path: source for source in sources()}
    folders = {path.split("/")[0] for path in known for said in missing if said.startswith(path)}
    absent = [
        source
        for path, source in known.items()
        if path.split("/")[0] in folders and not (where and (Path(where) / path).is_file())
    ]
    rest = [said for said in missing if not said.startswith(tuple(known))]
    lines = [f"{said} Needed by {', '.join(missing[said])}." for said in rest]
    if absent:
        count = "1 file" if len(absent) == 1 else f"{len(absent)} files"
        needed_by = dict.fromkeys(name for said in missing for name in missing[said])
        lines.append(
            f"The folder that COBASIS_DATA names ({where or 'not set'}) lacks {count}, "
            f"needed by {', '.join(needed_by)}. To be put there, and where from:"
        )
        lines += [f"  {source.path}: {source.origin}" for source in absent]
    return lines


def sources() -> Iterator[Source]:
    """Yield every file that a loader knows."""
    for module in pkgutil.iter_modules(data.__path__):
        for value in vars(importlib.import_module(f"{data.__name__}.{module.name}")).values():
            yield from _within(value)


def _within(value: object) -> Iterator[Source]:
    if isinstance(value, Source):
        yield value
    elif isinstance(value, Mapping):
        yield from _within(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _within(each)


@dataclass(kw_only=True)
class Check:
    """What a second measurement of one study says."""

    compared: int = 0  # numbers that both have
    differ: dict[str, tuple[str, str]] = field(default_factory=dict)
    left_out: int = 0  # times, which no second run repeats
    versions: list[str] = field(default_factory=list)


def to_check(name: str) -> list[Task]:
    """List the cells of repeat 0 that are recorded, each with the seconds it took."""
    study, recorded = load(name), Results(name, folder=RECORDED).read().cells
    return [
        Task(
            study=name,
            settings=settings,
            repeat=0,
            expected=recorded[place].seconds,
            shared=study.shared(settings),
        )
        for settings in study.cells
        if (place := key(settings, "0")) in recorded
    ]


def check(name: str, again: Results) -> Check:
    """Compare what was measured again with what is recorded, digit by digit.

    A number counts with as many digits as the documentation prints of it.
    """
    study, recorded = load(name), Results(name, folder=RECORDED).read()
    found = Check(versions=_other_versions(recorded.recorded_with))
    repeats = recorded.values()
    for place, cell in again.cells.items():
        for value_name, value in recorded.cells[place].values.items():
            number = key(cell.settings, value_name)
            if is_time(study, number):
                found.left_out += 1
                continue
            found.compared += 1
            printed = summary(repeats[number]).printed
            there = cell.values.get(value_name)
            new = "nothing" if there is None else printed(there)
            if printed(value) != new:
                found.differ[number] = (printed(value), new)
    return found


def is_time(study: Study, number: str) -> bool:
    """Tell whether a number is a time."""
    return "seconds" in number or any(fnmatch(number, pattern) for pattern in study.times)


def _other_versions(then: Mapping[str, str]) -> list[str]:
    return [
        f"{name} {then[name]} then, {now} here"
        for name, now in versions().items()
        if name in then and then[name] != now
    ]


MINUTES = {"m": 60.0, "h": 3600.0, "s": 1.0}
FAILED, WRONG, INTERRUPTED = 1, 2, 130


def main() -> int:
    """Measure what is missing, or check what is recorded."""
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
    tasks = [task for name in studies for task in to_check(name)]
    if not tasks:
        console.print(f"Nothing is recorded in {RECORDED}; measure with --record first.")
        return WRONG
    outcome = execute(tasks, kept, asked=asked, console=console)
    differ = False
    for name in dict.fromkeys(task.study for task in tasks):
        found = check(name, kept[name])
        differ = differ or bool(found.differ)
        console.print(
            f"{name}: {found.compared - len(found.differ)} of {found.compared} numbers have the "
            f"same digits; {found.left_out} times are not compared",
            highlight=False,
        )
        for number, (then, now) in found.differ.items():
            console.print(f"  {number}: {then} recorded, {now} now", markup=False, highlight=False)
        if found.differ and found.versions:
            console.print(f"  other versions: {'; '.join(found.versions)}", markup=False)
    if outcome.measured < len(tasks):
        console.print(f"{len(tasks) - outcome.measured} of {len(tasks)} cells were not measured.")
    return FAILED if differ else status(outcome)


def execute(
    tasks: list[Task],
    kept: dict[str, Results],
    *,
    asked: argparse.Namespace,
    console: Console,
) -> runner.Outcome:
    """Run, and say what is missing and what was dropped."""
    until = time.monotonic() + asked.budget
    outcome = runner.run(tasks, kept, console=console, until=until, workers=asked.workers)
    for each in outcome.dropped:
        console.print(f"dropped, the time was up: {each}", markup=False)
    for line in told(outcome.missing) if outcome.missing else ():
        console.print(line, markup=False, highlight=False)
    return outcome


def status(outcome: runner.Outcome) -> int:
    """Return the exit status."""
    return FAILED if outcome.failed else WRONG if outcome.missing else 0


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="./run.sh experiment", description=__doc__)
    known = [*names(), "all"]
    parser.add_argument("name", choices=known, metavar="NAME", help=", ".join(known))
    parser.add_argument(
        "--repeats", type=count, help="how many of each cell (default: as many as the study says)"
    )
    parser.add_argument(
        "--budget", type=seconds, default=float("inf"), help="stop after 90m, 2h or 300s"
    )
    parser.add_argument("--workers", type=count, default=2, help="cells at a time (default 2)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    parser.add_argument(
        "--record", action="store_true", help=f"write to {RECORDED.name}/, which the docs show"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help=f"measure repeat 0 again and compare its digits with {RECORDED.name}/",
    )
    return parser.parse_args()


def seconds(text: str) -> float:
    """Read a time such as 90m."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None:
        msg = f"'{text}' is no time; write 90m, 2h or 300s"
        raise argparse.ArgumentTypeError(msg)
    return float(found[1]) * MINUTES[found[2]]


def count(text: str) -> int:
    """Read a number of at least one."""
    if not text.isdecimal() or int(text) < 1:
        msg = f"'{text}' is no number of at least 1"
        raise argparse.ArgumentTypeError(msg)
    return int(text)
