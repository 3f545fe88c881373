"""A party's table as blocks on the agreed scale, read by polars and never held whole."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import polars as pl

from cobasis.engine.progress import Report, silent
from cobasis.errors import LabelError, ShapeError, TableError
from cobasis.features.category import CategoryFeature
from cobasis.features.columns import Encoder
from cobasis.features.numeric import NumericFeature
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.blocks import Blocks
from cobasis.linalg.pool import in_order
from cobasis.linalg.threads import one_blas_thread
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

    Parameters
    ----------
    source : Source
        What to read. Columns that are neither features nor labels are ignored.
    features : sequence of NumericFeature or CategoryFeature
        The agreement's.
    party : str
        For messages.
    labels : str, optional
        The column of labels.
    report : callable
        Is told of progress.

    Notes
    -----
    **Who sees what.** The party alone.

    **Cost.** Each pass reads the table once. In memory is what the threads work on: of a Parquet
    file 256 MB of cells each, and together 512 MB, at most; of other sources, what polars reads
    ahead. What a caller makes of each piece comes on top: for the basis Gram matrices of
    ``8 m^2`` bytes, up to three for each thread and three more.

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
            msg = f"{source.what} is empty: 0 rows. Leave the party out, or give it rows."
            raise ShapeError(msg)
        self.shape = (n_rows, width)

    def over(self, work: Callable[[int, Iterator[Matrix]], Done], *, step: str) -> Iterator[Done]:
        """Read the table once and yield what `work` made of each part, in order.

        Parameters
        ----------
        work : callable
            As `Blocks.over` says; called in a pool's threads.
        step : str
            Progress is reported under this name.

        Yields
        ------
        object
            What `work` returned.

        Raises
        ------
        NotFiniteError, DtypeError, FeatureError
            A cell is missing, not finite, an integer that float64 would round, or a word that
            is not agreed.
        FileChangedError, TableError
            The table changed during the pass, or cannot be read to its end.
        """
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
            msg = (
                f"{self.source.what} had {n_rows:,} rows and now has {done:,}, so it changed while "
                "it was in use. Take a snapshot of it, then start again."
            )
            raise TableError(msg)
        if found:
            self._labels = pl.concat(found)

    def labels(self, agreement: Agreement) -> Labels | None:
        """Return the labels as they travel, in the order of the latest pass over the rows.

        Parameters
        ----------
        agreement : Agreement
            Says which are allowed.

        Returns
        -------
        ndarray of shape (n_rows,) or None
            int64 positions in ``agreement.classes``, or float64; None for representation.

        Raises
        ------
        LabelError
            As `cobasis.protocol.labels.encode_labels`, or cells without a label.

        Notes
        -----
        **Who sees what.** Labels travel in the clear.

        **Cost.** 8 bytes per row, and the column itself.
        """
        found = self._labels
        if found is None or agreement.task == "representation":
            return encode_labels(None, agreement, n_rows=self.shape[0], party=self.party)
        if found.null_count():
            msg = (
                f"{self.source.what} has no label in {found.null_count():,} of {len(found):,} "
                f"rows of column '{found.name}'. Drop those rows."
            )
            raise LabelError(msg)
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

    Parameters
    ----------
    table : path or frame
        Parquet, CSV, polars ``LazyFrame`` or ``DataFrame``, pandas and the like.
    agreement : Agreement
        Names the columns; others are ignored, and their order in the table does not matter.
    party : str
        For messages.
    labels : str, optional
        The column of labels.
    report : callable
        Is told of progress.

    Returns
    -------
    StreamedTable
        Blocks of shape (n_rows, n_features) on the agreed scale.

    Raises
    ------
    LocalError
        The table cannot be read, is empty, or lacks a column or its numbers.

    Notes
    -----
    **Who sees what.** The party alone.

    **Cost.** A file's header and its column of labels; a CSV file is read once to count.

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
    """Return the column of labels as a category where classes are text, so that it is read so.

    Parameters
    ----------
    agreement : Agreement
        Says what classes are.
    labels : str or None
        The column.

    Returns
    -------
    tuple of CategoryFeature
        One or none: a CSV file's ``007`` is text where classes are, and a number where not.

    Notes
    -----
    **Who sees what.** Public.

    **Cost.** None.
    """
    text = tuple(each for each in agreement.classes if isinstance(each, str))
    if not (labels and text):
        return ()
    return (CategoryFeature.model_construct(name=labels, values=text),)
