"""The rounds of a served folder, and their inboxes: files whose names say what they are.

``north/1-upload~<sha256>~<bytes>.part`` is on its way, and as long as what has come of it; without
the end it is whole and waits for the worker; ``.json`` is what the worker said of it. So the index
(`cobasis.transport.index`) can be made anew from names.
"""

import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock as Turn
from typing import Any

from cobasis.bundle.agreement_file import (
    REVOKED,
    beside,
    inbox_of,
    news_at,
    read_agreement,
    sealed_path,
    stem_of,
)
from cobasis.disk.whole import PART, Stamp, remove_tree, stamp_of, write_whole
from cobasis.errors import CobasisError, DiskError, RequestError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.exchanges import exchanges
from cobasis.strict_json import canonical_json
from cobasis.transport.wire import MOST_BYTES, SMALL_BYTES

LOG = logging.getLogger("cobasis.server")
SECRET = "secret."  # noqa: S105 -- a name's beginning
"""Begins what a consortium secret is called: brought, by whom it is for; fetched, by its maker,
or without a name, the newest of anybody's."""

STATEMENTS, STATEMENT = ".server", ".statement"
"""The folder beside the rounds of the certificate and of what analysts signed about it."""

REFUSED = {"refused", "passed over"}  # verdicts by which a file was not taken

_WEEKS = 14 * 24 * 3600
VERDICT, JOINT, DIGEST = ".json", "~", "[0-9a-f]{64}"


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A file that a party sends, by where it lies in the inbox of its round."""

    inbox: Path  # ``icu.inbox`` beside ``icu.toml``
    party: str
    what: str
    digest: str

    def place(self, end: str = "") -> Path:
        return self.inbox / self.party / f"{self.what}{JOINT}{self.digest}{end}"

    def judge(self, **verdict: str) -> None:
        path = self.place()
        told = canonical_json({**verdict, "bytes": path.stat().st_size})
        write_whole(self.place(VERDICT), told)
        remove_tree(path)


def most_bytes(agreement: Agreement, sent: Sent) -> int:
    """Return how large a file may be that a party sends; RequestError for what never travels."""
    what, whose = sent.what, sent.what.removeprefix(SECRET)
    sealed = whose not in {what, sent.party} and agreement.sums is None and agreement.names(whose)
    if sealed or what in {"signature", "word"}:
        return SMALL_BYTES
    if what in {f"{each.number}-{each.message}" for each in exchanges(agreement)}:
        return MOST_BYTES
    raise RequestError(f"'{what[:100]}' is nothing that a party sends in this round.", status=404)


def prune(inbox: Path, *, secrets: bool) -> None:
    """Delete parts that nobody went on with for two weeks; secrets, where all have theirs."""
    old = time.time() - _WEEKS
    for path in inbox.glob(f"*/*{PART}"):
        with suppress(DiskError):
            if stamp_of(path).modified_ns < old * 10**9:
                remove_tree(path)
    for sent in waiting(inbox, secrets=True) if secrets else ():
        remove_tree(sent.place())


def waiting(inbox: Path, *, secrets: bool = False) -> Iterator[Sent]:
    """Yield what is whole and nobody has looked at, or the secrets that parties may fetch."""
    for path in sorted(inbox.glob(f"*/*{JOINT}*")):
        what, _, digest = path.name.partition(JOINT)
        # no part, verdict, or copy that a backup has left
        if re.fullmatch(DIGEST, digest) and what.startswith(SECRET) == secrets:
            yield Sent(inbox=inbox, party=path.parent.name, what=what, digest=digest)


def _newest_secret(inbox: Path, party: str, *, of: str = "*") -> Path | None:
    """Return the newest secret that one party, or anybody, sealed to another."""
    # many ask for it at once, again and again: what others left is not looked at
    found = inbox.glob(f"{of}/{SECRET}{party}{JOINT}*")
    whole = (path for path in found if path.suffix not in {PART, VERDICT})
    return max(whole, key=lambda path: path.stat().st_mtime_ns, default=None)


@dataclass(frozen=True, kw_only=True)
class Served:
    path: Path
    agreement: Agreement
    digest: str
    people: dict[str, PublicIdentity]

    def refuse_revoked(self, *, party: str, brings: bool) -> None:
        """Raise RevokedError for who has a revoked key, or brings something, by the news."""
        if not beside(self.path, f"*{REVOKED}"):  # a thousand at once read no news
            return
        news = news_at(self.path.with_name(f"{stem_of(self.path)}.news"), self.agreement)
        if news and (brings or any(each.name == party for each in news.revoked)):
            news.refuse_revoked(self.agreement, asking=party)

    def out(self, what: str, *, party: str) -> Path | None:
        stem = stem_of(self.path)
        if what in {f"{each.number}-{each.reply}" for each in exchanges(self.agreement)}:
            return self.path.with_name("outbox") / f"{stem}.{party}.{what}"
        if what == SECRET[:-1]:
            return _newest_secret(inbox_of(self.path), party)
        if what.startswith(SECRET) and what.removeprefix(SECRET) in self.agreement.parties:
            return _newest_secret(inbox_of(self.path), party, of=what.removeprefix(SECRET))
        if what == "agreement":
            return sealed_path(self.path)
        if what == "news":
            return self.path.with_name(f"{stem}.news")
        raise RequestError(f"'{what[:100]}' is nothing that a party gets here.", status=404)


_READING = Turn()


def rounds(folder: Path) -> list[Served]:
    """Return the rounds whose agreement names a server."""
    return [*filter(None, map(served_at, agreements(folder)))]


def served_at(path: Path) -> Served | None:
    # at a start many ask at once, and one reads; a file may be gone, or a link to nothing
    with _READING, suppress(DiskError):
        return _served(path, stamp_of(path))
    return None


@lru_cache(maxsize=1000)
def _served(path: Path, _: Stamp) -> Served | None:
    try:
        agreement = read_agreement(path).agreement
    except CobasisError as error:
        LOG.warning(json.dumps({"event": "no agreement", "file": path.name, "why": error.code}))
        if isinstance(error, DiskError):
            raise  # which is not kept: the next look may read what this one could not
        return None
    people = {each.name: each for each in agreement.enrolled}
    told: Any = {"digest": agreement.digest().hex(), "people": people}
    return Served(path=path, agreement=agreement, **told) if agreement.server else None


def agreements(folder: Path) -> list[Path]:
    """Return the agreements of a folder: neither sealed copies nor an editor's hidden files."""
    found = sorted(each for each in folder.glob("*.toml") if each.name[0] != ".")
    return [each for each in found if each.stem == stem_of(each)]


def log_to_stderr() -> None:
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger("cobasis").setLevel(logging.INFO)
