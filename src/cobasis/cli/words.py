"""How answers are written: lines that fit a terminal, and fields for programs."""

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from cobasis.party_side.session import PartySession

_WIDE = 79

PERSON = ("name", "role", "fingerprint")
"""What programs get of somebody."""


def wrapped(text: str, *, lead: str = "") -> list[str]:
    """Return a text in lines that fit a terminal of 80 columns, indented below the first.

    Others wrote some of it: what a terminal would obey, such as an escape, stands as a question
    mark, so that nobody's words can hide or move what stands beside them.
    """
    return textwrap.wrap(
        "".join(each if each.isprintable() or each.isspace() else "?" for each in text),
        _WIDE,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )


def row(title: str, text: object) -> list[str]:
    """Return a title and what belongs to it; nothing where there is nothing."""
    return wrapped(str(text), lead=f"  {title:<9} ") if text else []


def listed(names: Iterable[object]) -> str:
    """Return names with commas."""
    return ", ".join(map(str, names)) or "nobody"


def about(session: "PartySession", *, command: str) -> dict[str, Any]:
    """Return what programs get of every command of a party in a round."""
    return {"command": command, "round": session.agreement.round_id, "party": session.name}


def picked(source: object, *names: str) -> dict[str, Any]:
    """Return some of what something has, by name."""
    return {name: getattr(source, name) for name in names}


def aside(text: str, *, lead: str = "") -> None:
    """Say something for people, out of the way of the answer."""
    typer.echo("\n".join(wrapped(text, lead=lead)), err=True)
