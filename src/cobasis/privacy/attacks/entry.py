"""One line of the catalogue of attacks."""

from dataclasses import dataclass
from typing import Literal

Role = Literal[
    "whoever opens an upload",
    "the analyst alone",
    "the analyst and one party",
    "a party alone",
    "several parties together",
    "a party that lies",
]
"""Who can do it, from the one who needs least to the one who breaks the rules."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An attack in words."""

    name: str
    attack: str  # dotted name of the class
    role: Role  # the least that somebody has to be
    needs: str  # besides what the role sees anyway
    recovers: str  # with a measured figure
    stops: str
    does_not_stop: str  # what looks as if it did
    test: str  # path and name


def shown_in(name: str, test: str) -> str:
    """Return the path and name of a test of the attack module of that name."""
    return f"tests/privacy/attacks/test_{name}.py::{test}"


def class_in(module: str, name: str) -> str:
    """Return the dotted name of a class of this package."""
    return f"cobasis.privacy.attacks.{module}.{name}"
