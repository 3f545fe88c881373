"""The audit of an upload: one frozen object, what it says to people, and the same as JSON."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import TypeAdapter

from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import require_key
from cobasis.privacy.audit.policy import POLICY, Finding, Grade, per_cent
from cobasis.strict_json import canonical_json

Verdict = Literal["pseudonymised", "differentially-private", "aggregate"]

_ALIKE = 0.01  # shares that are so near the largest one count as the largest, too

UNTESTED = (
    "Better attacks than ours: a figure says what is possible at least, none what is at most.",
    "Records from elsewhere: half of your own rows played them, which favours the attacker.",
    "What the trained model tells about who was in the table, or who joined between two models.",
    "What other parties do: one that keeps its basis badly, or lies about its rows.",
    "Attacks on machines, keys and mail; whether the analyst deletes what it has to.",
    "What can be found out by joining a rebuilt record with a register or a newspaper.",
)
"""What no figure of an audit covers, whoever is audited."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    name: str  # the setting in words
    # people that linkage was measured on, by an analyst alone on half of them; else up to 1,000
    n_rows: int
    content: float  # R2 if one party helps the analyst
    whole: Grade  # whether enough bits leave to rebuild whole records: red for yes, green for no
    alone: float | None  # linkage by an analyst with similar records, alone; None with too few rows
    leaked: float  # linkage if the secret basis leaks, which only noise changes
    # of a ridge model, or R2 for numbers, as the mean of three splits; None without labels
    accuracy: float | None
    accuracy_least: float | None
    accuracy_most: float | None
    n_scored: int  # people whom a split was scored on


def _shares(effect: Effect) -> dict[str, float]:
    """Return what an attacker gets; a record that can be given back whole counts as rebuilt."""
    return {
        "rebuilt, if one party helps the analyst": 1.0 if effect.whole == "red" else effect.content,
        "picked out of a list by an analyst alone": effect.alone or 0.0,
        "picked out of a list, if the basis leaks": effect.leaked,
    }


def first_of(effects: Sequence[Effect], *, task: str) -> str:
    """Return the cheapest change that halves the largest share, and its price; empty for none."""
    if not effects[1:]:
        return ""
    now, before = effects[0], _shares(effects[0])

    def price(then: Effect) -> int:
        return max(0, round(100 * ((now.accuracy or 0) - (then.accuracy or 0))))

    found = [
        (price(each), _shares(each)[share], share, each)
        for each in effects[1:]
        for share, was in before.items()
        if was >= max(before.values()) - _ALIKE and _shares(each)[share] <= was / 2
    ]
    if not found:
        return "No single change that was tried halves the largest share."
    points, after, share, change = min(found, key=lambda each: each[:2])
    worth = "no price was measured"
    if now.accuracy is not None and change.accuracy is not None:
        unit = "right answers" if task == "classification" else "R2"
        was, then = per_cent(now.accuracy), per_cent(change.accuracy)
        worth = f"it costs a simple model {points} points of {unit} ({was} -> {then})"
    what = f"{change.name[:1].upper()}{change.name[1:]}: {share}"
    return f"{what} {per_cent(before[share])} -> {per_cent(after)}; {worth}."


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditReport(Hidden):
    about: Mapping[str, Any]  # which upload was looked at, by what, and when
    verdict: Verdict
    verdict_words: str
    sentences: tuple[str, str, str, str]  # with this table's own figures
    findings: tuple[Finding, ...]
    # the next two stay empty where no rows leave
    effects: tuple[Effect, ...] = ()  # what would change the figures, measured
    first: str = ""  # the change that we would make first, and its price
    untested: tuple[str, ...]  # what no figure covers

    def __getitem__(self, id: str) -> Finding:  # noqa: A002 -- the findings' own word
        return {each.id: each for each in self.findings}[id]

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """Findings for which rows do not leave, unless two people answer for it."""
        return tuple(each for each in self.findings if each.action == "block")

    @property
    def to_sign(self) -> tuple[Finding, ...]:
        return tuple(each for each in self.findings if each.action == "sign")


def as_json(report: AuditReport) -> dict[str, Any]:
    return {
        "policy": POLICY,
        **asdict(report),
        "blocked": bool(report.blocking),
        "to_sign": [each.id for each in report.to_sign],
        "findings": [
            {**asdict(each), "title": each.title, "action": each.action} for each in report.findings
        ],
    }


def from_json(told: Mapping[str, Any]) -> AuditReport:
    return TypeAdapter(AuditReport).validate_python(told)


def seal_of(told: Mapping[str, Any], *, salt: bytes) -> str:
    """Return a hash of a report's JSON that only who has the salt can open."""
    key = require_key(salt, name="the salt of an audit")
    return hmac.digest(key, b"cobasis/audit/1\0" + canonical_json(told), "sha256").hex()
