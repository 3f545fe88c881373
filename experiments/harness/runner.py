"""Cells measured side by side in processes of one core each, until all are there or time is up."""

import os
import signal
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing import connection, get_context, parent_process
from statistics import median
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.data.sources import MissingDataError
from experiments.harness.store import Cell, Results, commit, recorded
from experiments.harness.study import Settings, key, load


@dataclass(frozen=True)
class Task:
    """One cell that is still to be measured."""

    study: str
    settings: Settings
    repeat: int  # which repeat
    expected: float = 0.0  # seconds, from an earlier run; 0 where nobody knows
    shared: str = ""  # whose uploads it needs, where other cells need the same

    @property
    def round(self) -> str:
        """What cells have in common that one process should measure, one after another."""
        return f"{self.study} {self.repeat} {self.shared}" if self.shared else str(self)

    @property
    def cell(self) -> tuple[str, str]:
        """What all its repeats share."""
        return self.study, key(self.settings, "")

    def __str__(self) -> str:
        """Say which it is."""
        return f"{self.study} {key(self.settings, str(self.repeat))}"


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Why there is no cell."""

    reason: str
    story: str = ""  # the traceback
    missing: bool = False  # whether a file of the evaluation data is not there


def answer(task: Task) -> Cell | Trouble:
    """Measure one cell, or say why not: one cell's trouble must not end the others."""
    started, clock = time.process_time(), time.monotonic()
    try:
        values = load(task.study).run(task.settings, repeat=task.repeat)
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


def serve(asked: "connection.Connection[Cell | Trouble, Task]") -> None:
    """Answer until nobody asks any more."""
    threading.Thread(target=_end_with_the_master, daemon=True).start()
    while True:
        try:
            task = asked.recv()
        except EOFError:
            return
        asked.send(answer(task))


def _end_with_the_master() -> None:
    """End at once when the master was killed: nobody would take what comes."""
    master = parent_process()
    if master is not None:
        connection.wait([master.sentinel])
        os._exit(1)


class Worker:
    """One process, and what it is at."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs,), daemon=True)
        with _deaf_to_interrupts():
            self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.started = 0.0

    def begin(self, task: Task) -> None:
        """Hand over a cell."""
        self.task, self.started = task, time.monotonic()
        self.connection.send(task)

    def result(self) -> Cell | Trouble:
        """Take what it found; call when something is there to take."""
        self.task = None
        try:
            found: Cell | Trouble = self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            return Trouble(reason=f"its process ended with {code}; was it short of memory?")
        return found

    def stop(self) -> None:
        """End the process, whatever it is at."""
        self.process.kill()
        self.process.join()
        self.connection.close()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let a process begin that never hears Ctrl-C; its master does, and ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
                Task(
                    name,
                    settings,
                    repeat,
                    expected=known.get(key(settings, ""), guess),
                    shared=study.shared(settings),
                )
                for settings in study.cells
                if key(settings, str(repeat)) not in kept[name].cells
            ]
    return sorted(found, key=lambda task: task.repeat)


def _seconds(results: Results) -> dict[str, float]:
    return {key(cell.settings, ""): cell.seconds for cell in results.cells.values()}


def ordered(tasks: Iterable[Task]) -> list[Task]:
    """Return tasks in the order in which they should begin.

    Of one repeat every study's cheapest comes first and then the other cheap ones, so that a run
    that has to stop leaves something of every table, and most of nearly all. Cells of one round
    stand together, and count as one.
    """
    found: list[Task] = []
    for _, each in groupby(sorted(tasks, key=lambda task: task.repeat), lambda task: task.repeat):
        cheap = sorted(each, key=lambda task: task.expected)
        rounds: dict[str, float] = defaultdict(float)
        for task in cheap:
            rounds[task.round] += task.expected
        first = {task.study: task for task in reversed(cheap)}
        together = sorted(cheap, key=lambda task: (rounds[task.round], task.round))
        found += sorted(together, key=lambda task: first[task.study] is not task)
    return found


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
        crew = [Worker() for _ in range(min(workers, total))]
        with _progress(self.console) as progress:
            bar = progress.add_task("", total=total)
            try:
                while under_way := self.begin(crew):
                    done = total - len(self.rest) - len(under_way)
                    said = ", ".join(escape(str(task)) for task in under_way)
                    progress.update(bar, completed=done, description=said)
                    self.take(crew, patience=self.until + grace - time.monotonic())
            finally:
                for each in crew:
                    each.stop()

    def begin(self, crew: list[Worker]) -> list[Task]:
        """Begin what can be begun; return what is under way."""
        for each in crew:
            task = None if each.task else self.next(crew)
            if task:
                each.begin(task)
        return [each.task for each in crew if each.task]

    def next(self, crew: list[Worker]) -> Task | None:
        """Return the next task that is done in time, those of another process's round last."""
        rounds = {each.task.round for each in crew if each.task}
        for task in sorted(self.rest, key=lambda task: task.round in rounds):
            self.rest.remove(task)
            in_time = time.monotonic() + task.expected < self.until
            if in_time and task.cell not in self.given_up:
                return task
        return None

    def take(self, crew: list[Worker], *, patience: float) -> None:
        """Wait for the next cell and keep it; where patience ends, drop what is under way."""
        busy: dict[Any, Worker] = {each.connection: each for each in crew if each.task}
        endless = patience == float("inf")
        ready = connection.wait(list(busy), None if endless else max(0.0, patience))
        for one in ready:
            self.keep(busy[one])
            if not busy[one].process.is_alive():
                crew[crew.index(busy[one])] = Worker()
        if not ready:
            self.dropped += [str(each.task) for each in busy.values()]
            self.rest.clear()
            for each in busy.values():
                each.task = None

    def keep(self, worker: Worker) -> None:
        """Write what a process found, or note why there is nothing."""
        task, took = worker.task, time.monotonic() - worker.started
        found = worker.result()
        if task is None:  # pragma: no cover -- only busy workers are asked
            return
        if isinstance(found, Trouble):
            self.note(task, found)
            return
        results = self.kept[task.study]
        results.cells[found.place] = found
        results.write(load(task.study))
        self.measured += 1
        if not self.console.is_terminal:
            self.console.print(f"{task}: {took:.1f} s", markup=False, highlight=False)

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
    """Measure cells side by side, and say what became of them."""
    os.environ.update(ENVIRONMENT, COBASIS_COMMIT=commit())
    left = max(0.0, until - time.monotonic())
    found = Run(rest=ordered(tasks), kept=kept, until=until, console=console)
    found.finish(workers=workers, grace=min(GRACE, left / 10))
    return found


def _progress(console: Console) -> Progress:
    said = TextColumn("{task.description}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), said)
    return Progress(*columns, console=console, disable=not console.is_terminal)
