"""What has happened in a round, read back from the analyst's transcript: the one record of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, cast

from cobasis.algorithms.certificate import Evidence
from cobasis.bundle.transcript import Entry, Fact
from cobasis.models import ModelName
from cobasis.protocol.exchanges import EXCHANGES, MessageName
from cobasis.protocol.news import Revocation
from cobasis.protocol.signatures import Signature
from cobasis.protocol.word import WORD, Word

OPENED, AGREED, RECEIVED, CONSENSUS = "opened", "agreed", "received", "consensus"
LATE, RUN, REMOVED = "late", "run", "removed"
ATTEMPT, HALTED = "attempt", "halted"
FORGOTTEN, REVOKED = "forgotten", "revoked"

UNREADABLE = "unreadable"
"""What is written down for a word in another form; a party could send any text."""

_WORDS = {  # of the audit that was made before an upload left; the party keeps the report
    "policy": re.compile(r"[a-z0-9/._-]{1,60}"),
    "verdict": re.compile(r"[a-z-]{1,60}"),
    "report": re.compile(r"[0-9a-f]{64}"),  # a salted hash
}


def audit_words(audit: Mapping[str, object] | None) -> list[str]:
    """Return a manifest's record as the transcript has it."""
    told = {} if audit is None else {word: audit.get(word) for word in _WORDS}
    return [
        value if isinstance(value, str) and _WORDS[word].fullmatch(value) else UNREADABLE
        for word, value in told.items()
    ]


Family = ModelName | Literal[""]
"""A model's; empty where there is none, as for a representation."""


@dataclass(frozen=True, kw_only=True)
class Received:
    party: str
    exchange: int  # counted from 1
    message: MessageName
    file: str  # SHA-256 of the sealed file
    payload: str = ""  # SHA-256 of the opened upload
    created: str  # as its manifest says
    history: str = ""  # head of its party's own, as its manifest says
    n_rows: int = 0
    span: Sequence[str] = ()  # digest of the common span, and the party's signature about it
    time: str
    line: str  # hash of the transcript's line that says so
    audit: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a line says of a run, an addition or a removal that trained, in its own words."""

    uploads: Mapping[str, str]  # digest of the sealed upload, or of sums, by party
    model: Family
    model_sha256: str  # empty where there is none
    n_rows: int
    alignment: str = ""  # the folder of the target and the fits; empty where sums are added up
    # what the certificate says, by party
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    target_carries: tuple[str, ...] = ()  # whose trace the target keeps
    returns: Mapping[str, str] = field(default_factory=dict)  # digest of the sealed, by party

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        known = {each.name: told[each.name] for each in fields(cls)}
        for name in _LISTED:
            pairs = (line.split("  ", 1) for line in told[name])
            known[name] = {party: what for what, party in pairs}
        return cls(**known | {"target_carries": (*told["target_carries"],)})

    def told(self) -> dict[str, Fact]:
        told: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in _LISTED:
            told[name] = [f"{what}  {party}" for party, what in told[name].items()]
        return told | {"target_carries": [*self.target_carries]}


_LISTED = ("uploads", "evidence", "returns")
"""Mappings by party, which a line has as "digest  name", as checksum tools write it."""


@dataclass(kw_only=True)
class History:
    """Where the round stands; what parties sent stays in it after they were removed."""

    digest: str = ""  # the agreement's, as the last opening has it; empty when there is no line
    agreed: dict[str, Signature] = field(default_factory=dict)  # the good signatures, by name
    agreed_at: str = ""  # when the last of them came
    files: dict[tuple[int, str], Received] = field(default_factory=dict)  # by exchange and party
    removed: tuple[str, ...] = ()
    attempt: int = 1  # of sums, which begin again where somebody is missing
    without: tuple[str, ...] = ()  # whom the analyst goes on without, until it says otherwise
    contributors: tuple[str, ...] = ()  # whose directions shaped the common span
    late: tuple[str, ...] = ()  # digests of proposals that came after it was made
    ended: tuple[str, ...] = ()  # when each exchange ended, as many as have
    last: int | None = None  # of steps: the exchange that was found to be the last
    halted: str = ""  # why the open exchange could not be ended; empty where nothing failed since
    outcome: Outcome | None = None
    words: dict[tuple[str, str], Word] = field(default_factory=dict)  # by party and model
    revoked: dict[str, Revocation] = field(default_factory=dict)  # by whose key it was
    forgotten: str = ""  # when the uploads were destroyed; empty before

    def taken(self, exchange: int | None = None) -> dict[str, Received]:
        """Return everybody's file of an exchange, or what a model is made of, of all who stay."""
        return {
            party: each
            for (number, party), each in self.files.items()
            if (EXCHANGES[each.message].trains if exchange is None else number == exchange)
            and party not in self.removed
        }

    def take(self, entry: Entry) -> None:
        told = cast("dict[str, Any]", dict(entry.told))
        if entry.event == OPENED:  # anew where a text was edited before all had signed it
            vars(self).update(vars(History(digest=told["agreement"])))
        elif entry.event == AGREED:
            self.agreed[told["name"]] = Signature(agreement=self.digest, **told)
            self.agreed_at = entry.time
        elif entry.event == RECEIVED:
            words = told.pop("audit")
            audit = dict(zip(_WORDS, words, strict=True)) if words else None
            new = Received(**told, time=entry.time, line=entry.hash, audit=audit)
            self.files[new.exchange, new.party] = new
        elif entry.event == CONSENSUS:
            self.contributors = tuple(told["contributors"])
            self.ended = (*self.ended, entry.time)
        elif entry.event == ATTEMPT:
            self.attempt = told["attempt"]
            self.files.clear()
        elif entry.event == LATE:
            self.late = (*self.late, told["file"])
        elif entry.event == REMOVED and told["party"] not in self.removed:
            self.removed = (*self.removed, told["party"])
        elif entry.event == WORD:
            self.words[told["party"], told["model_sha256"]] = Word(**told)
        found = (Revocation.from_text(each) for each in told.get("revoked", ()))
        self.revoked |= {each.name: each for each in found}
        self.forgotten = entry.time if entry.event == FORGOTTEN else self.forgotten
        if "uploads" in told:  # of a run, an addition or a removal that trained
            more = len(self.ended) < told.get("exchange", 1 + bool(self.contributors))
            self.ended += (entry.time,) * more
            self.outcome = Outcome.of(told)
            self.last = told["exchange"] if told.get("finished") else None
        self.halted = told.get("why", "" if "without" in told else self.halted)
        self.without = tuple(told.get("without", self.without))


def history_of(entries: Iterable[Entry]) -> History:
    found = History()
    for entry in entries:
        found.take(entry)
    return found
