"""A table that is visited block by block, whether it is in memory or not."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

from cobasis.linalg.arrays import Matrix
from cobasis.linalg.threads import in_order, one_blas_thread

Done = TypeVar("Done")

PART_CELLS = 2**20
"""Cells of a part of a table in memory: a product of some milliseconds."""


class Blocks(ABC):
    """A table of finite numbers that can be gone through again and again."""

    shape: tuple[int, int]

    @abstractmethod
    def over(self, work: Callable[[int, Iterator[Matrix]], Done], *, step: str) -> Iterator[Done]:
        """Go through the table once and yield what `work` made of each part, in order."""


class WholeTable(Blocks):
    """A table in memory, in parts that the cores share."""

    def __init__(self, table: Matrix) -> None:
        self.table = table
        self.shape = (table.shape[0], table.shape[1])

    def over(
        self,
        work: Callable[[int, Iterator[Matrix]], Done],
        *,
        step: str,  # noqa: ARG002 -- there is nothing to wait for
    ) -> Iterator[Done]:
        """Yield what `work` makes of some rows at a time, as many as there are cores."""
        size = max(256, PART_CELLS // self.shape[1])

        def worked(first: int) -> Done:
            return work(first, iter([self.table[first : first + size]]))

        with one_blas_thread():
            yield from in_order(worked, range(0, self.shape[0], size))
