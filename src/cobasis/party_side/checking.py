"""A party's table held against the agreement, before anything is made of it; nothing leaves."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from cobasis.errors import FeatureError
from cobasis.features.checking import ColumnFinding
from cobasis.party_side.desk import PartyDesk
from cobasis.party_side.rows import as_text, open_rows
from cobasis.progress import Report, silent
from cobasis.tables.checking import check_table
from cobasis.tables.sources import source_of

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
