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
from multiprocessing import connection, get_context, parent_process
from statistics import median

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.data.sources import MissingDataError
from experiments.harness.store import RECORDED, Cell, Results, commit
from experiments.harness.study import Settings, key, load


@dataclass(frozen=True, kw_only=True)
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


def measured(task: Task) -> Cell:
    """Measure one cell."""
    started, clock = time.process_time(), time.monotonic()
    values = load(task.study).run(task.settings, repeat=task.repeat)
    return Cell(
        settings=task.settings,
        repeat=task.repeat,
        values={name: float(value) for name, value in values.items()},
        seconds=round(time.process_time() - started, 1),
        wall=round(time.monotonic() - clock, 1),
        commit=os.environ["COBASIS_COMMIT"],
    )


def answer(task: Task) -> Cell | Trouble:
    """Measure one cell, or say why not: one cell's trouble must not end the others."""
    try:
        return measured(task)
    except MissingDataError as error:
        return Trouble(reason=str(error), missing=True)
    except Exception as error:  # noqa: BLE001 -- said by whoever asked
        reason = f"{type(error).__name__}: {error}"
        return Trouble(reason=reason, story=traceback.format_exc())


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


@dataclass
class Outcome:
    """What became of a run."""

    measured: int = 0
    failed: list[str] = field(default_factory=list)  # cells that raised
    missing: dict[str, list[str]] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)


def waiting(studies: Iterable[str], repeats: int | None, kept: dict[str, Results]) -> list[Task]:
    """List what is not measured yet, first repeats first; what is computed needs no more of them.

    How long each will take is a guess from what was kept or recorded: of the same cell, else of
    its study, else of all studies.
    """
    found = []
    studies = list(studies)
    told = {
        name: {**_seconds(Results(name, folder=RECORDED).read()), **_seconds(kept[name])}
        for name in studies
    }
    everywhere = [each for known in told.values() for each in known.values()]
    for name, known in told.items():
        study = load(name)
        guess = median(known.values() or everywhere or [0.0])
        wanted = study.repeats if repeats is None or study.exact else repeats
        for repeat in range(wanted):
            for settings in study.cells:
                if key(settings, str(repeat)) not in kept[name].cells:
                    task = Task(
                        study=name,
                        settings=settings,
                        repeat=repeat,
                        expected=known.get(key(settings, ""), guess),
                        shared=study.shared(settings),
                    )
                    found.append(task)
    return sorted(found, key=lambda task: task.repeat)


def _seconds(results: Results) -> dict[str, float]:
    return {key(cell.settings, ""): cell.seconds for cell in results.cells.values()}


def ordered(tasks: Iterable[Task], *, available: float) -> list[Task]:
    """Return tasks in the order in which they should begin.

    Of one repeat the dear ones come first, so that none is left alone at the end. Where a repeat
    does not fit in the seconds that are available, every study's cheapest comes first and then the
    other cheap ones, so that every table has something, and most have nearly all. Cells of one
    round stand together, and count as one.
    """
    found: list[Task] = []
    by_repeat: dict[int, list[Task]] = {}
    for task in tasks:
        by_repeat.setdefault(task.repeat, []).append(task)
    for _, each in sorted(by_repeat.items()):
        rounds: dict[str, float] = defaultdict(float)
        for task in each:
            rounds[task.round] += task.expected
        available -= sum(rounds.values())
        if available >= 0:
            dear = sorted(each, key=lambda task: -task.expected)
            found += sorted(dear, key=lambda task: (-rounds[task.round], task.round))
            continue
        cheap = sorted(each, key=lambda task: task.expected)
        cheapest: dict[str, Task] = {}
        for task in cheap:
            cheapest.setdefault(task.study, task)
        together = sorted(cheap, key=lambda task: (rounds[task.round], task.round))
        found += sorted(together, key=lambda task: cheapest[task.study] is not task)
    return found


def run(
    tasks: list[Task], kept: dict[str, Results], *, console: Console, until: float, workers: int
) -> Outcome:
    """Measure cells and keep each as it comes.

    A cell that would not be done in time, by what an earlier run says, is not begun, and none is
    begun after the time is up.
    """
    os.environ.update(ENVIRONMENT, COBASIS_COMMIT=commit())
    left = max(0.0, until - time.monotonic())
    at_work = Crew(
        rest=ordered(tasks, available=workers * left),
        kept=kept,
        until=until,
        grace=min(GRACE, left / 10),
        console=console,
    )
    crew = [Worker() for _ in range(min(workers, len(tasks)))]
    with _progress(console) as progress:
        bar = progress.add_task("", total=len(tasks))
        try:
            while at_work.go_on(crew):
                under_way = [escape(str(each.task)) for each in crew if each.task]
                done = len(tasks) - len(at_work.rest) - len(under_way)
                progress.update(bar, completed=done, description=", ".join(under_way))
                at_work.take(crew)
        finally:
            for each in crew:
                each.stop()
    return at_work.outcome


@dataclass(kw_only=True)
class Crew:
    """What is left to do, by when, and what came of it."""

    rest: list[Task]  # to begin, in order
    kept: dict[str, Results]  # where cells go, by study
    until: float  # when to begin nothing more, and how many seconds later to drop what is under way
    grace: float
    console: Console  # where trouble is said
    hoped: float = 0.0  # seconds that the cells so far were expected to take, and took on the clock
    took: float = 0.0
    outcome: Outcome = field(default_factory=Outcome)
    given_up: set[tuple[str, str]] = field(default_factory=set)
    worked: set[tuple[str, str]] = field(default_factory=set)

    def go_on(self, crew: list[Worker]) -> bool:
        """Begin what can be begun; tell whether anything is under way."""
        for each in crew:
            task = None if each.task else self.next(crew)
            if task:
                each.begin(task)
        return any(each.task for each in crew)

    def next(self, crew: list[Worker]) -> Task | None:
        """Return the next task that would be done in time.

        While a cell is tried for the first time its other repeats wait: they may be given up. What
        shares a round with another process's cell comes last, since that one has its uploads.
        """
        under_way = [each.task for each in crew if each.task]
        untried = {task.cell for task in under_way} - self.worked
        rounds = {task.round for task in under_way}
        waiting = [task for task in self.rest if task.cell not in untried]
        for task in sorted(waiting, key=lambda task: task.round in rounds):
            self.rest.remove(task)
            pace = self.took / self.hoped if self.hoped else 1.0
            in_time = time.monotonic() + task.expected * pace < self.until
            if in_time and task.cell not in self.given_up:
                return task
        return None

    def take(self, crew: list[Worker]) -> None:
        """Wait for the next cell and keep it; when the grace is over, drop what is under way."""
        busy = {each.connection: each for each in crew if each.task}
        patience = self.until + self.grace - time.monotonic()
        endless = patience == float("inf")
        ready = connection.wait(list(busy), None if endless else max(0.0, patience))
        for one in ready:
            worker = next(each for mark, each in busy.items() if mark is one)
            self.keep(worker)
            if not worker.process.is_alive():
                crew[crew.index(worker)] = Worker()
        if not ready:
            self.outcome.dropped += [str(each.task) for each in busy.values()]
            self.rest.clear()
            for each in busy.values():
                each.task = None

    def keep(self, worker: Worker) -> None:
        """Write what a process found, or note why there is nothing."""
        task = worker.task
        if task is None:  # pragma: no cover -- only busy workers are asked
            return
        took = time.monotonic() - worker.started
        found = worker.result()
        if isinstance(found, Trouble):
            self.note(task, found)
            return
        if task.expected > 1:
            self.hoped += task.expected
            self.took += took
        results = self.kept[task.study]
        results.cells[found.place] = found
        results.write(load(task.study))
        self.worked.add(task.cell)
        self.outcome.measured += 1
        if not self.console.is_terminal:
            self.console.print(f"{task}: {took:.1f} s", markup=False, highlight=False)

    def note(self, task: Task, trouble: Trouble) -> None:
        """Note trouble; the cell's other repeats would have the same, and are not tried."""
        self.given_up.add(task.cell)
        if trouble.missing:
            needed_by = self.outcome.missing.setdefault(trouble.reason, [])
            if task.study not in needed_by:
                needed_by.append(task.study)
            return
        self.outcome.failed.append(str(task))
        self.console.print(f"failed: {task}: {trouble.reason}", markup=False, style="red")
        self.console.print(trouble.story, markup=False, style="dim")


def _progress(console: Console) -> Progress:
    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
        disable=not console.is_terminal,
    )
