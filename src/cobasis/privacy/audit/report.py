"""What an audit returns and says to people: one frozen object, its sentences, the same as JSON."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import require_key
from cobasis.models.families import FAMILIES
from cobasis.privacy.audit.grades import POLICY, Finding, of_ten, per_cent, times
from cobasis.privacy.audit.subject import Facts
from cobasis.privacy.audit.what_if import Effect
from cobasis.strict_json import canonical_json

Verdict = Literal["pseudonymised", "pseudonymised-with-noise", "differentially-private"]

UNTESTED = (
    "Better attacks than ours: a figure says what is possible at least, none what is at most.",
    "Records from elsewhere: half of your own rows played them, which favours the attacker.",
    "What the trained model tells about who was in the table, or who joined between two models.",
    "What other parties do: one that keeps its basis badly, or lies about its rows.",
    "Attacks on machines, keys and mail; whether the analyst deletes what it has to.",
    "What can be found out by joining a rebuilt record with a register or a newspaper.",
)
"""What no figure of an audit covers, whoever is audited."""


def verdict_of(facts: Facts) -> Verdict:
    """Return which of the three verdicts holds."""
    if facts.guarantee is not None:
        return "differentially-private"
    return "pseudonymised-with-noise" if facts.noise else "pseudonymised"


def verdict_words(facts: Facts, findings: Mapping[str, Finding]) -> str:
    """Return the verdict's fixed sentence."""
    verdict = verdict_of(facts)
    if verdict == "pseudonymised":
        return "Pseudonymised personal data. Treat as personal data."
    if verdict == "pseudonymised-with-noise":
        linked = per_cent(float(findings["P3"].figures["linked"] or 0))
        return f"Pseudonymised, added noise lowers linkage to {linked}; no formal guarantee."
    given = facts.guarantee
    told = "" if given is None else f"eps={given.epsilon:g}, delta={given.delta:g}, "
    return f"Protected by differential privacy: {told}per record, features only."


def guarantee_words(facts: Facts) -> str:
    """Return line D1: everything that a guarantee depends on, or that there is none."""
    given = facts.guarantee
    if given is None:
        return "No formal guarantee: what an attacker finds out is not bounded by a proof."
    return f"{given.statement[:1].upper()}{given.statement[1:]}."


def sentences(findings: Mapping[str, Finding], facts: Facts) -> tuple[str, str, str, str]:
    """Return the four sentences, each with this table's own figures."""
    return (
        _if_one_helps(findings["P1"], findings["P3"]),
        _alone(findings["P2"]),
        _who_knows(findings["P4"]),
        _model(facts),
    )


def _if_one_helps(content: Finding, linkage: Finding) -> str:
    found = content.figures
    explained, cells = float(found["explained"] or 0), float(found["cells"] or 0)
    chance, worst = float(found["cells_chance"] or 0), float(found["explained_worst_percent"] or 0)
    return (
        f"If one partner helps the analyst, {per_cent(explained)} of the information in each "
        f"record can be rebuilt on average, {per_cent(worst)} for the 1 % of people who are "
        f"rebuilt best, and {of_ten(cells)} values land within 10 % of the truth (guessing the "
        f"average person: {of_ten(chance)}); given a list of candidates, the right person is "
        f"picked {times(float(linkage.figures['linked'] or 0))}."
    )


def _alone(found: Finding) -> str:
    if "linked" not in found.figures:
        return (
            "What an analyst with similar public data would find out alone cannot be measured on "
            "so few rows; take it that the right person can be picked."
        )
    linked, chance = (float(found.figures[word] or 0) for word in ("linked", "chance"))
    return (
        f"An analyst with {found.figures['n_public']:,} similar public records and a list of "
        f"candidates, acting alone, would pick the right person {times(linked)} (chance: "
        f"{times(chance)})."
    )


def _who_knows(found: Finding) -> str:
    if "tried" not in found.figures:
        return "How many of your people somebody has to know cannot be measured on so few rows."
    named, rebuilt = found.figures["named_from"], found.figures["explained_from"]
    tried = found.figures["tried"]
    first = (
        f"Someone who knows the records of {_number(named)} of your people could name one in "
        "eleven of the rest"
        if named is not None
        else f"Knowing {_number(tried)} of your people, the most that were tried, names fewer than "
        "one in eleven of the rest"
    )
    second = (
        f"knowing {_number(rebuilt)} rebuilds half of the information in everybody's record"
        if rebuilt is not None
        else f"{_number(tried)} do not rebuild half of the information in everybody's record"
    )
    return f"{first}; {second}."


def _model(facts: Facts) -> str:
    if not facts.models:
        return "You get back no model, only your own change of basis."
    if any(FAMILIES[name].carries_rows for name in facts.models):
        return "The model you get back contains records of others, and theirs contains yours."
    trees = " (boosted trees carry single values as thresholds)"
    extra = "" if {"boosted_trees", "xgboost"}.isdisjoint(facts.models) else trees
    return f"The model you get back contains no records{extra}."


def effect_sentences(effects: Sequence[Effect], *, task: str) -> tuple[str, ...]:
    """Return what would change the figures, and by how much."""
    if not effects:
        return ()
    now, others = effects[0], effects[1:]
    worth = "R2 of a simple model" if task == "regression" else "right answers of a simple model"
    return tuple(
        f"{each.name[:1].upper()}{each.name[1:]}: information rebuilt if one partner helps "
        f"{per_cent(now.content)} -> {per_cent(each.content)}"
        + _moved("; right person picked by an analyst alone", now.alone, each.alone)
        + _moved("; if the basis leaks", now.leaked, each.leaked)
        + _moved(f"; {worth}", now.accuracy, each.accuracy)
        + "."
        for each in others
    )


def _moved(what: str, before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    return f"{what} {per_cent(before)} -> {per_cent(after)}"


def _number(value: float | str | None) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True, kw_only=True)
class About:
    """Which upload was looked at, by what, and when."""

    party: str
    round_id: str
    agreement: str  # its SHA-256
    # a keyed digest of the rows that are sent: it tells equal rows, and nothing else
    data_version: str
    tool_version: str
    time: str
    n_rows: int
    n_sampled: int  # drawn at random, and looked at
    n_features: int
    n_components: int
    basis: str
    anchor: str


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far a record is from what a colluding partner can make of it, for one basis and size."""

    basis: str  # a kind of basis, or 'this upload'
    n_components: int
    mean: float  # |x - x F F'| over the mean distance between a record and the average person
    worst: float  # over the 1 % of people for whom it is smallest


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditReport(Hidden):
    """Everything that a data-protection officer decides on."""

    about: About
    verdict: Verdict
    verdict_words: str
    sentences: tuple[str, str, str, str]  # with this table's own figures
    findings: tuple[Finding, ...]
    distances: tuple[Distance, ...]  # epsilon-DR, as the papers mean it, under collusion
    effects: tuple[Effect, ...]  # what would change the figures, measured
    changes: tuple[str, ...]  # and in words
    untested: tuple[str, ...]  # what no figure covers

    def __getitem__(self, id: str) -> Finding:  # noqa: A002 -- the findings' own word
        """Return a finding by its id; KeyError where there is none."""
        return {each.id: each for each in self.findings}[id]

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """Findings for which rows do not leave, unless two people answer for it."""
        return tuple(each for each in self.findings if each.action == "block")

    @property
    def to_sign(self) -> tuple[Finding, ...]:
        """Findings for which somebody has to sign."""
        return tuple(each for each in self.findings if each.action == "sign")


def as_json(report: AuditReport) -> dict[str, Any]:
    """Return a report as one JSON object."""
    return {
        "policy": POLICY,
        "about": asdict(report.about),
        "verdict": report.verdict,
        "verdict_words": report.verdict_words,
        "blocked": bool(report.blocking),
        "to_sign": [each.id for each in report.to_sign],
        "sentences": list(report.sentences),
        "findings": [
            {**asdict(each), "figures": dict(each.figures), "action": each.action}
            for each in report.findings
        ],
        "distances": [asdict(each) for each in report.distances],
        "effects": [asdict(each) for each in report.effects],
        "changes": list(report.changes),
        "untested": list(report.untested),
    }


def travelling(report: AuditReport, *, salt: bytes) -> Mapping[str, str]:
    """Return what may leave of a report: policy, verdict, and a hash that only the party opens."""
    key = require_key(salt, name="the salt of an audit")
    text = canonical_json(as_json(report))
    return {
        "policy": POLICY,
        "verdict": report.verdict,
        "report": hmac.digest(key, b"cobasis/audit/1\0" + text, "sha256").hex(),
    }
