"""How answers are written: lines that fit a terminal, and fields for programs."""

import sys
import textwrap
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from cobasis.cli.status import Standing
    from cobasis.privacy.audit.report import AuditReport
    from cobasis.protocol.exchanges import Exchange

_WIDE = 79

PERSON = ("name", "role", "fingerprint")
"""What programs get of somebody."""


def on_screen() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()  # None where it is closed


def safe(line: str) -> str:
    """Return a line without what a terminal would obey, such as an escape in a file's name."""
    return "".join(each if each.isprintable() else "?" for each in line)


def wrapped(text: str, *, lead: str = "") -> list[str]:
    # Others wrote some of it: nobody's words are to hide or move what stands beside them.
    text = "".join(" " if each.isspace() else each for each in text)
    return textwrap.wrap(
        safe(text),
        _WIDE,
        initial_indent=safe(lead),
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )


def audit_in_words(report: "AuditReport") -> Iterator[str]:
    yield from wrapped(f"Audit: {report.verdict_words}")
    for at, each in enumerate(report.sentences, start=1):
        yield from wrapped(each, lead=f"  {at}. ")
    for found in report.blocking:
        yield from wrapped(f"Blocked: {found.title} ({found.id}). {found.words}")
    if told := "; ".join(f"{found.title} ({found.id})" for found in report.to_sign):
        yield from wrapped(f"To be signed for: {told}.")
    if report.first:
        yield from wrapped(f"What we would change first: {report.first}")


def message_in_words(of: "Standing", exchange: "Exchange", party: str) -> str:
    receipt, mine = of.receipts(exchange).get(party), party == of.name
    if of.out.get(party) == "removed":
        return "removed"
    if receipt is not None:
        here = {each.told.get("file") for each in of.own if each.event == "receipt"}
        kept = ", receipt is here" if mine and receipt.file in here else ""
        spanned = exchange.reply == "span" and of.news.ended and party not in of.outside  # for good
        out = f", {of.out[party]}" if party in of.out and not spanned else ""
        if out and of.role == "analyst" and of.agreement.sums is None:
            out += f" (cobasis run --with {party})"
        late = ", after the last run" if party in of.late and exchange is of.exchanges[-1] else ""
        return f"received {day(receipt.time)}{kept}{out}{late}"
    span = "the span was made without it" * ({exchange.reply, party} <= {"span", *of.outside})
    if party in of.out:
        return ", ".join(filter(None, (of.out[party], span)))
    if mine and of.sent(exchange) and not span:
        return "made here; no receipt yet"
    if of.missed(exchange, party):
        return f"too late, {span or 'it ended without it'}"
    return "missing" if of.known or mine else "not known"


def day(text: str) -> str:
    return f"{datetime.fromisoformat(text):%-d %b %Y}"


def listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names)) or "nobody"


def picked(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


def aside(text: str, *, lead: str = "") -> None:
    typer.echo("\n".join(wrapped(text, lead=lead)), err=True)
