"""How long work says how far it is: a function that is told; silent by default."""

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

AGAIN = ", pass "
"""In the name of a step that is done again: its number follows, and it keeps its bar."""

Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is to do."""

Each = TypeVar("Each")


def silent(*_: object) -> None:
    """Say nothing: for those who do not want to know; the default everywhere."""


def counted(every: Collection[Each], *, step: str, report: Report) -> Iterator[Each]:
    """Yield one after the other, and tell how many are done."""
    for done, each in enumerate(every):
        report(step, done, len(every))
        yield each
    report(step, len(every), len(every))
