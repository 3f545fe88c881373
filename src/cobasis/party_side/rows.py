"""A party's rows in two parts: those that are uploaded, and those that never leave."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from cobasis.errors import FeatureError, ShapeError
from cobasis.features.category import CategoryFeature
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.blocks import Blocks
from cobasis.linalg.hidden import Hidden
from cobasis.party_side.desk import PartyDesk
from cobasis.progress import Report, silent
from cobasis.protocol.messages import Labels
from cobasis.tables.sources import Source, source_of
from cobasis.tables.streaming import StreamedTable, open_table
from cobasis.vault.fingerprints import Fingerprints

Done = TypeVar("Done")
Mask = npt.NDArray[np.bool_]

_ALL = 2.0**64


class ChosenRows(Blocks):
    """Some rows of a table, gone through in its order."""

    def __init__(self, table: Blocks, chosen: Mask) -> None:
        self._table, self._chosen = table, chosen
        self._before = np.concatenate([[0], np.cumsum(chosen)])
        self.shape = (int(self._before[-1]), table.shape[1])

    def over(self, work: Callable[[int, Iterator[Matrix]], Done], *, step: str) -> Iterator[Done]:
        """Go through the chosen rows; a part of the table without any is passed over."""

        def worked(first: int, blocks: Iterator[Matrix]) -> tuple[Done, ...]:
            found = self._of(first, blocks)
            start = next(found, None)
            if start is None:
                return ()
            return (work(int(self._before[first]), chain([start], found)),)

        for done in self._table.over(worked, step=step):
            yield from done

    def _of(self, first: int, blocks: Iterator[Matrix]) -> Iterator[Matrix]:
        for block in blocks:
            chosen = self._chosen[first : first + len(block)]
            first += len(block)
            if chosen.any():
                yield block[chosen]


class _Overheard(Blocks):
    """A table that keeps what a pass made of each part: the vault sorts fingerprints."""

    def __init__(self, table: Blocks) -> None:
        self._table, self.shape = table, table.shape
        self.heard: list[object] = []

    def over(self, work: Callable[[int, Iterator[Matrix]], Done], *, step: str) -> Iterator[Done]:
        for done in self._table.over(work, step=step):
            self.heard.append(done)
            yield done


@dataclass(frozen=True, kw_only=True, repr=False)
class PartyRows(Hidden):
    """A party's table, and on which side of the split each row is.

    Attributes
    ----------
    table : StreamedTable
        All rows, on the agreed scale.
    marks : ndarray of shape (n_rows,), uint64
        The vault's fingerprint of each row, in the table's order.
    ids : ndarray of shape (n_rows,), uint64, or None
        The vault's fingerprint of each identifier, where the agreement has one.
    held : ndarray of shape (n_rows,), bool
        Rows that never leave.
    """

    table: StreamedTable
    marks: Fingerprints
    ids: Fingerprints | None
    held: Mask

    @property
    def sent(self) -> Blocks:
        """The rows that are uploaded."""
        return ChosenRows(self.table, ~self.held) if self.held.any() else self.table

    @property
    def kept(self) -> ChosenRows:
        """The rows that never leave."""
        return ChosenRows(self.table, self.held)

    @property
    def n_sent(self) -> int:
        """How many are uploaded."""
        return int(np.count_nonzero(~self.held))

    @property
    def n_held(self) -> int:
        """How many never leave."""
        return int(np.count_nonzero(self.held))

    @property
    def fingerprints(self) -> Fingerprints:
        """Of the rows that are uploaded, sorted, as the vault takes them."""
        return np.sort(self.marks[~self.held])

    @property
    def people(self) -> Fingerprints:
        """Whose rows are uploaded; empty where the agreement has no identifier."""
        return self.marks[:0] if self.ids is None else self.ids[~self.held]


def open_rows(desk: PartyDesk, table: Path, *, report: Report = silent) -> PartyRows:
    """Open a party's table and split it: the agreed share of rows is held back."""
    agreement = desk.agreement
    rows = open_table(
        table, agreement=agreement, party=desk.name, labels=agreement.label or None, report=report
    )
    heard = _Overheard(rows)
    desk.vault.fingerprints(heard)
    found = b"".join(part for part in heard.heard if isinstance(part, bytes))
    marks = np.frombuffer(found, dtype="<u8").astype(np.uint64)
    ids = None if not agreement.id else desk.vault.people(_identifiers(desk, table))
    held = (marks if ids is None else ids) < np.uint64(agreement.holdout * _ALL)
    if held.all():
        raise ShapeError(
            f"all rows of party '{desk.name}' are held back by holdout={agreement.holdout}, so "
            "none would be uploaded. Give the table more rows, or agree on a smaller share."
        )
    return PartyRows(table=rows, marks=marks, ids=ids, held=held)


def _identifiers(desk: PartyDesk, table: Path) -> list[str]:
    """Read the column of identifiers."""
    name = desk.agreement.id
    source = source_of(table, party=desk.name, features=as_text(name))
    require_id(source, desk)
    column = source.collect(pl.col(name).cast(pl.String))[name]
    if not column.null_count():
        return column.to_list()
    raise FeatureError(
        f"{column.null_count():,} cells of the id column '{name}' of party '{desk.name}' are "
        "empty, so it cannot be told whose rows were uploaded before. Fill them."
    )


def require_id(source: Source, desk: PartyDesk) -> None:
    """Raise FeatureError where the agreement has an identifier, and the table no such column."""
    name = desk.agreement.id
    with source.reading():
        names = source.frame.collect_schema().names()
    if name and name not in names:
        raise FeatureError(
            f"{source.what} has no column '{name}', the agreement's identifier, so its rows could "
            "not be told apart. Add it."
        )


def as_text(name: str) -> tuple[CategoryFeature, ...]:
    """Return a column as a feature without vocabulary, so that a CSV file's ``007`` stays so."""
    return (CategoryFeature.model_construct(name=name, values=()),) if name else ()


def labels_of(rows: PartyRows, desk: PartyDesk, *, chosen: Mask) -> Labels | None:
    """Return the labels of some rows as they travel, None for representation."""
    labels = rows.table.labels(desk.agreement)
    return None if labels is None else labels[chosen]


def gathered(rows: Blocks) -> Matrix:
    """Return blocks as one table in memory, of shape (n_rows, n_features)."""

    def copied(_: int, blocks: Iterator[Matrix]) -> list[Matrix]:
        return [block.copy() for block in blocks]

    parts = [block for part in rows.over(copied, step="reading rows") for block in part]
    return np.vstack(parts) if parts else np.empty((0, rows.shape[1]))


def picked(rows: Blocks, places: npt.NDArray[np.intp]) -> Matrix:
    """Return some rows of a table, whose places are sorted, as one table in memory."""

    def chosen(first: int, blocks: Iterator[Matrix]) -> list[Matrix]:
        found = []
        for block in blocks:
            start, stop = np.searchsorted(places, [first, first + len(block)])
            found.append(block[places[start:stop] - first])
            first += len(block)
        return found

    parts = [block for part in rows.over(chosen, step="drawing rows to look at") for block in part]
    return np.vstack(parts)
