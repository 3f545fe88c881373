"""A party's table as blocks on the agreed scale, read by polars and never held whole."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import polars as pl

from cobasis.errors import LabelError, ShapeError, TableError
from cobasis.features.category import CategoryFeature
from cobasis.features.columns import Encoder
from cobasis.features.numeric import NumericFeature
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.blocks import Blocks
from cobasis.linalg.pool import in_order
from cobasis.linalg.threads import one_blas_thread
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.labels import encode_labels
from cobasis.protocol.messages import Labels
from cobasis.tables.refusals import not_finite, refuse_csv_rounding, refuse_schema
from cobasis.tables.sources import Part, Source, source_of

Done = TypeVar("Done")

BLOCK_CELLS = 2**20
"""Cells of a block, 8 MB: what stays in the processor's cache between two operations."""

PART_BLOCKS, WIDE_BLOCKS = 2, 16
"""Blocks of what is worked on at a time, at most; of a wide table, where each piece that is
worked on gives a large Gram matrix, so that they should be few."""

WIDE = 512
"""Above so many features a table is wide: a Gram matrix takes more than 2 MB."""


class StreamedTable(Blocks):
    """A table on disk, or a frame, that is gone through in bounded memory.

    A frame has no order that is sure to come again, so each pass over one takes the labels
    along, and `labels` gives those of the latest pass: row by row they belong to its rows.
    """

    def __init__(
        self,
        source: Source,
        *,
        features: Sequence[NumericFeature | CategoryFeature],
        party: str,
        labels: str | None = None,
        report: Report = silent,
    ) -> None:
        self.source, self.party, self._report = source, party, report
        self._encoder = Encoder(features)
        self._names, width = self._encoder.names, self._encoder.width
        self._size = max(256, BLOCK_CELLS // width)
        self._along = labels if source.path is None else None
        refuse_schema(source, self._encoder.features, labels=labels, party=party)
        looked = source.collect(pl.len() if labels is None else pl.col(labels))
        self._labels = None if labels is None else looked[labels]
        n_rows = looked.item() if self._labels is None else looked.height
        if not n_rows:
            raise ShapeError(
                f"{source.what} is empty: 0 rows. Leave the party out, or give it rows."
            )
        self.shape = (n_rows, width)

    def over(self, work: Callable[[int, Iterator[Matrix]], Done], *, step: str) -> Iterator[Done]:
        """Read the table once and yield what `work` made of each part, in order."""
        own = threading.local()  # of each thread of the pool: its buffer
        n_rows, done, wide = self.shape[0], 0, self.shape[1] > WIDE
        batch = (WIDE_BLOCKS if wide else PART_BLOCKS) * self._size
        found: list[pl.Series] = []

        def worked(part: Part) -> tuple[list[Done], int, pl.Series | None]:
            first, read = part
            whole = read()
            labels = None if self._along is None else whole[self._along]
            frame = whole.select(self._names)
            size = max(1, frame.height) if wide else batch
            starts = range(0, frame.height, size)
            cut = [(first + start, frame[start : start + size]) for start in starts]
            return [work(row, self._blocks(each, own)) for row, each in cut], frame.height, labels

        along = [] if self._along is None else [self._along]
        columns = list(dict.fromkeys([*self._names, *along]))
        parts = self.source.parts(columns, n_rows=n_rows, batch=batch)
        with one_blas_thread():
            for results, height, labels in in_order(worked, parts):
                yield from results
                done += height
                found += [] if labels is None else [labels]
                self._report(step, done, n_rows)
        if done != n_rows:
            raise TableError(
                f"{self.source.what} had {n_rows:,} rows and now has {done:,}, so it changed while "
                "it was in use. Take a snapshot of it, then start again."
            )
        if found:
            self._labels = pl.concat(found)

    def labels(self, agreement: Agreement) -> Labels | None:
        """Return the labels as they travel, in the order of the latest pass over the rows."""
        found = self._labels
        if found is None or agreement.task == "representation":
            return encode_labels(None, agreement, n_rows=self.shape[0], party=self.party)
        if found.null_count():
            raise LabelError(
                f"{self.source.what} has no label in {found.null_count():,} of {len(found):,} "
                f"rows of column '{found.name}'. Drop those rows."
            )
        if agreement.task == "regression":
            return encode_labels(found.to_numpy(), agreement, n_rows=len(found), party=self.party)
        kinds = found.unique()  # a handful, where the column has millions
        codes = encode_labels(kinds.to_numpy(), agreement, n_rows=len(kinds), party=self.party)
        return found.replace_strict(kinds, pl.Series(codes), return_dtype=pl.Int64).to_numpy()

    def _blocks(self, frame: pl.DataFrame, own: threading.local) -> Iterator[Matrix]:
        """Give a part's rows on the agreed scale, in blocks that share the thread's buffer."""
        refuse_csv_rounding(frame, what=self.source.what, integers=self.source.integers)
        columns = self._encoder.read(nw.from_native(frame), what=self.source.what)
        size = self._size
        if not hasattr(own, "buffer"):
            own.buffer = np.empty((self.shape[1], size))
        for start in range(0, frame.height, size):
            stop = min(start + size, frame.height)
            block = own.buffer[:, : stop - start]
            if not self._encoder.put((column[..., start:stop] for column in columns), block):
                raise not_finite(self.source, self._encoder.features, n_rows=self.shape[0])
            yield block.T


def open_table(
    table: str | Path | Any,  # noqa: ANN401 -- frames of any library
    *,
    agreement: Agreement,
    party: str,
    labels: str | None = None,
    report: Report = silent,
) -> StreamedTable:
    """Open a party's table, for `Party.propose` and `Party.plan`.

    Examples
    --------
    >>> import polars as pl
    >>> from cobasis import Agreement, ConsortiumSecret, numeric_features
    >>> agreement = Agreement(
    ...     round_id="icu-2026", parties=("north",), task="representation", n_components=1,
    ...     features=numeric_features(["age", "pulse"]), n_anchor_rows=2,
    ...     commitment=ConsortiumSecret().commitment("icu-2026"))
    >>> frame = pl.DataFrame({"id": [7, 8, 9], "pulse": [80, 90, 70], "age": [61.5, 70.0, 48.0]})
    >>> open_table(frame, agreement=agreement, party="north").shape
    (3, 2)
    """
    read = (*agreement.features, *word_labels(agreement, labels))
    source = source_of(table, party=party, features=read, labels=labels)
    return StreamedTable(
        source, features=agreement.features, party=party, labels=labels, report=report
    )


def word_labels(agreement: Agreement, labels: str | None) -> tuple[CategoryFeature, ...]:
    """Return the column of labels as a category where classes are text, so that it is read so."""
    text = tuple(each for each in agreement.classes if isinstance(each, str))
    if not (labels and text):
        return ()
    return (CategoryFeature.model_construct(name=labels, values=text),)
