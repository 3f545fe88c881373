"""How `send` and `audit` ask what a party's columns are, where they are not as agreed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from cobasis.bundle.agreement_file import text_of
from cobasis.cli import options
from cobasis.cli.options import Owner, progress
from cobasis.cli.words import aside, listed, wrapped
from cobasis.features.mapping import Mapping as TableMapping
from cobasis.features.problems import ColumnFinding
from cobasis.party_side.rows import Findings, check, use_mapping
from cobasis.party_side.session import PartySession

NOTHING = "-"  # the answer that a word stands for no value


@dataclass(frozen=True, kw_only=True)
class Mapped:
    mapping: Annotated[Path | None, Option(help="TOML that says what your columns are.")] = None

    def read(self) -> TableMapping:
        if self.mapping is None:
            return TableMapping()
        return TableMapping.of_toml(text_of(self.mapping), what=f"'{self.mapping}'")

    def check(self, owner: Owner, session: PartySession, data: Path) -> Findings:
        """Hold a table against the agreement; on a terminal, ask what does not fit as it is."""
        if self.mapping is not None:
            use_mapping(session, self.read())
        while True:
            with progress() as session.report:
                found = check(session, data)
            if found.fits or not options.on_terminal():
                return found
            before = mapping = session.round.mapping()
            unused = [each.column for each in found.findings if each.problem == "unused"]
            for each in (each for each in found.findings if each.refused):
                owner.tell(wrapped(each.counted, lead="  - "))
                mapping = _asked(mapping, each, unused=unused)
            if mapping == before:
                return found
            use_mapping(session, mapping)

    def converted(self, session: PartySession, doubts: Iterable[ColumnFinding]) -> bool:
        """Ask for factors to the agreed units; whether there are any."""
        before = mapping = session.round.mapping()
        for name in {each.column: each for each in doubts if each.problem in {"centre", "spread"}}:
            factor = _said(f"By what are your numbers of '{name}' to be multiplied?")
            mapping = mapping.adding(name, factor=factor) if factor else mapping
        use_mapping(session, mapping)
        return mapping != before


def _asked(mapping: TableMapping, each: ColumnFinding, *, unused: list[str]) -> TableMapping:
    """Ask about one column that does not fit; an empty answer leaves it as it is."""
    name = each.column
    if each.problem == "absent" and unused:
        own = _said(f"Which of your columns is '{name}'? You have {listed(unused)}", unused)
        return mapping.adding(name, column=own) if own else mapping
    if each.problem == "type" and each.dates:
        day = _said(f"'{name}' holds dates. Days since which, like 2000-01-01?")
        return mapping.adding(name, days_since=day) if day else mapping
    for word in each.words if each.problem in {"type", "vocabulary"} else ():
        words = [*each.agreed, NOTHING]
        meant = _said(f"What is '{word}' in '{name}'? {NOTHING} is no value", words)
        if meant == NOTHING:
            mapping = mapping.adding(name, blanks=(word,))
        elif meant:
            mapping = mapping.adding(name, words={word: meant})
    return mapping


def _said(question: str, words: Sequence[str] = ()) -> str:
    while True:
        told = typer.prompt(f"{question} (empty: stop)", default="", show_default=False, err=True)
        said = str(told).strip()
        if not said or not words or said in words:
            return said
        aside(f"Write one of {listed(words)}.", lead="  ")
