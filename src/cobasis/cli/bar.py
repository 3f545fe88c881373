"""A bar with the time left, for every step of long work."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cobasis.progress import AGAIN, Report


@contextmanager
def shown(console: Console | None = None) -> Iterator[Report]:
    """Show every step as a bar with the time left."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console or Console(stderr=True)) as bar:

        def _report(step: str, done: int, total: int) -> None:
            name = step.partition(AGAIN)[0]
            if name not in tasks:
                tasks[name] = bar.add_task(step, total=total)
            bar.update(tasks[name], completed=done, total=total, description=step)

        yield _report
