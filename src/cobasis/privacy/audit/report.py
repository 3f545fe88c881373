"""The audit of an upload: one frozen object, what it says to people, and the same as JSON."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from pydantic import TypeAdapter

from cobasis.algorithms.bases import BASES
from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import KEY_BYTES, require_key
from cobasis.linalg.threads import one_blas_thread
from cobasis.privacy.attacks import Release
from cobasis.privacy.audit.attackers import findings
from cobasis.privacy.audit.policy import (
    POLICY,
    Finding,
    checked,
    graded_bits,
    model_sentence,
    of_ten,
    per_cent,
    times,
)
from cobasis.privacy.audit.subject import Facts, Guarantee, Setting, Spans, Subject
from cobasis.privacy.audit.what_if import Distance, Effect, distances, effects, swept
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


def _verdict_words(guarantee: Guarantee | None) -> str:
    if guarantee is None:
        return "Pseudonymised personal data. Treat as personal data."
    told = f"eps={guarantee.epsilon:g}, delta={guarantee.delta:g}, per record, features only"
    return f"Protected by differential privacy: {told}."


def _sentences(findings: Mapping[str, Finding], facts: Facts) -> tuple[str, str, str, str]:
    """Return the four sentences, each with this table's own figures."""
    content, found, linkage = (findings[each].figures for each in ("P1", "P2", "P3"))
    helped = (
        f"If one partner helps the analyst, {per_cent(content['explained'])} of the information "
        f"in each record can be rebuilt on average, "
        f"{per_cent(content['explained_worst_percent'])} for the 1 % of people who are rebuilt "
        f"best, and {of_ten(content['cells'])} values land within 10 % of the truth (guessing the "
        f"average person: {of_ten(content['cells_chance'])}); given a list of candidates, the "
        f"right person is picked {times(linkage['linked'])}."
    )
    if graded_bits(content["bits_sent"], content["bits_of_record"]) == "red":
        helped += (
            " Its columns may hold so few values that each record can be rebuilt whole, whatever "
            "the average says."
        )
    alone = (
        "What an analyst with similar public data would find out alone cannot be measured on so "
        "few rows; take it that the right person can be picked."
    )
    if found:
        alone = (
            f"An analyst with {found['n_public']:,} similar public records and a list of "
            f"candidates, acting alone, would pick the right person {times(found['linked'])} "
            f"(chance: {times(found['chance'])})."
        )
    return helped, alone, findings["P4"].words, model_sentence(facts)


_SHARES = (
    "rebuilt, if one party helps the analyst",
    "picked out of a list by an analyst alone",
    "picked out of a list, if the basis leaks",
)


def _shares(effect: Effect) -> tuple[float, ...]:
    """Return what `_SHARES` names; a record that can be given back whole counts as rebuilt."""
    whole = effect.whole == "red"
    return 1.0 if whole else effect.content, effect.alone or 0.0, effect.leaked


def _first(effects: Sequence[Effect], *, task: str) -> str:
    """Return the cheapest change that halves the largest share, and its price; empty for none."""
    if not effects[1:]:
        return ""
    now, before = effects[0], _shares(effects[0])
    found = [
        (_price(now, each), _shares(each)[at], at, each)
        for each in effects[1:]
        # without labels no model is trained, and an agreement has noise in a [dp] section alone
        if each.setting.labels and not each.setting.noise
        for at in range(len(before))
        if before[at] >= max(before) - _ALIKE and _shares(each)[at] <= before[at] / 2
    ]
    if not found:
        return "No single change that was tried, and can be agreed on, halves the largest share."
    price, after, at, change = min(found, key=lambda each: each[:3])
    worth = "no price was measured"
    if now.accuracy is not None and change.accuracy is not None:
        unit = "points of right answers" if task == "classification" else "points of R2"
        was, then = per_cent(now.accuracy), per_cent(change.accuracy)
        worth = f"it costs a simple model {price:.0f} {unit} ({was} -> {then})"
    return (
        f"{change.name[:1].upper()}{change.name[1:]}: {_SHARES[at]} {per_cent(before[at])} -> "
        f"{per_cent(after)}; {worth}."
    )


def _price(now: Effect, then: Effect) -> float:
    """Return in whole points what a change costs a simple model; 0 where it costs nothing."""
    return max(0.0, round(100 * ((now.accuracy or 0.0) - (then.accuracy or 0.0))))


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditReport(Hidden):
    """Everything that a data-protection officer decides on."""

    about: Mapping[str, str | int]  # which upload was looked at, by what, and when
    verdict: Verdict
    verdict_words: str
    sentences: tuple[str, str, str, str]  # with this table's own figures
    findings: tuple[Finding, ...]
    # the next three stay empty where no rows leave
    distances: tuple[Distance, ...] = ()  # epsilon-DR, as the papers mean it, under collusion
    effects: tuple[Effect, ...] = ()  # what would change the figures, measured
    first: str = ""  # the change that we would make first, and its price
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
    about: Mapping[str, str],
    rng: np.random.Generator,
    settings: Sequence[Setting],
) -> AuditReport:
    """Measure what an upload gives away at least, before it leaves."""
    # Chen and Liu, "Privacy preserving data classification with rotation perturbation", ICDM 2005;
    # Imakura et al., arXiv:2208.14611; Nguyen et al., arXiv:1902.10799 for epsilon-DR.
    with one_blas_thread():
        seed = int(rng.integers(2**32))
        found = findings(subject, facts, seed=seed, rng=rng)
        largest = swept(subject, settings)[-1]
        spans = Spans(subject, own=facts.basis, largest=largest, key=rng.bytes(KEY_BYTES))
        measured = effects(subject, settings=settings, task=facts.task, spans=spans, seed=seed)
        return AuditReport(
            about=_about(about, facts, subject, n_sampled=subject.n_rows),
            verdict="pseudonymised" if facts.guarantee is None else "differentially-private",
            verdict_words=_verdict_words(facts.guarantee),
            sentences=_sentences({each.id: each for each in found}, facts),
            findings=found,
            distances=distances(subject, settings=settings, spans=spans, rng=rng),
            effects=measured,
            first=_first(measured, task=facts.task),
            untested=_untested(subject, facts),
        )


def _about(
    about: Mapping[str, str], facts: Facts, subject: Subject, *, n_sampled: int
) -> dict[str, str | int]:
    return {
        **about,
        "n_rows": facts.n_rows,
        "n_sampled": n_sampled,
        "n_features": subject.rows.shape[1],
        "n_components": subject.n_components,
        "basis": facts.basis,
        "anchor": facts.anchor,
    }


def audit_proposal(
    facts: Facts, *, about: Mapping[str, str], shape: tuple[int, int]
) -> AuditReport:
    """Check a proposal of so many features and directions before it leaves, without any row."""
    n_features, n_directions = shape
    directions = np.eye(n_features, n_directions)
    release = Release(rows=np.empty((0, n_directions)), anchor_image=directions)
    subject = Subject(rows=np.empty((0, n_features)), release=release, basis=directions)
    helped = (
        "If one partner helps the analyst, your directions are known exactly; beside another "
        "proposal of nearly the same people they show who came or went."
    )
    weights = ", and how much each weighs" if BASES[facts.basis].weighted else ""
    return AuditReport(
        about=_about(about, facts, subject, n_sampled=facts.n_rows),
        verdict="pseudonymised",
        verdict_words=_verdict_words(None),
        sentences=(
            f"No row leaves: {n_directions:,} directions of {facts.n_rows:,} rows do.",
            f"The analyst, acting alone, learns their angles to the other parties'{weights}.",
            helped,
            model_sentence(facts),
        ),
        findings=checked(subject, facts),
        untested=("What rows give away: the upload, in which they leave, is audited.", *UNTESTED),
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


def from_json(told: Mapping[str, Any]) -> AuditReport:
    """Return the report that `as_json` told."""
    return TypeAdapter(AuditReport).validate_python(told)


def seal_of(told: Mapping[str, Any], *, salt: bytes) -> str:
    """Return a hash of a report's JSON that only who has the salt can open."""
    key = require_key(salt, name="the salt of an audit")
    return hmac.digest(key, b"cobasis/audit/1\0" + canonical_json(told), "sha256").hex()
