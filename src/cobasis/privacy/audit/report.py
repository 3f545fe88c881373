"""What an audit says: findings, the bounds that grade them, and one report, also as JSON.

9 % is the re-identification threshold of EMA Policy 0070 and Health Canada (about one in eleven),
33 % the usual most under controlled access; neither is legal advice. A bound of this file is a
policy, and a policy has a name: changing one changes `POLICY`.
"""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pydantic import TypeAdapter

from cobasis.algorithms import BasisName
from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import require_key
from cobasis.strict_json import canonical_json

POLICY = "cobasis/audit/1"  # names the metrics and the bounds below; it travels with an upload

TITLES = {
    "P1": "Rebuilt, if one party helps the analyst",
    "P2": "Picked out of a list by an analyst with similar records, alone",
    "P3": "Picked out of a list, if the secret basis leaks",
    "P4": "People whose records have to be known, to rebuild others or pick them out",
    "P5": "Sensitive columns told, if 20 people are known",
    "P6": "What distances show, to anybody who opens the file",
    "S1": "Rows for each feature of the total",
    "S2": "Your own rows for each feature",
    "S3": "Cells of few people in tables of words",
    "H1": "Anchor",
    "H2": "Rows for each component",
    "H3": "Smallest class",
    "H4": "Earlier uploads and proposals of these rows",
    "H5": "The model that comes back",
    "H6": "Labels",
    "D1": "Formal guarantee",
}

_OWN = (
    "It reads your basis, whose directions are your rows' own. So it also tells who is in the "
    "table: surely with as many rows as components, well at three times, hardly at twenty."
)
_PROPOSED = (
    "It reads the common span, and from your proposal your own directions (of a weighted one also "
    "how strong each is), exactly. So a consensus hides no more from it than a basis of your own."
)
COLLUSION: Mapping[BasisName, str] = {
    "svd": _OWN,
    "pca": _OWN,
    "lpp": _OWN,
    "haar": "It has the span already, which is drawn from the secret and is of nobody's rows: your "
    "projected rows are all that it sees of them.",
    "public": "It has the span already, which is of the public rows: your projected rows are all "
    "that it sees of yours.",
    "consensus": _PROPOSED,
    "weighted_consensus": _PROPOSED,
}
"""What a party that helps the analyst sees under each basis, besides what it rebuilds of rows."""

Grade = Literal["green", "amber", "red", "told"]  # told is a figure without a bound

Action = Literal["none", "sign", "block"]
"""What has to happen before rows leave: nothing, a signature, or two names and a reason."""

BLOCKING = ("H1", "H4")  # whose red blocks; any other red needs a signature

CONTENT, LINKAGE, ATTRIBUTE = (0.10, 0.50), (0.09, 1 / 3), (0.05, 0.15)
"""Up to the first a figure is green, the bound itself included; above the second it is red."""

KNOWN_GREEN, KNOWN_RED = 100, 20
"""People who have to be known: green above the first, red below the second."""


@dataclass(frozen=True)
class Finding:
    id: str  # P1 to P6, S1 to S3, H1 to H6, D1
    grade: Grade
    words: str  # a sentence with its figures
    figures: Mapping[str, Any] = field(default_factory=dict)  # for machines; shares are 0 to 1

    @property
    def title(self) -> str:
        return TITLES[self.id]

    @property
    def action(self) -> Action:
        if self.grade != "red":
            return "none"
        return "block" if self.id in BLOCKING else "sign"


def graded(value: float, bounds: tuple[float, float]) -> Grade:
    """Return the grade of a figure of which less is better."""
    green, red = bounds
    return "green" if value <= green else "amber" if value <= red else "red"


def graded_known(number: int | None, tried: int) -> Grade:
    """Return the grade of a number of people who have to be known; None is more than was tried."""
    if (tried + 1 if number is None else number) > KNOWN_GREEN:
        return "green"
    # more than was tried says no more, and is no reason to sign
    return "amber" if number is None or number >= KNOWN_RED else "red"


def graded_bits(sent: float, needed: float) -> Grade:
    """Return the grade of bits that leave of a record, beside those that tell it from all."""
    return "red" if sent >= needed else "amber" if 2 * sent >= needed else "green"


def worst(*grades: Grade) -> Grade:
    order: tuple[Grade, ...] = ("told", "green", "amber", "red")
    return max(grades, key=order.index)


def per_cent(share: float) -> str:
    """Return a share in per cent; what is worse than guessing is 0, and nearly all is not all."""
    percent = 100 * min(max(share, 0.0), 1.0)
    if 0 < percent < 1:
        return f"{percent:.1f} %" if percent >= 0.05 else "less than 0.1 %"  # noqa: PLR2004
    if 99.5 < percent < 100:  # noqa: PLR2004
        return f"{percent:.1f} %" if percent < 99.95 else "more than 99.9 %"  # noqa: PLR2004
    return f"{percent:.0f} %"


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
    """Return the cheapest change that halves a largest share, and its price; empty for none."""
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
        return "No single change that was tried halves a largest share."
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
