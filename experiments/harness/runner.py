"""Cells measured side by side in processes of one core each, until all are there or time is up."""

import os
import signal
import threading
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import active_children, connection, get_context, parent_process
from statistics import median

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.data.sources import MissingDataError
from experiments.harness.store import Cell, Results, commit, recorded
from experiments.harness.study import Settings, key, load


@dataclass(frozen=True)
class Task:
    study: str
    settings: Settings
    repeat: int  # which repeat
    expected: float = 0.0  # seconds, from an earlier run; 0 where nobody knows

    @property
    def cell(self) -> tuple[str, str]:
        return self.study, key(self.settings, "")

    def __str__(self) -> str:
        return f"{self.study} {key(self.settings, str(self.repeat))}"


@dataclass(frozen=True, kw_only=True)
class Trouble:
    reason: str
    story: str = ""  # the traceback
    missing: bool = False  # whether a file of the evaluation data is not there


def answer(task: Task) -> Cell | Trouble:
    """Measure one cell, or say why not: one cell's trouble must not end the others."""
    started, clock = time.process_time(), time.monotonic()
    try:
        values = load(task.study).run(**task.settings, repeat=task.repeat)
    except MissingDataError as error:
        return Trouble(reason=str(error), missing=True)
    except Exception as error:  # noqa: BLE001 -- said by whoever asked
        reason = f"{type(error).__name__}: {error}"
        return Trouble(reason=reason, story=traceback.format_exc())
    return Cell(
        settings=task.settings,
        repeat=task.repeat,
        values={name: float(value) for name, value in values.items()},
        seconds=round(time.process_time() - started, 1),
        wall=round(time.monotonic() - clock, 1),
        commit=os.environ["COBASIS_COMMIT"],
    )


def worker() -> ProcessPoolExecutor:
    """Start a process that never hears Ctrl-C; its master does, and ends it."""
    spawning, end_with_us = get_context("spawn"), _end_with_the_master
    made = ProcessPoolExecutor(1, mp_context=spawning, initializer=end_with_us)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    made.submit(int)  # the process starts with the first work, and hears what its master hears now
    signal.signal(signal.SIGINT, before)
    return made


def _end_with_the_master() -> None:
    """End at once when the master was killed: nobody would take what comes."""

    def watch() -> None:
        if (master := parent_process()) is not None:
            connection.wait([master.sentinel])
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


ENVIRONMENT = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
}
"""One thread for each process, which keeps what it freed (glibc) for its next arrays.

A network on raw pixels makes ten arrays of 50 MB a step, and spends most of its time on new pages.
"""

GRACE = 300.0
"""Seconds after the time is up in which cells under way may still end; then they are dropped."""


def waiting(studies: Iterable[str], repeats: int | None, kept: dict[str, Results]) -> list[Task]:
    """List what is not measured yet, first repeats first; what is computed needs no more of them.

    How long each will take is a guess from what was kept or recorded: of the same cell, else of
    its study, else of all studies.
    """
    found = []
    told = {name: _seconds(recorded(name)) | _seconds(kept[name]) for name in studies}
    everywhere = [each for known in told.values() for each in known.values()]
    for name, known in told.items():
        study = load(name)
        guess = median(known.values() or everywhere or [0.0])
        for repeat in range(1 if study.exact else repeats or study.repeats):
            found += [
                Task(name, settings, repeat, expected=known.get(key(settings, ""), guess))
                for settings in study.cells
                if key(settings, str(repeat)) not in kept[name].cells
            ]
    return sorted(found, key=lambda task: task.repeat)


def _seconds(results: Results) -> dict[str, float]:
    return {key(cell.settings, ""): cell.seconds for cell in results.cells.values()}


def ordered(tasks: Iterable[Task]) -> list[Task]:
    """Return tasks in the order in which they should begin.

    Of one repeat every study's cheapest comes first and then the other cheap ones, so that a run
    that has to stop leaves something of every table, and most of nearly all.
    """
    cheap = sorted(tasks, key=lambda task: task.expected)
    first = {(task.repeat, task.study): task for task in reversed(cheap)}
    return sorted(cheap, key=lambda t: (t.repeat, first[t.repeat, t.study] is not t))


@dataclass(kw_only=True)
class Run:
    """What is left to do, by when, and what became of it."""

    rest: list[Task]  # to begin, in order
    kept: dict[str, Results]  # where cells go, by study
    until: float  # when to begin nothing more
    console: Console  # where trouble is said
    measured: int = 0
    failed: list[str] = field(default_factory=list)  # cells that raised
    missing: dict[str, list[str]] = field(default_factory=dict)  # studies by what they miss
    dropped: list[str] = field(default_factory=list)
    given_up: set[tuple[str, str]] = field(default_factory=set)

    def finish(self, *, workers: int, grace: float) -> None:
        """Measure cells and keep each as it comes; drop those that are late by the grace."""
        total = len(self.rest)
        idle = [worker() for _ in range(min(workers, total))]
        started = [*idle]
        busy: dict[Future[Cell | Trouble], tuple[Task, ProcessPoolExecutor]] = {}
        said = TextColumn("{task.description}")
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), said)
        with Progress(
            *columns, console=self.console, disable=not self.console.is_terminal
        ) as progress:
            bar = progress.add_task("", total=total)
            try:
                while True:
                    while idle and (task := self.next()):
                        begun = idle.pop()
                        busy[begun.submit(answer, task)] = task, begun
                    if not busy:
                        return
                    names = ", ".join(escape(str(task)) for task, _ in busy.values())
                    done = total - len(self.rest) - len(busy)
                    progress.update(bar, completed=done, description=names)
                    patience = max(0.0, self.until + grace - time.monotonic())
                    endless = patience == float("inf")
                    ready, _ = wait(busy, None if endless else patience, FIRST_COMPLETED)
                    for each in ready:
                        task, one = busy.pop(each)
                        if not self.keep(task, each):
                            started.append(one := worker())
                        idle.append(one)
                    if not ready:
                        self.dropped += [str(task) for task, _ in busy.values()]
                        return
            finally:
                for child in active_children():
                    child.kill()
                for pool in started:  # or at the end Python wakes threads that are ending
                    pool.shutdown(cancel_futures=True)

    def next(self) -> Task | None:
        while self.rest:
            task = self.rest.pop(0)
            in_time = time.monotonic() + task.expected < self.until
            if in_time and task.cell not in self.given_up:
                return task
        return None

    def keep(self, task: Task, told: "Future[Cell | Trouble]") -> bool:
        """Write what a process found, or note why there is nothing; tell whether it lives."""
        try:
            found = told.result()
        except BrokenProcessPool:
            self.note(task, Trouble(reason="its process ended; was it short of memory?"))
            return False
        if isinstance(found, Trouble):
            self.note(task, found)
            return True
        results = self.kept[task.study]
        results.cells[found.place] = found
        results.write(load(task.study))
        self.measured += 1
        if not self.console.is_terminal:
            self.console.print(f"{task}: {found.wall:.1f} s", markup=False, highlight=False)
        return True

    def note(self, task: Task, trouble: Trouble) -> None:
        """Note trouble; the cell's other repeats would have the same, and are not tried."""
        self.given_up.add(task.cell)
        if trouble.missing:
            needed_by = self.missing.setdefault(trouble.reason, [])
            if task.study not in needed_by:
                needed_by.append(task.study)
        else:
            self.failed.append(str(task))
            self.console.print(f"failed: {task}: {trouble.reason}", markup=False, style="red")
            self.console.print(trouble.story, markup=False, style="dim")


def run(
    tasks: list[Task], kept: dict[str, Results], *, console: Console, until: float, workers: int
) -> Run:
    os.environ.update(ENVIRONMENT, COBASIS_COMMIT=commit())
    left = max(0.0, until - time.monotonic())
    found = Run(rest=ordered(tasks), kept=kept, until=until, console=console)
    found.finish(workers=workers, grace=min(GRACE, left / 10))
    return found
