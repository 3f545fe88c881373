"""Rows projected in the table's order and written in the upload's, in bounded memory.

A row's place is anywhere in the file, and one small write per row would take minutes. So the
file is cut into bins: a part's rows are sorted by bin and go to their bins in few large writes,
each row standing in its bin as the table had it; then bin after bin is read, put in order and
written back.
"""

import threading
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from cobasis.bundle.payload import PayloadWriter
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.blocks import Blocks
from cobasis.linalg.pool import in_order
from cobasis.progress import Report
from cobasis.protocol.streamed import Plan

BIN_BYTES = 2**24
"""Size of a bin."""


def write_rows(rows: Blocks, plan: Plan, *, writer: PayloadWriter, report: Report) -> None:
    """Project all rows and write them in the plan's order."""
    bins = _Bins(plan, writer)
    plan.confirm(rows.over(bins.put, step="projecting rows"))
    starts = range(0, plan.shape[0], bins.size)
    for done in in_order(bins.settle, starts):
        report("putting rows in order", done, plan.shape[0])


class _Bins:
    """Where rows go, first and last; used by several threads at a time."""

    def __init__(self, plan: Plan, writer: PayloadWriter) -> None:
        self._plan, self._writer = plan, writer
        n_rows, n_components = plan.shape
        self.size = max(1, BIN_BYTES // (8 * n_components))
        self._number = np.min_scalar_type(n_rows // self.size)
        self._places = np.empty_like(plan.order)
        for start in range(0, n_rows, self.size):
            found = np.sort(plan.order[start : start + self.size])
            self._places[found] = np.arange(start, start + len(found))
        self._own = threading.local()

    def put(self, first: int, blocks: Iterator[Matrix]) -> bytes:
        """Write a part's rows into their bins, in the table's order; return its marks."""
        projected, marks = self._plan.projected(first, blocks)
        stop = first + sum(map(len, projected))
        places = self._places[first:stop]
        numbers = (places // self.size).astype(self._number)  # short ones sort faster
        turn = np.argsort(numbers, kind="stable")
        rank = np.empty_like(turn)
        rank[turn] = np.arange(len(turn))
        rows, done = self._buffer(len(turn)), 0
        for each in projected:
            rows[rank[done : done + len(each)]] = each
            done += len(each)
        within = numbers[turn]
        edges = [0, *(np.flatnonzero(within[1:] != within[:-1]) + 1), len(turn)]
        for start, end in pairwise(edges):
            self._writer.write_rows(int(places[turn[start]]), rows[start:end])
        return marks

    def settle(self, start: int) -> int:
        """Put one bin's rows where they belong, and return where it ends."""
        stop = min(start + self.size, self._plan.shape[0])
        rows = self._buffer(stop - start)
        rows[np.argsort(self._plan.order[start:stop])] = self._writer.read_rows(start, stop)
        self._writer.write_rows(start, rows)
        return stop

    def _buffer(self, n_rows: int) -> Matrix:
        """Return room for rows, the thread's own and used again."""
        if not hasattr(self._own, "rows") or len(self._own.rows) < n_rows:
            self._own.rows = np.empty((n_rows, self._plan.shape[1]))
        found: Matrix = self._own.rows[:n_rows]
        return found
