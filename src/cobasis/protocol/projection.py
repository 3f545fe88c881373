"""How a party's rows become its upload, wherever these lie and wherever it goes. Party side only.

Rows come in blocks, a table in memory as one; the upload goes to a sink: an `Upload` in memory,
or a file. A row's place is anywhere in it, and one small write per row would take minutes. So the
sink is cut into bins: a part's rows are sorted by bin and go to their bins in few large writes,
each row standing in its bin as the table had it; then bin after bin is read, put in order and
written back.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, Self, cast

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Hidden, Matrix, WholeTable
from cobasis.linalg.threads import in_order, one_blas_thread
from cobasis.progress import Report
from cobasis.protocol.messages import Labels, Upload, UploadHeader
from cobasis.protocol.noise import LabelledRows, Noising
from cobasis.protocol.secrets import SecretBasis

BIN_BYTES = 2**24
"""Size of a bin."""


class RowsInMemory(WholeTable, LabelledRows):
    """Encoded rows that are one table, with their encoded labels."""

    def __init__(self, table: Matrix, labels: Labels | None = None) -> None:
        super().__init__(table)
        self._labels = labels

    def labels(self) -> Labels | None:
        """Return them."""
        return self._labels


class Sink(Protocol):
    """Where an upload goes, in parts; several threads write rows at a time."""

    def write_anchor_image(self, image: npt.NDArray[Any]) -> None:
        """Take ``A F_i``."""

    def write_labels(self, labels: npt.NDArray[Any]) -> None:
        """Take all labels, in the order of the rows."""

    def write_rows(self, start: int, block: npt.NDArray[Any]) -> None:
        """Take rows `start` to ``start + len(block)``; again, if need be."""

    def read_rows(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Give rows back as they were taken, to be put into another order."""


Begin = Callable[[UploadHeader], AbstractContextManager[Sink]]
"""Opens a sink for what a header announces; when its block ends without an error, it is whole."""


class InMemory:
    """A sink that is an `Upload` in the end."""

    upload: Upload

    def __call__(self, header: UploadHeader) -> AbstractContextManager[Self]:
        """Begin an upload: make room for all that its header announces."""
        self.upload = Upload(
            party=header.party,
            agreement_digest=header.agreement_digest,
            anchor_tag=header.anchor_tag,
            rows=np.empty((header.n_rows, header.n_components)),
            labels=None if header.labels is None else np.empty(header.n_rows, header.labels),
            anchor_image=np.empty((header.n_anchor_rows, header.n_components)),
            simulated=header.simulated,
        )
        return nullcontext(self)

    def write_anchor_image(self, image: npt.NDArray[Any]) -> None:
        """Take ``A F_i``."""
        self.upload.anchor_image[:] = image

    def write_labels(self, labels: npt.NDArray[Any]) -> None:
        """Take all labels."""
        cast("Labels", self.upload.labels)[:] = labels

    def write_rows(self, start: int, block: npt.NDArray[Any]) -> None:
        """Take some rows."""
        self.upload.rows[start : start + len(block)] = block

    def read_rows(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Give some rows back."""
        return self.upload.rows[start:stop]


@dataclass(frozen=True, kw_only=True, repr=False)
class Projection(Hidden):
    """What is settled before a row is projected: the basis, and where each row will stand."""

    rows: LabelledRows
    about: UploadHeader
    basis: SecretBasis  # F_i
    anchor_image: Matrix  # A F_i
    order: npt.NDArray[np.intp]  # the upload's first row is the party's row order[0], and so on
    noising: Noising | None = None  # what hides each person, where the agreement has a [dp] section

    def rehearsed(self) -> Self:
        """Return the same with other noise, to be looked at and never released."""
        return self if self.noising is None else replace(self, noising=self.noising.rehearsed())

    def write(self, to: Begin, *, report: Report) -> None:
        """Project all rows and write the upload; refuse rows that noise was not drawn for."""
        with one_blas_thread(), to(self.about) as sink:
            sink.write_anchor_image(self.anchor_image)
            bins = _Bins(self, sink)
            parts = self.rows.over(bins.put, step="projecting rows")
            if self.noising is None:
                for _ in parts:
                    pass
            else:
                self.noising.confirm(parts, party=self.about.party)
            for done in in_order(bins.settle, range(0, len(self.order), bins.size)):
                report("putting rows in order", done, len(self.order))
            labels = self.rows.labels()  # as that pass found them
            if labels is not None:
                noisy = self.noising
                told = labels if noisy is None else noisy.labels(labels, party=self.about.party)
                sink.write_labels(told[self.order])


class _Bins:
    """Where rows go, first and last; used by several threads at a time."""

    def __init__(self, projection: Projection, sink: Sink) -> None:
        self._noising, self._basis = projection.noising, projection.basis
        self._order, self._sink = projection.order, sink
        n_rows, self._n_components = len(self._order), projection.about.n_components
        self.size = max(1, BIN_BYTES // (8 * self._n_components))
        self._number = np.min_scalar_type(n_rows // self.size)
        self._places = np.empty_like(self._order)
        for start in range(0, n_rows, self.size):
            found = np.sort(self._order[start : start + self.size])
            self._places[found] = np.arange(start, start + len(found))
        self._own = threading.local()

    def put(self, first: int, blocks: Iterator[Matrix]) -> bytes:
        """Write a part's rows into their bins, in the table's order; return noise's marks."""
        if self._noising is None:
            projected, marks = list(map(self._basis.project, blocks)), b""
        else:
            projected, marks = self._noising.projected(first, blocks)
        stop = first + sum(map(len, projected))
        places = self._places[first:stop]
        numbers = (places // self.size).astype(self._number)  # short ones sort faster
        turn = np.argsort(numbers, kind="stable")
        rank = np.empty_like(turn)
        rank[turn] = np.arange(len(turn))
        if not hasattr(self._own, "rows") or len(self._own.rows) < len(turn):
            self._own.rows = np.empty((len(turn), self._n_components))
        rows, done = self._own.rows[: len(turn)], 0  # room of the thread's own, used again
        for each in projected:
            rows[rank[done : done + len(each)]] = each
            done += len(each)
        within = numbers[turn]
        edges = [0, *(np.flatnonzero(within[1:] != within[:-1]) + 1), len(turn)]
        for start, end in pairwise(edges):
            self._sink.write_rows(int(places[turn[start]]), rows[start:end])
        return marks

    def settle(self, start: int) -> int:
        """Put one bin's rows where they belong, and return where it ends."""
        stop = min(start + self.size, len(self._order))
        found = self._sink.read_rows(start, stop)
        rows = np.empty_like(found)
        rows[np.argsort(self._order[start:stop])] = found
        self._sink.write_rows(start, rows)
        return stop
