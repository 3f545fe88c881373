"""A bar with the time left, for every step of long work."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich import progress
from rich.console import Console

from cobasis.progress import AGAIN, Report


@contextmanager
def shown(console: Console | None = None) -> Iterator[Report]:
    tasks: dict[str, progress.TaskID] = {}
    with progress.Progress(
        "{task.description}",
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        console=console or Console(stderr=True),
    ) as bar:

        def _report(step: str, done: int, total: int) -> None:
            name = step.partition(AGAIN)[0]
            if name not in tasks:
                tasks[name] = bar.add_task(step, total=total)
            bar.update(tasks[name], completed=done, total=total, description=step)

        yield _report
