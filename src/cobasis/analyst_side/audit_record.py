"""What travels of a party's audit: policy, verdict and a seal; a claim that nobody proves."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WORDS = {
    "policy": re.compile(r"[a-z0-9/._-]{1,60}"),
    "verdict": re.compile(r"[a-z-]{1,60}"),
    "report": re.compile(r"[0-9a-f]{64}"),
}
"""In which form each word is written down and printed; a party could send any text."""

UNREADABLE = "unreadable"
"""What stands for a word in another form."""


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """What an upload says of the audit that was made before it left.

    Attributes
    ----------
    policy, verdict : str
        Under which policy, and which of its verdicts.
    report : str
        Salted hash of the report, which the party keeps.
    """

    policy: str
    verdict: str
    report: str


def audit_words(audit: Mapping[str, object] | None) -> list[str]:
    """Return a manifest's record as the transcript has it."""
    if audit is None:
        return []
    told = {word: audit.get(word) for word in _WORDS}
    return [
        value if isinstance(value, str) and _WORDS[word].fullmatch(value) else UNREADABLE
        for word, value in told.items()
    ]


def audit_record(words: Sequence[str]) -> AuditRecord | None:
    """Return a record from the words of a transcript; None where there are none."""
    return AuditRecord(policy=words[0], verdict=words[1], report=words[2]) if words else None
