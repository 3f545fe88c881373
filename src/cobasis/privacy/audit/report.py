"""The audit of an upload: one frozen object, what it says to people, and the same as JSON."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import KEY_BYTES, require_key
from cobasis.linalg.threads import one_blas_thread
from cobasis.privacy.audit.attackers import (
    acquainted,
    attributes,
    colluded,
    curious,
    linked,
    structure,
)
from cobasis.privacy.audit.policy import (
    POLICY,
    Finding,
    checked,
    model_sentence,
    of_ten,
    per_cent,
    times,
)
from cobasis.privacy.audit.subject import Facts, Setting, Spans, Subject, settings_of
from cobasis.privacy.audit.what_if import Distance, Effect, distances, effects, swept
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
        linked = per_cent(findings["P3"].figures["linked"])
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
    content, linkage = findings["P1"].figures, findings["P3"].figures
    helped = (
        f"If one partner helps the analyst, {per_cent(content['explained'])} of the information "
        f"in each record can be rebuilt on average, "
        f"{per_cent(content['explained_worst_percent'])} for the 1 % of people who are rebuilt "
        f"best, and {of_ten(content['cells'])} values land within 10 % of the truth (guessing the "
        f"average person: {of_ten(content['cells_chance'])}); given a list of candidates, the "
        f"right person is picked {times(linkage['linked'])}."
    )
    alone, known = _alone(findings["P2"].figures), _who_knows(findings["P4"].figures)
    return helped, alone, known, model_sentence(facts)


def _alone(found: Mapping[str, Any]) -> str:
    if not found:
        return (
            "What an analyst with similar public data would find out alone cannot be measured on "
            "so few rows; take it that the right person can be picked."
        )
    return (
        f"An analyst with {found['n_public']:,} similar public records and a list of "
        f"candidates, acting alone, would pick the right person {times(found['linked'])} (chance: "
        f"{times(found['chance'])})."
    )


def _who_knows(found: Mapping[str, Any]) -> str:
    if not found:
        return "How many of your people somebody has to know cannot be measured on so few rows."
    named, rebuilt, tried = found["named_from"], found["explained_from"], found["tried"]
    first = (
        f"Someone who knows the records of {named:,} of your people could name one in eleven of "
        "the rest"
        if named is not None
        else f"Knowing {tried:,} of your people, the most that were tried, names fewer than one in "
        "eleven of the rest"
    )
    second = (
        f"knowing {rebuilt:,} rebuilds half of the information in everybody's record"
        if rebuilt is not None
        else f"{tried:,} do not rebuild half of the information in everybody's record"
    )
    return f"{first}; {second}."


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


def audit(
    subject: Subject,
    *,
    facts: Facts,
    about: About,
    rng: np.random.Generator,
    settings: Sequence[Setting] | None = None,
) -> AuditReport:
    """Measure what an upload gives away, before it leaves.

    Figures are lower bounds: what our attacks find, others find as well.

    Chen and Liu, "Privacy preserving data classification with rotation perturbation", ICDM 2005;
    Imakura et al., arXiv:2208.14611; Nguyen et al., arXiv:1902.10799 for epsilon-DR.
    """
    with one_blas_thread():
        seed = int(rng.integers(2**32))
        found = _findings(subject, facts, seed=seed, rng=rng)
        known = {each.id: each for each in found}
        own = Setting(n_components=subject.n_components, basis=facts.basis)
        asked = settings_of(subject, own) if settings is None else settings
        largest = swept(subject, asked)[-1]
        spans = Spans(subject, own=facts.basis, largest=largest, key=rng.bytes(KEY_BYTES))
        measured = effects(subject, settings=asked, task=facts.task, spans=spans, seed=seed)
        return AuditReport(
            about=about,
            verdict=verdict_of(facts),
            verdict_words=verdict_words(facts, known),
            sentences=sentences(known, facts),
            findings=found,
            distances=distances(subject, settings=asked, rng=rng),
            effects=measured,
            changes=effect_sentences(measured, task=facts.task),
            untested=_untested(subject, facts),
        )


def _findings(
    subject: Subject, facts: Facts, *, seed: int, rng: np.random.Generator
) -> tuple[Finding, ...]:
    """Return P1 to P6, H1 to H6 and D1."""
    few, inferred = rng.spawn(2)  # so that no metric moves another's numbers
    return (
        colluded(subject),
        curious(subject, seed=seed),
        linked(subject),
        acquainted(subject, rng=few),
        attributes(subject, rng=inferred),
        structure(subject),
        *checked(subject, facts),
        Finding("D1", "told", guarantee_words(facts)),
    )


def _untested(subject: Subject, facts: Facts) -> tuple[str, ...]:
    """Return what was not looked at, of this table in particular first."""
    told = []
    if subject.n_rows < facts.n_rows:
        told.append(
            f"{facts.n_rows - subject.n_rows:,} of {facts.n_rows:,} rows: {subject.n_rows:,} were "
            "drawn at random and looked at. A list of all people is longer, and the right one "
            "harder to pick."
        )
    if not subject.sensitive:
        told.append(
            "What can be inferred about a sensitive column: none was named. Name one with "
            "--sensitive."
        )
    return (*told, *UNTESTED)


def as_json(report: AuditReport) -> dict[str, Any]:
    """Return a report as one JSON object."""
    return {
        "policy": POLICY,
        **asdict(report),
        "blocked": bool(report.blocking),
        "to_sign": [each.id for each in report.to_sign],
        "findings": [
            {**asdict(each), "title": each.title, "action": each.action} for each in report.findings
        ],
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
