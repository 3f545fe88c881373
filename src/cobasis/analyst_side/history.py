"""What has happened in a round, read back from the analyst's transcript: the one record of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from cobasis.algorithms.certificate import Evidence
from cobasis.bundle.expecting import AcceptedUpload
from cobasis.bundle.transcript import Entry, Fact
from cobasis.models import ModelName

OPENED, RECEIVED, CONSENSUS, FORGOTTEN = "opened", "received", "consensus", "forgotten"
KEY_DESTROYED = "key destroyed"
Training = Literal["run", "added", "removed"]
RUN: Training = "run"
ADDED: Training = "added"
REMOVED: Training = "removed"
_TRAINED = (RUN, ADDED, REMOVED)


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


@dataclass(frozen=True, kw_only=True)
class Received:
    """An upload that was accepted and acknowledged.

    Attributes
    ----------
    party : str
        Whose.
    upload, payload : str
        SHA-256 of the sealed file and of the opened one, 64 hexadecimal digits.
    created : str
        When, as its manifest says.
    n_rows : int
        How many rows it has.
    time, line : str
        When it was received, and the hash of the transcript's line that says so.
    audit : AuditRecord or None
        What it says of the party's audit; None where it says nothing.
    """

    party: str
    upload: str
    payload: str
    created: str
    n_rows: int
    time: str
    line: str
    audit: AuditRecord | None = None

    @property
    def accepted(self) -> AcceptedUpload:
        """What a later upload of the same party is compared with."""
        return AcceptedUpload(digest=self.upload, created=self.created)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was trained last, and on whose uploads.

    Attributes
    ----------
    uploads : mapping of str to str
        Digest of the sealed upload, by party.
    alignment : str
        The folder of the target and the fits.
    family : str or None
        The model's; None for representation.
    model_sha256 : str or None
        Of the model file that every party gets.
    evidence : mapping of str to str
        What the certificate says, by party.
    n_rows : int
        Of all parties together.
    target_carries : tuple of str
        Whose trace the target keeps.
    returns : mapping of str to str
        Digest of the sealed return, by party.
    time : str
        When.
    """

    uploads: Mapping[str, str]
    alignment: str
    family: ModelName | None
    model_sha256: str | None
    evidence: Mapping[str, Evidence]
    n_rows: int
    target_carries: tuple[str, ...]
    returns: Mapping[str, str]
    time: str

    def told(self) -> dict[str, Fact]:
        """Return what the transcript says of it."""
        return {
            "uploads": _listed(self.uploads),
            "alignment": self.alignment,
            "model": self.family or "",
            "model_sha256": self.model_sha256 or "",
            "evidence": _listed(self.evidence),
            "n_rows": self.n_rows,
            "target_carries": list(self.target_carries),
            "returns": _listed(self.returns),
        }


@dataclass(frozen=True, kw_only=True)
class History:
    """Where the round stands.

    Attributes
    ----------
    received : mapping of str to Received
        By party; those that were removed are not in it.
    removed : mapping of str to Received
        By party.
    contributors : tuple of str
        Whose directions shaped the common span, where there is one.
    outcome : Outcome or None
        What was trained last.
    forgotten : str
        When the uploads were destroyed; empty before.
    digest : str
        The agreement's, as the transcript's first line has it; empty when there is no line.
    """

    received: Mapping[str, Received] = field(default_factory=dict)
    removed: Mapping[str, Received] = field(default_factory=dict)
    contributors: tuple[str, ...] = ()
    outcome: Outcome | None = None
    forgotten: str = ""
    digest: str = ""


def history_of(entries: Iterable[Entry]) -> History:
    """Read a round's history from the lines of a transcript."""
    found = History()
    for entry in entries:
        told = cast("Mapping[str, Any]", entry.told)
        if entry.event == OPENED:
            found = replace(found, digest=told["agreement"])
        elif entry.event == RECEIVED:
            new = _received(entry, told)
            found = replace(found, received={**found.received, new.party: new})
        elif entry.event == CONSENSUS:
            found = replace(found, contributors=tuple(told["contributors"]))
        elif entry.event == FORGOTTEN:
            found = replace(found, forgotten=entry.time)
        elif entry.event in _TRAINED:
            found = _trained(found, entry, told)
    return found


def _received(entry: Entry, told: Mapping[str, Any]) -> Received:
    words = {name: told[name] for name in ("party", "upload", "payload", "created", "n_rows")}
    audit = audit_record(told.get("audit", ()))  # older lines have no such word
    return Received(**words, time=entry.time, line=entry.hash, audit=audit)


def _trained(before: History, entry: Entry, told: Mapping[str, Any]) -> History:
    received, removed = dict(before.received), dict(before.removed)
    if entry.event == REMOVED and told["party"] in received:
        removed[told["party"]] = received.pop(told["party"])
    outcome = before.outcome
    if "uploads" in told:
        outcome = Outcome(
            uploads=_mapped(told["uploads"]),
            alignment=told["alignment"],
            family=told["model"] or None,
            model_sha256=told["model_sha256"] or None,
            evidence=cast("Mapping[str, Evidence]", _mapped(told["evidence"])),
            n_rows=told["n_rows"],
            target_carries=tuple(told["target_carries"]),
            returns=_mapped(told["returns"]),
            time=entry.time,
        )
    return replace(before, received=received, removed=removed, outcome=outcome)


def _listed(told: Mapping[str, str]) -> list[str]:
    """Return "digest  name" for each, as checksum tools write them."""
    return [f"{what}  {name}" for name, what in told.items()]


def _mapped(lines: Iterable[str]) -> dict[str, str]:
    pairs = (line.split("  ", 1) for line in lines)
    return {name: digest for digest, name in pairs}
