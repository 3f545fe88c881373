"""A party's table, as blocks on the agreed scale and never whole; and what is wrong with it."""

import re
import threading
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import polars as pl

from cobasis.errors import FeatureError, LabelError, OptionError, ShapeError
from cobasis.features.contract import CategoryFeature, Column, NumericFeature, columns_in, word_of
from cobasis.features.encoder import SHOWN, Encoder, rounded, words_of
from cobasis.features.mapping import Mapping as TableMapping
from cobasis.features.problems import ColumnFinding, check
from cobasis.linalg.arrays import EXACT_INTEGER, Array, Integers, Mask, Matrix
from cobasis.linalg.threads import in_order, one_blas_thread
from cobasis.models import OF_NUMBERS
from cobasis.progress import Report, silent
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import Labels, encode_column, encode_labels
from cobasis.protocol.projection import LabelledRows
from cobasis.tables.sources import Part, Source, refuse_absent, row_of_text, source_of

Done = TypeVar("Done")

BLOCK_CELLS = 2**20
"""Cells of a block, 8 MB: what stays in the processor's cache between two operations."""

PART_BLOCKS = 4  # at most in a part, which is worked on at a time
DIGITS = 6  # significant ones, which an export to text keeps: a row is known again by them
DAY = re.compile(r"\d{4}-\d\d-\d\d([ T].*)?|\d\d\.\d\d\.\d{4}")  # how dates are written
CHECKED_ROWS = 2**17  # rows that are held against the agreement at a time


class StreamedTable(LabelledRows):
    """A table on disk, gone through in bounded memory, or a frame."""

    def __init__(
        self,
        source: Source,
        *,
        agreement: Agreement,
        party: str,
        labels: str | None = None,
        report: Report = silent,
    ) -> None:
        self.source, self.party, self._report = source, party, report
        self._agreement, self._encoder = agreement, Encoder(agreement.features)
        self._names, width = [*agreement.columns], agreement.n_features
        self._turn = agreement.turn
        self._size = max(256, BLOCK_CELLS // width)
        named = label_columns(agreement, labels)
        told, others = [each.name for each in named], named[bool(labels) :]
        names = [*self._names, *(each.name for each in others)]
        refuse_absent(source, names, labels=labels, party=party)
        looked = source.collect(pl.col(told) if told else pl.len())
        self._labels = looked if told else None
        n_rows = looked.height if told else looked.item()
        if not n_rows:
            raise ShapeError(f"{source.what} is empty: 0 rows. Give a table that has some.")
        self.shape = (n_rows, width)
        self._n_rows = n_rows
        self.chosen: Mask | None = None  # those of the rows that are gone through

    def only(self, chosen: Mask) -> "StreamedTable":
        """Return some of the rows, in their order; a part of the table without any is left out."""
        some = copy(self)
        some.chosen = chosen
        some.shape = (int(np.count_nonzero(chosen)), self.shape[1])
        return some

    def unmapped(self) -> "StreamedTable":
        """Return the rows as they are encoded, before the agreed map."""
        some = copy(self)
        some._turn, some.shape = None, (self.shape[0], self._encoder.width)  # noqa: SLF001 -- ours
        return some

    def over(self, work: Callable[[int, Iterator[Matrix]], Done], *, step: str) -> Iterator[Done]:
        own = threading.local()  # of each thread of the pool: its buffer
        n_rows, done, chosen = self._n_rows, 0, self.chosen
        batch = PART_BLOCKS * self._size

        def worked(part: Part) -> tuple[list[Done], int]:
            first, frame = part
            columns = self._encoder.read(nw.from_native(frame), what=self.source.what)
            for name in self.source.integers.intersection(self._names):  # CSV, read as float64
                if (frame[name].is_finite() & (frame[name].abs() >= EXACT_INTEGER)).any():
                    raise rounded(name, what=self.source.what)
            blocks = self._blocks(columns, first, frame.height, own)
            if chosen is not None and not chosen[first : first + frame.height].any():
                return [], frame.height
            start = first if chosen is None else int(np.count_nonzero(chosen[:first]))
            return [work(start, blocks)], frame.height

        parts = self.source.parts(self._names, n_rows=n_rows, batch=batch)
        with one_blas_thread():
            for made, height in in_order(worked, parts):
                yield from made
                done += height
                self._report(step, done, n_rows)
        self.source.refuse_changed()

    def plain_rows(self) -> Iterator[bytes]:
        """Yield what each row says, by column name: words, and numbers at six digits, unscaled.

        The same whatever constants are agreed on, and in whatever order the columns stand.
        """
        by_name = sorted(self._encoder.features, key=lambda feature: feature.name)
        words = [each.name for each in by_name if isinstance(each, CategoryFeature)]
        numbers = [each.name for each in by_name if each.name not in words]
        # and no -0, which other exports write as 0
        plain = pl.col(numbers).cast(pl.Float64).round_sig_figs(DIGITS).fill_null(np.nan) + 0.0
        batch = PART_BLOCKS * self._size
        for first, frame in self.source.parts(self._names, n_rows=self._n_rows, batch=batch):
            table = np.ascontiguousarray(frame.select(plain).to_numpy(), dtype="<f8")
            data, width = table.tobytes(), table.shape[1] * table.itemsize
            told = []
            for name in words:  # a missing cell counts as the empty word
                known = {cell: word_of(cell) or "" for cell in frame[name].unique()}
                told.append([known[cell] for cell in frame[name]])
            for row, cells in enumerate(zip(*told, strict=True) if told else [()] * frame.height):
                yield data[row * width : (row + 1) * width] + "\0".join(cells).encode()
            self._report("comparing rows with earlier uploads", first + frame.height, self._n_rows)
        self.source.refuse_changed()

    def identifiers(self) -> pl.Series | None:
        """Return whose each row is; None where the agreement has no column of identifiers."""
        name = self._agreement.id
        if not name:
            return None
        if name not in self.source.schema:
            raise FeatureError(
                f"{self.source.what} has no column '{name}', the agreement's identifier, so its "
                "rows could not be told apart. Add it."
            )
        found = self.source.collect(pl.col(name))[name]
        return found if self.chosen is None else found.filter(self.chosen)

    def people(self) -> list[str] | None:
        found = self.identifiers()
        return None if found is None else found.cast(pl.String).to_list()

    def labels(self) -> Labels | None:
        frame, agreement = self._labels, self._agreement
        if frame is None:
            return encode_labels(None, agreement, n_rows=self.shape[0], party=self.party)
        for each in frame:
            if each.null_count():
                raise LabelError(
                    f"{self.source.what} has rows without a label, in column '{each.name}'. Drop "
                    "those rows."
                )
        if self.chosen is not None:
            frame = frame.filter(self.chosen)
        found, beside = frame.to_series(), agreement.outcome is not None
        if agreement.classes and not beside:
            return self._codes(found)
        told = {each.name: each.to_numpy() for each in frame}
        if agreement.classes:
            told[found.name] = np.array(agreement.classes)[self._codes(found)]
        given: Any = told if beside else told[found.name]
        return encode_labels(given, agreement, n_rows=len(found), party=self.party)

    def _codes(self, found: pl.Series) -> Integers:
        kinds = found.unique()  # a handful, where the column has millions
        agreed: Any = label_columns(self._agreement, found.name)[0]
        codes: Any = words_of(nw.from_native(kinds, series_only=True), agreed)
        if (codes < 0).any():
            array, of = kinds.to_numpy(), self._agreement
            codes = encode_column(array, of, n_rows=len(kinds), party=self.party)
        return found.replace_strict(kinds, pl.Series(codes), return_dtype=pl.Int64).to_numpy()

    def _blocks(
        self, columns: list[Array], first: int, n_rows: int, own: threading.local
    ) -> Iterator[Matrix]:
        """Give a part's rows on the agreed scale, in blocks that share the thread's buffer."""
        size, chosen = self._size, self.chosen
        if not hasattr(own, "buffer"):
            own.buffer = np.empty((self._encoder.width, size))
        for start in range(0, n_rows, size):
            stop = min(start + size, n_rows)
            block = own.buffer[:, : stop - start]
            if not self._encoder.put((column[start:stop] for column in columns), block):
                raise self._encoder.not_whole(columns, what=self.source.what)
            rows = block.T if self._turn is None else self._turn.apply(block.T)
            if chosen is None:
                yield rows
            elif (here := chosen[first + start : first + stop]).any():
                yield rows[: len(here)][here]


def open_table(
    table: str | Path | Any,  # noqa: ANN401 -- frames of any library
    *,
    agreement: Agreement,
    party: str,
    labels: str | None = None,
    mapping: TableMapping = TableMapping(),  # noqa: B008 -- frozen
    report: Report = silent,
) -> StreamedTable:
    """Open a party's table, for `Party.propose` and `Party.write`."""
    if labels is not None and agreement.label and labels != agreement.label:
        raise OptionError(
            f"labels='{labels}', but the agreement's label column is '{agreement.label}', and "
            "every party has to upload the same. Leave labels= out."
        )
    labels = labels or agreement.label or None
    features = agreed_columns(agreement, labels)
    source = source_of(table, party=party, features=features, labels=labels, mapping=mapping)
    return StreamedTable(source, agreement=agreement, party=party, labels=labels, report=report)


def agreed_columns(agreement: Agreement, labels: str | None) -> tuple[Column, ...]:
    others = (*label_columns(agreement, labels), *as_text(agreement.id))
    return (*columns_in(agreement.features), *others)


def label_columns(agreement: Agreement, labels: str | None) -> tuple[Column, ...]:
    """Return the columns that travel as labels as features: numbers, or a closed vocabulary."""
    names = () if agreement.outcome is None else agreement.outcome.columns.values()
    others = [NumericFeature(name=each) for each in names]
    if not labels or agreement.task == "representation":
        return (*others,) if agreement.task == "table" else ()
    if agreement.task in OF_NUMBERS:
        return (NumericFeature(name=labels), *others)
    classes = tuple(map(str, agreement.classes))
    return (CategoryFeature.model_construct(name=labels, values=classes), *others)


def as_text(name: str) -> tuple[CategoryFeature, ...]:
    """Return a column as a feature without vocabulary, so that a CSV file's ``007`` stays so."""
    return (CategoryFeature.model_construct(name=name, values=()),) if name else ()


@dataclass(frozen=True, kw_only=True)
class Checked:
    source: Source = field(repr=False)
    n_rows: int
    findings: tuple[ColumnFinding, ...]

    @property
    def fits(self) -> bool:
        return not any(finding.refused for finding in self.findings)


def check_table(
    table: str | Path | Any,  # noqa: ANN401 -- frames of any library
    *,
    agreement: Agreement,
    party: str,
    mapping: TableMapping = TableMapping(),  # noqa: B008 -- frozen
    report: Report = silent,
) -> Checked:
    """Hold a party's table against the agreement: columns, types, words, ranges, empty cells."""
    label, held = agreement.label or None, _held(agreement)
    labelled = [each.name for each in label_columns(agreement, label)]
    read = agreed_columns(agreement, label)
    source = source_of(table, party=party, features=read, labels=label, mapping=mapping)
    schema = source.schema
    n_rows = int(source.collect(pl.len()).item())
    named = [each.name for each in held if each.name in schema]

    def frames() -> Iterator["nw.DataFrame[Any]"]:
        for first, frame in source.parts(named, n_rows=n_rows, batch=CHECKED_ROWS) if named else ():
            yield nw.from_native(frame)
            report("checking rows", first + frame.height, n_rows)

    used = [agreement.id] if agreement.id else []
    findings = [
        each
        for each in check(frames(), held, columns=schema.names(), used=used)
        if not (each.asked and each.column in labelled)  # nothing is agreed of labels' numbers
    ]
    findings += _of_no_weight(source, agreement, n_rows=n_rows)
    for place, each in enumerate(findings):
        if each.problem != "type":
            continue
        text, dates = each.text, schema[each.column].is_temporal()
        told: tuple[str, ...] = ()
        if schema[each.column] == pl.String:
            words = pl.col(each.column).drop_nulls().unique().sort().head(SHOWN)
            told = tuple(source.collect(words)[each.column])
            dates = any(DAY.fullmatch(word) for word in told)
            if row := row_of_text(source, each.column):
                text += f"; the first text is in row {row:,} below the names"
        findings[place] = replace(each, text=text, words=told, dates=dates)
    return Checked(source=source, n_rows=n_rows, findings=tuple(findings))


def _held(agreement: Agreement) -> list[Column]:
    """Return the agreed columns, and then labels, with what their cells may be."""
    beside = label_columns(agreement, agreement.label or None)
    if agreement.sums is not None and (ends := agreement.sums.target_range):
        low, high = ends
        beside = (beside[0].model_copy(update={"low": low, "high": high}), *beside[1:])
    held = [*columns_in(agreement.features), *beside]
    if agreement.task != "table":
        return held
    return [  # there no number stands for empty cells
        each.model_copy(update={"fill": None}) if isinstance(each, NumericFeature) else each
        for each in held
    ]


def _of_no_weight(source: Source, agreement: Agreement, *, n_rows: int) -> Iterator[ColumnFinding]:
    """Ask of a baseline table's weights, which have no agreed scale, whether all may be 0."""
    name = agreement.outcome.weight if agreement.task == "table" and agreement.outcome else ""
    largest = pl.col(name).fill_null(1).abs().max()  # empty cells are refused
    if source.schema.get(name, pl.String).is_numeric() and source.collect(largest).item() == 0:
        text = f"column '{name}' is 0 in every row, so none counts: is it the right column?"
        told: Any = {"problem": "blanks", "refused": False, "n_rows": n_rows, "n_all": n_rows}
        yield ColumnFinding(column=name, text=text, **told)
