"""A party's rows, held against the agreement, in two parts: one is uploaded, one never leaves."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from cobasis.algorithms.bases import BASES
from cobasis.errors import (
    AgreementError,
    CobasisError,
    DimensionError,
    DtypeError,
    FeatureError,
    LabelError,
    NotFiniteError,
    OptionError,
    StepError,
    UnlikeColumnError,
)
from cobasis.features.contract import CategoryFeature, columns_in
from cobasis.features.encoder import SHOWN
from cobasis.features.mapping import Mapping as TableMapping
from cobasis.features.problems import ColumnFinding
from cobasis.linalg.arrays import Hidden, Mask
from cobasis.party_side.session import PartySession
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.exchanges import EXCHANGES
from cobasis.protocol.refusals import refuse_beyond, refuse_few
from cobasis.protocol.terms import others_of
from cobasis.tables.sources import Source, refuse_absent, source_of
from cobasis.tables.table import Checked, StreamedTable, agreed_columns, check_table, open_table
from cobasis.vault.datasets import Dataset, Fingerprints

_ALL, _SIDE = 2.0**64, "cobasis/1/side\0"


@dataclass(frozen=True, kw_only=True, repr=False)
class PartyRows(Hidden):
    table: StreamedTable
    marks: Fingerprints
    ids: Fingerprints | None  # None where the agreement has no identifier
    held: Mask

    def keeping(self, people: Fingerprints) -> "PartyRows":
        """Return the same rows with nobody held back but some people."""
        ids = self.marks[:0] if self.ids is None else self.ids
        return replace(self, held=self.held & np.isin(ids, people))

    @property
    def sent(self) -> StreamedTable:
        return self.table.only(~self.held) if self.held.any() else self.table

    @property
    def kept(self) -> StreamedTable:
        return self.table.only(self.held)

    def version(self, side: Mask, *, labels: bool = True) -> str:
        """Return a digest of some rows' values, identifiers and labels, whatever their order."""
        told: Any = self.table.labels() if labels else None
        columns = [] if told is None else [told[name] for name in told.dtype.names or (...,)]
        chosen = [x[side] for x in (*columns, self.ids, self.marks) if x is not None]
        order = np.lexsort(chosen)
        return hashlib.sha256(b"".join(each[order].tobytes() for each in chosen)).hexdigest()

    @property
    def n_sent(self) -> int:
        return len(self.held) - self.n_held

    @property
    def n_held(self) -> int:
        return int(np.count_nonzero(self.held))


def open_rows(session: PartySession, table: Path) -> PartyRows:
    """Open a party's table and split it: the agreed share of rows is held back.

    The sides follow from the vault's keyed marks, so that a row, or a person, stays on its own in
    every later round and whatever stands around it. A block's parties share no key that outlives
    a round: there they follow from the identifier alone, a person's at all of them.
    """
    agreement, ids = session.agreement, None
    rows = open_table(
        table,
        agreement=agreement,
        party=session.name,
        mapping=session.round.mapping(),
        report=session.report,
    )
    marks = sides = session.vault.fingerprints(rows.plain_rows())
    if (people := rows.people()) is not None:
        if None in people:
            raise FeatureError(
                f"the id column '{agreement.id}' of party '{session.name}' has empty cells, so it "
                "cannot be told whose rows were uploaded before. Fill them."
            )
        ids = sides = session.vault.people(people)
        if agreement.holdings and others_of(agreement):
            hashed = [hashlib.sha256(f"{_SIDE}{each}".encode()).digest()[:8] for each in people]
            sides = np.frombuffer(b"".join(hashed), dtype="<u8").astype(np.uint64)
    held = sides < np.uint64(agreement.holdout * _ALL)
    return PartyRows(table=rows, marks=marks, ids=ids, held=held)


def unseen(session: PartySession, table: Path, *, dataset: Dataset) -> PartyRows:
    """Open a table, and hold back every row that was not uploaded."""
    rows = open_rows(session, table)
    if rows.ids is None:
        return replace(rows, held=~dataset.knows(rows.marks, rows.marks[:0]))
    # people may be alike in every value: a row of the last upload tells by its identifier alone
    seen = np.isin(rows.ids, dataset.people) | np.isin(rows.marks, dataset.earlier)
    return replace(rows, held=~seen)


def public_rows_in(path: Path | None, agreement: Agreement, *, party: str) -> Any:  # noqa: ANN401 -- a table
    """Return the public rows of a file as `check_public_rows` takes them; None without one."""
    if path is None:
        return None
    whole = agreement.whole  # of all columns, whichever the party holds
    source = source_of(path, party=party, features=columns_in(whole.features))
    refuse_absent(source, whole.columns, labels=None, party=party)
    return source.collect(*map(pl.col, whole.columns))


@dataclass(frozen=True, kw_only=True, repr=False)
class Findings(Hidden, Checked):
    rows: PartyRows | None
    problems: tuple[CobasisError, ...]

    @property
    def n_held(self) -> int | None:
        return None if self.rows is None else self.rows.n_held

    @property
    def fits(self) -> bool:
        return not self.problems and super().fits

    def opened(self, agreement: Agreement, *, doubts: Collection[ColumnFinding] = ()) -> PartyRows:
        refused = [each for each in self.findings if each.refused]
        if refused:
            more = f"; and {len(refused) - SHOWN} more" if len(refused) > SHOWN else ""
            told = "; ".join(each.text for each in refused[:SHOWN])
            raise _kind_of(refused[0], agreement)(
                f"{self.source.what} does not fit the agreement: {told}{more}. Correct what is "
                "listed, or say with --mapping FILE, or asked on a terminal, what your columns "
                "are. Nothing was made; 'cobasis send --dry-run' lists all."
            )
        for problem in self.problems:
            raise problem
        if doubts:
            told = " ".join(each.text for each in doubts)
            raise UnlikeColumnError(
                f"{self.source.what} looks unlike the agreement, and nobody has said that it is "
                f"right: {told} A column in another unit, or under another column's name, spoils "
                "the model for everybody, and nobody else can see it. Correct the table; what is "
                "right as it is, name with --checked COLUMN, or answer on a terminal."
            )
        return cast("PartyRows", self.rows)  # without columns that are refused there are rows


def unlike(session: PartySession, found: Findings) -> tuple[ColumnFinding, ...]:
    answers = session.round.called_right()
    return tuple(
        each
        for each in found.findings
        if each.asked and each.problem not in answers.get(each.column, ())
    )


def answered(session: PartySession, found: Findings) -> list[tuple[str, str]]:
    told = {True: "not answered yet", False: "called right by the party"}
    yet = unlike(session, found)
    return [(each.text, told[each in yet]) for each in found.findings if each.asked]


def use_mapping(session: PartySession, mapping: TableMapping) -> None:
    """Keep what the party says of its columns; StepError once something was sent by other words."""
    if mapping == session.round.mapping():
        return
    if session.history(*[each.sent_as for each in EXCHANGES.values()]):
        raise StepError(
            f"party '{session.name}' has sent a file of round '{session.agreement.round_id}', and "
            "its columns stay mapped as they were then. Leave --mapping out, or agree on a new "
            "round."
        )
    refuse_mapping(mapping, session.agreement)
    session.round.map_columns(mapping)


def refuse_mapping(mapping: TableMapping, agreement: Agreement) -> None:
    """Raise OptionError for what a mapping says of a column that is not agreed so."""
    columns = agreed_columns(agreement, agreement.label or None)
    of_words = {each.name: isinstance(each, CategoryFeature) for each in columns}
    for name, step in mapping.root.items():
        if name not in of_words:
            problem = "is no agreed column"
        elif of_words[name] and (step.factor != 1 or step.days_since):
            problem = "has a factor or days, and words are agreed"
        elif step.words and not of_words[name]:
            problem = "has words, and numbers are agreed"
        else:
            continue
        raise OptionError(f"the mapping's [{name}] {problem}. Correct it, and say it again.")


def _kind_of(finding: ColumnFinding, agreement: Agreement) -> type[CobasisError]:
    if finding.problem == "type":
        return DtypeError
    if finding.column == agreement.label:
        return LabelError
    words = {each.name for each in agreement.features if isinstance(each, CategoryFeature)}
    if finding.problem in {"missing", "infinite"} and finding.column not in words:
        return NotFiniteError
    return FeatureError


def check(session: PartySession, table: Path) -> Findings:
    agreement, rows = session.agreement, None
    told: Any = {"agreement": agreement, "party": session.name, "report": session.report}
    found = check_table(table, **told, mapping=session.round.mapping())
    absent = {each.column for each in found.findings if each.problem == "absent"}
    try:
        if agreement.id and agreement.id not in absent:
            _refuse_crowds(session, found.source)
        if found.fits:
            rows = open_rows(session, table)
            labels = rows.table.labels()  # refuses a row that cannot be, as with an event of 2
            if agreement.sums is not None:
                refuse_beyond(labels, agreement.sums, party=session.name)
            _refuse_few(rows, session)
    except CobasisError as error:
        return Findings(**vars(found), rows=None, problems=(error,))
    return Findings(**vars(found), rows=rows, problems=())


def _refuse_crowds(session: PartySession, source: Source) -> None:
    """Raise AgreementError or FeatureError for people who stand in more rows than are agreed."""
    name, terms = session.agreement.id, session.agreement.dp
    most = 1 if terms is None else terms.rows_per_person
    counts = pl.col(name).drop_nulls().value_counts().struct.field("count")
    if not source.collect((counts > most).any()).item():
        return
    if terms is not None:
        raise AgreementError(
            f"some identifiers of party '{session.name}' stand in more than rows_per_person={most} "
            "rows, so the noise of [dp] would be too small for these people. Leave rows of theirs "
            "out, or agree on a larger rows_per_person."
        )
    raise FeatureError(
        f"some identifiers in the id column '{name}' of party '{session.name}' stand in several "
        "rows. Leave rows out, or agree on a column that tells them apart."
    )


def _refuse_few(rows: PartyRows, session: PartySession) -> None:
    agreement, size = session.agreement, session.agreement.n_components
    rule = BASES[agreement.basis]
    needed = size + rule.centred if rule.span.startswith("own") and not agreement.sums else 1
    if agreement.sums and not rows.n_sent:
        raise AgreementError(
            f"holdout={agreement.holdout} holds back all rows of party '{session.name}', and none "
            "is left to send. Give more rows, or agree on a smaller share."
        )
    if rows.n_sent < needed:
        raise DimensionError(
            f"party '{session.name}' has, without those that holdout={agreement.holdout} holds "
            f"back, fewer rows than the {needed:,} that basis '{agreement.basis}' with {size:,} "
            "components needs. Give more rows, or agree on fewer components or a smaller share."
        )
    refuse_few(rows.n_sent, agreement=agreement, party=session.name)
