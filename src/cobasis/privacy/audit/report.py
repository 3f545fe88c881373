"""What an audit returns: one frozen object, and the same as JSON."""

import hmac
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cobasis.linalg.arrays import Hidden
from cobasis.linalg.rng import require_key
from cobasis.privacy.audit.grading import POLICY, Finding
from cobasis.privacy.audit.what_if import Effect
from cobasis.privacy.audit.wording import Verdict
from cobasis.strict_json import canonical_json


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
