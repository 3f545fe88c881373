"""Cells measured side by side, one core each, until all are there or the time is up."""

import os
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing import connection
from statistics import median

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.store import RECORDED, Results, commit
from experiments.study import key, load
from experiments.workers import Task, Trouble, Worker

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
    """What became of a run.

    Attributes
    ----------
    measured : int
        Cells.
    failed : list of str
        Cells that raised.
    missing : dict of str to list of str
        What to do about a file that is not there, and the studies that need it.
    dropped : list of str
        Cells that were under way when the time, and the grace after it, was up.
    """

    measured: int = 0
    failed: list[str] = field(default_factory=list)
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
    """What is left to do, by when, and what came of it.

    Attributes
    ----------
    rest : list of Task
        To begin, in order.
    kept : dict of str to Results
        Where cells go, by study.
    until, grace : float
        When to begin nothing more, and how many seconds later to drop what is under way.
    console : rich.console.Console
        Where trouble is said.
    hoped, took : float
        Seconds that the cells so far were expected to take, and took on the clock.
    """

    rest: list[Task]
    kept: dict[str, Results]
    until: float
    grace: float
    console: Console
    hoped: float = 0.0
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
