"""Cells measured side by side, one core each, until all are there or the time is up."""

import multiprocessing
import os
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from experiments.store import RECORDED, Cell, Results, commit
from experiments.study import Settings, Study, key, load

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, kw_only=True)
class Task:
    """One cell that is still to be measured.

    Attributes
    ----------
    study : str
        Whose.
    settings : Settings
        Which.
    repeat : int
        Which repeat.
    expected : float
        Seconds, from an earlier run; 0 where nobody knows.
    """

    study: str
    settings: Settings
    repeat: int
    expected: float = 0.0


def waiting(studies: Iterable[str], repeats: int | None, kept: dict[str, Results]) -> list[Task]:
    """List what is not measured yet: first repeats first, and of a repeat the dear ones first."""
    found = []
    for name in studies:
        study = load(name)
        known = {**_seconds(Results(name, folder=RECORDED).read()), **_seconds(kept[name])}
        for repeat in range(study.repeats if repeats is None else repeats):
            for settings in study.cells:
                if key(settings, str(repeat)) not in kept[name].cells:
                    expected = known.get(key(settings, ""), 0.0)
                    found.append(
                        Task(study=name, settings=settings, repeat=repeat, expected=expected)
                    )
    return sorted(found, key=lambda task: (task.repeat, -task.expected))


def _seconds(results: Results) -> dict[str, float]:
    return {key(cell.settings, ""): cell.seconds for cell in results.cells.values()}


def measured(task: Task) -> Cell:
    """Measure one cell; called in a process of its own."""
    started = time.process_time()
    values = load(task.study).run(task.settings, repeat=task.repeat)
    return Cell(
        settings=task.settings,
        repeat=task.repeat,
        values={name: float(value) for name, value in values.items()},
        seconds=round(time.process_time() - started, 1),
        commit=os.environ["COBASIS_COMMIT"],
    )


def run(
    tasks: list[Task], kept: dict[str, Results], *, console: Console, until: float, workers: int
) -> list[str]:
    """Measure cells and keep each as it comes; return what failed.

    A cell that an earlier run says would not be done in time is not begun.
    """
    os.environ.update(ONE_THREAD, COBASIS_COMMIT=commit())
    failed: list[str] = []
    rest = list(tasks)
    under_way: dict[Future[Cell], Task] = {}
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=50)
    with _progress(console) as progress:
        bar = progress.add_task("", total=len(tasks))
        try:
            while rest or under_way:
                while rest and len(under_way) < workers:
                    task = rest.pop(0)
                    if time.monotonic() + task.expected < until:
                        under_way[pool.submit(measured, task)] = task
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    task = under_way.pop(future)
                    progress.update(bar, advance=1, description=task.study)
                    failed += _keep(future, task, kept[task.study], console)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return failed


def _keep(future: Future[Cell], task: Task, results: Results, console: Console) -> list[str]:
    """Write what a process found, or say why there is nothing."""
    where = f"{task.study} {key(task.settings, str(task.repeat))}"
    try:
        cell = future.result()
    except Exception as error:  # noqa: BLE001 -- one cell's trouble must not end the others
        console.print(f"[red]failed[/red] {where}: {error}")
        console.print("".join(traceback.format_exception(error)), markup=False, style="dim")
        return [where]
    results.cells[cell.place] = cell
    study: Study = load(task.study)
    results.write(study)
    return []


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )
