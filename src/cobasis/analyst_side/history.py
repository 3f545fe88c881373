"""What has happened in a round, read back from the analyst's transcript: the one record of it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from cobasis.algorithms.certificate import Evidence
from cobasis.bundle.transcript import Entry, Fact
from cobasis.models import ModelName
from cobasis.protocol.agreement import Message
from cobasis.protocol.signatures import Signature

OPENED, AGREED, RECEIVED, CONSENSUS = "opened", "agreed", "received", "consensus"
FORGOTTEN = "forgotten"
KEY_DESTROYED = "key destroyed"
RUN, ADDED, REMOVED = "run", "added", "removed"

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
    """What an upload says of the audit that was made before it left."""

    policy: str
    verdict: str
    report: str  # salted hash of the report, which the party keeps


def audit_words(audit: Mapping[str, object] | None) -> list[str]:
    """Return a manifest's record as the transcript has it."""
    if audit is None:
        return []
    told = {word: audit.get(word) for word in _WORDS}
    return [
        value if isinstance(value, str) and _WORDS[word].fullmatch(value) else UNREADABLE
        for word, value in told.items()
    ]


@dataclass(frozen=True, kw_only=True)
class Received:
    """A party's file that was accepted and acknowledged."""

    party: str
    exchange: int  # counted from 1
    message: Message
    file: str  # SHA-256 of the sealed file
    payload: str = ""  # SHA-256 of the opened upload
    created: str  # as its manifest says
    n_rows: int = 0
    time: str
    line: str  # hash of the transcript's line that says so
    audit: AuditRecord | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was trained last, and on whose uploads."""

    uploads: Mapping[str, str]  # digest of the sealed upload, by party
    alignment: str  # the folder of the target and the fits
    family: ModelName | None  # the model's; None for representation
    model_sha256: str | None
    evidence: Mapping[str, Evidence]  # what the certificate says, by party
    n_rows: int
    target_carries: tuple[str, ...]  # whose trace the target keeps
    returns: Mapping[str, str]  # digest of the sealed return, by party
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
    """Where the round stands."""

    digest: str = ""  # the agreement's, as the last opening has it; empty when there is no line
    # the good signatures under the agreement, by name
    agreed: Mapping[str, Signature] = field(default_factory=dict)
    agreed_at: str = ""  # when the last of them came
    # by message and party; also of those that were removed
    files: Mapping[tuple[str, str], Received] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    # parties that the analyst goes on without, until it says otherwise
    without: tuple[str, ...] = ()
    # whose directions shaped the common span, where there is one
    contributors: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()  # when each exchange ended, as many as have
    outcome: Outcome | None = None
    forgotten: str = ""  # when the uploads were destroyed; empty before

    def taken(self, message: Message) -> dict[str, Received]:
        """Return everybody's file of a kind by party, those that were removed left out."""
        return {
            party: each
            for (kind, party), each in self.files.items()
            if kind == message and party not in self.removed
        }

    @cached_property
    def received(self) -> Mapping[str, Received]:
        """The uploads that are in, by party."""
        return self.taken("upload")

    def files_of(self, party: str) -> tuple[str, ...]:
        """Return the digests of all that a party sent."""
        return tuple(each.file for each in self.files.values() if each.party == party)

    def with_file(self, new: Received) -> "History":
        """Return the history with one file more."""
        return replace(self, files={**self.files, (new.message, new.party): new})


def history_of(entries: Iterable[Entry]) -> History:
    """Read a round's history from the lines of a transcript."""
    found = History()
    agreed: dict[str, Signature] = {}
    files: dict[tuple[str, str], Received] = {}
    for entry in entries:
        told = cast("Mapping[str, Any]", entry.told)
        if entry.event == OPENED:  # anew where a text was edited before all had signed it
            found, agreed, files = History(digest=told["agreement"]), {}, {}
        elif entry.event == AGREED:
            agreed[told["name"]] = Signature(agreement=found.digest, **told)
            found = replace(found, agreed_at=entry.time)
        elif entry.event == RECEIVED:
            new = received_of(entry)
            files[new.message, new.party] = new
        elif entry.event == CONSENSUS:
            names = tuple(told["contributors"])
            ended = (*found.ended, entry.time)
            without = tuple(told["without"])
            found = replace(found, contributors=names, ended=ended, without=without)
        elif entry.event == FORGOTTEN:
            found = replace(found, forgotten=entry.time)
        elif entry.event in {RUN, ADDED, REMOVED}:
            found = _trained(found, entry, told)
    return replace(found, agreed=agreed, files=files)


def received_of(entry: Entry) -> Received:
    """Read what was received back from its line."""
    told = cast("dict[str, Any]", dict(entry.told))
    words = told.pop("audit")
    audit = AuditRecord(**dict(zip(_WORDS, words, strict=True))) if words else None
    return Received(**told, time=entry.time, line=entry.hash, audit=audit)


def _trained(before: History, entry: Entry, told: Mapping[str, Any]) -> History:
    outcome, ended, removed = before.outcome, before.ended, before.removed
    if entry.event == REMOVED and told["party"] not in removed:
        removed = (*removed, told["party"])
    if "uploads" in told:
        if outcome is None:
            ended = (*ended, entry.time)
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
    without = tuple(told.get("without", before.without))
    return replace(before, removed=removed, outcome=outcome, ended=ended, without=without)


def _listed(told: Mapping[str, str]) -> list[str]:
    """Return "digest  name" for each, as checksum tools write them."""
    return [f"{what}  {name}" for name, what in told.items()]


def _mapped(lines: Iterable[str]) -> dict[str, str]:
    pairs = (line.split("  ", 1) for line in lines)
    return {name: digest for digest, name in pairs}
