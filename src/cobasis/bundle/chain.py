"""The lines of a transcript: each carries the hash of the one before, so none can be changed alone.

A line is canonical JSON (sorted keys, no spaces, ASCII) with seq, time, event, told, previous and
hash; hash is the SHA-256 of the same object without it.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cobasis.errors import OptionError

Fact = str | int | float | bool | list[str]
"""What a line may tell: words, numbers that are about no row, and lists of words."""

START = hashlib.sha256(b"cobasis/transcript/1").hexdigest()
"""What stands as `previous` in the first line."""

MAX_LINE = 2**20
_FIELDS = ["event", "hash", "previous", "seq", "time", "told"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a transcript.

    Attributes
    ----------
    seq : int
        Counts lines, from 1.
    time : str
        By the clock of whoever wrote it, ISO 8601 in UTC, whole seconds.
    event : str
        What happened.
    told : mapping of str to str, int, float, bool or list of str
        Details.
    previous, hash : str
        Of the line before, and of this one; 64 hexadecimal digits.
    """

    seq: int
    time: str
    event: str
    told: Mapping[str, Fact]
    previous: str
    hash: str

    @property
    def line(self) -> bytes:
        """The line as it stands in the file."""
        return _line({**self._fields(), "hash": self.hash})

    def _fields(self) -> dict[str, Any]:
        """Return what is hashed."""
        told = dict(self.told)
        times = {"seq": self.seq, "time": self.time, "event": self.event}
        return {**times, "told": told, "previous": self.previous}

    def expected_hash(self) -> str:
        """Return the hash that the other fields have."""
        return hashlib.sha256(_line(self._fields())).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Link:
    """Where a chain has got to.

    Attributes
    ----------
    seq : int
        Lines so far.
    hash : str
        Of the last one.
    """

    seq: int = 0
    hash: str = START


def following(last: Link, event: str, *, told: Mapping[str, Fact], time: str) -> Entry:
    """Return the entry that comes next."""
    if not all(isinstance(name, str) and _is_fact(fact) for name, fact in told.items()):
        raise OptionError(
            f"a transcript tells words, finite numbers, truths and lists of words by name, and "
            f"the event '{event}' has something else. Leave it out, or write it as a word."
        )
    open_end = Entry(
        seq=last.seq + 1, time=time, event=event, told=dict(told), previous=last.hash, hash=""
    )
    entry = Entry(**{**vars(open_end), "hash": open_end.expected_hash()})
    if len(entry.line) > MAX_LINE:
        raise OptionError(
            f"the event '{event}' would make a line of {len(entry.line):,} bytes, above "
            f"{MAX_LINE:,}. Tell less, for instance a digest in place of a list."
        )
    return entry


def read_line(line: bytes, last: Link) -> Entry | str:
    """Read the line that has to come next; a sentence says what is wrong with it."""
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return "it is no JSON"
    if not isinstance(found, dict) or sorted(found) != _FIELDS:
        return "it has other fields"
    told = found["told"]
    words = all(type(found[name]) is str for name in ("time", "event", "previous", "hash"))
    if not words or not isinstance(told, dict) or not all(map(_is_fact, told.values())):
        return "its fields are of other types"
    return _misfit(entry := Entry(**found), line, last) or entry


def _misfit(entry: Entry, line: bytes, last: Link) -> str:
    """Say why an entry does not come next; nothing where it does."""
    if type(entry.seq) is not int or entry.seq != last.seq + 1:
        return f"it is not number {last.seq + 1}"
    if entry.previous != last.hash:
        return "it does not follow the line before"
    if entry.expected_hash() != entry.hash:
        return "its hash is not its own"
    return "" if entry.line == line else "it is not written as cobasis writes lines"


def _line(fields: Mapping[str, Any]) -> bytes:
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def _is_fact(fact: object) -> bool:
    """Whether a line may tell this."""
    if isinstance(fact, list):
        return all(isinstance(word, str) for word in fact)
    return isinstance(fact, str | int) or (isinstance(fact, float) and math.isfinite(fact))
