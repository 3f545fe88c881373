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
from cobasis.features.checking import ColumnFinding
from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.linalg.blocks import Blocks
from cobasis.party_side.desk import PartyDesk
from cobasis.progress import Report, silent
from cobasis.protocol.messages import Labels
from cobasis.protocol.noise import LabelledRows
from cobasis.tables.checking import check_table
from cobasis.tables.sources import Source, source_of
from cobasis.tables.streaming import StreamedTable, as_text, open_table
from cobasis.vault.fingerprints import Fingerprints

Done = TypeVar("Done")
Mask = npt.NDArray[np.bool_]

_ALL = 2.0**64


class ChosenRows(LabelledRows):
    """Some rows of a table, gone through in its order."""

    def __init__(self, table: LabelledRows, chosen: Mask) -> None:
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

    def labels(self) -> Labels | None:
        """Return their labels."""
        labels = self._table.labels()
        return None if labels is None else labels[self._chosen]

    def _of(self, first: int, blocks: Iterator[Matrix]) -> Iterator[Matrix]:
        for block in blocks:
            chosen = self._chosen[first : first + len(block)]
            first += len(block)
            if chosen.any():
                yield block[chosen]


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
    def sent(self) -> LabelledRows:
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
    marks = desk.vault.fingerprints(rows)
    ids = None if not agreement.id else desk.vault.people(_identifiers(rows.source, desk))
    held = (marks if ids is None else ids) < np.uint64(agreement.holdout * _ALL)
    if held.all():
        raise ShapeError(
            f"all rows of party '{desk.name}' are held back by holdout={agreement.holdout}, so "
            "none would be uploaded. Give the table more rows, or agree on a smaller share."
        )
    return PartyRows(table=rows, marks=marks, ids=ids, held=held)


def _identifiers(source: Source, desk: PartyDesk) -> list[str]:
    """Read the column of identifiers."""
    name = desk.agreement.id
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


OWN_SPANS = {"svd": 0, "pca": 1, "lpp": 1}
"""Bases whose span is of the party's own rows, and how many rows they need above n_components."""

BOUNDS = ("low", "high")
"""What a feature of numbers may have, and one of words has not."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What `check` found.

    Attributes
    ----------
    n_rows : int
        The table's rows.
    n_held : int or None
        Rows that would be held back; None where something else is wrong already.
    findings : tuple of ColumnFinding
        About columns: refused, or only told.
    problems : tuple of str
        About the table as a whole; each forbids an upload.
    """

    n_rows: int
    n_held: int | None
    findings: tuple[ColumnFinding, ...]
    problems: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether an upload can be made of the table."""
        return not self.problems and not any(each.refused for each in self.findings)


def check(desk: PartyDesk, table: Path, *, report: Report = silent) -> Findings:
    """Hold a table against the agreement: columns, words, ranges, labels, identifiers, rows."""
    agreement = desk.agreement
    found = check_table(table, agreement=agreement, party=desk.name, report=report)
    problems = list(_id_problems(desk, table)) if _has_id(desk, found.findings) else []
    if problems or not found.fits:
        return Findings(
            n_rows=found.n_rows, n_held=None, findings=found.findings, problems=tuple(problems)
        )
    rows = open_rows(desk, table, report=report)
    needed = agreement.n_components + OWN_SPANS.get(agreement.basis, -agreement.n_components)
    if rows.n_sent < needed:
        problems.append(
            f"of {found.n_rows:,} rows {rows.n_held:,} are held back, and the {rows.n_sent:,} "
            f"others are fewer than the {needed:,} that basis '{agreement.basis}' with "
            f"{agreement.n_components:,} components needs"
        )
    return Findings(
        n_rows=found.n_rows,
        n_held=rows.n_held,
        findings=found.findings,
        problems=tuple(problems),
    )


def refuse_outside(desk: PartyDesk, table: Path, *, report: Report = silent) -> None:
    """Raise FeatureError for numbers outside of an agreed range.

    Nothing else asks that before an upload: what has no place in the encoding is refused when
    rows are read, and a number that nobody can have is encoded like any other.
    """
    bounds = [getattr(each, bound, None) for each in desk.agreement.features for bound in BOUNDS]
    if all(bound is None for bound in bounds):
        return
    found = check_table(table, agreement=desk.agreement, party=desk.name, report=report)
    outside = [f"'{each.column}'" for each in found.findings if each.problem == "range"]
    if outside:
        raise FeatureError(
            f"party '{desk.name}' has numbers outside of the agreed range in {', '.join(outside)}, "
            "which are in another unit or wrong. 'cobasis party check' counts them; correct the "
            "table, or agree on another range."
        )


def _has_id(desk: PartyDesk, findings: tuple[ColumnFinding, ...]) -> bool:
    """Whether the agreement has an identifier, and the table its column."""
    absent = {each.column for each in findings if each.problem == "absent"}
    return bool(desk.agreement.id) and desk.agreement.id not in absent


def _id_problems(desk: PartyDesk, table: Path) -> list[str]:
    """Return what is wrong with the column of identifiers, in words."""
    name = desk.agreement.id
    source = source_of(table, party=desk.name, features=as_text(name))
    column = pl.col(name)
    counts = source.collect(
        column.len().alias("rows"),
        column.null_count().alias("empty"),
        column.drop_nulls().n_unique().alias("different"),
    ).row(0, named=True)
    repeated = counts["rows"] - counts["empty"] - counts["different"]
    told = []
    if counts["empty"]:
        told.append(f"{counts['empty']:,} cells of the id column '{name}' are empty")
    if repeated:
        told.append(f"{repeated:,} cells of the id column '{name}' repeat another's")
    return told
