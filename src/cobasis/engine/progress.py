"""How long work says how far it is: a function that is told, and a bar that can be that function.

Silent by default: whoever wants to see it hands `shown()`'s function on.
"""

from collections.abc import Callable, Iterator
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

AGAIN = ", pass "
"""In the name of a step that is done again: its number follows, and it keeps its bar."""

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is to do."""


def _say_nothing(step: str, done: int, total: int) -> None:
    """Say nothing."""


silent: Report = _say_nothing
"""For those who do not want to know; the default everywhere."""


@contextmanager
def shown(console: Console | None = None) -> Iterator[Report]:
    """Show every step as a bar with the time left.

    Examples
    --------
    >>> import io
    >>> with shown(Console(file=io.StringIO())) as report:
    ...     report("aligning", 1, 2)
    """
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
