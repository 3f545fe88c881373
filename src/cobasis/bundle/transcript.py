"""A transcript: what one side did, line by line, so that nobody can change a line unnoticed."""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any, NamedTuple

from cobasis.disk.calls import WRITABLE, explained
from cobasis.disk.lock import Lock
from cobasis.disk.whole import opened
from cobasis.errors import OptionError, TranscriptError
from cobasis.protocol.agreement import moment_text
from cobasis.strict_json import canonical_json, json_object

Fact = str | int | float | bool | list[str]
"""What a line may tell: words, numbers that are about no row, and lists of words."""

START = hashlib.sha256(b"cobasis/transcript/1").hexdigest()
"""What stands as `previous` in the first line."""

MAX_LINE = 2**20
_FIELDS = ["event", "hash", "previous", "seq", "time", "told"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a transcript."""

    seq: int  # counts lines, from 1
    time: str  # by the clock of whoever wrote it
    event: str
    told: Mapping[str, Fact]
    previous: str  # hash of the line before
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
    """Where a chain has got to."""

    seq: int = 0  # lines so far
    hash: str = START  # of the last one


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
        found = json_object(line)
    except ValueError:
        return "it is no JSON"
    if sorted(found) != _FIELDS:
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
    return canonical_json(fields) + b"\n"


def _is_fact(fact: object) -> bool:
    """Whether a line may tell this."""
    if isinstance(fact, list):
        return all(isinstance(word, str) for word in fact)
    return isinstance(fact, str | int) or (isinstance(fact, float) and math.isfinite(fact))


REPAIRED = "repaired"
"""The event of the note that takes the place of a line which a crash tore."""


def now() -> datetime:
    """Return the time by this machine's clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A transcript whose every line is as it was written."""

    entries: tuple[Entry, ...]
    head: str  # the last line's hash: whoever notes it can tell later whether lines are missing
    torn_bytes: int  # of a last line that a crash tore


class Transcript:
    """A file to which lines are appended, and from which none can be taken unnoticed."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = now) -> None:
        self.path = path
        self._clock = clock
        self._last, self._end = Link(), 0
        if path.exists():
            with self._alone() as lock:
                self._catch_up(lock)

    @property
    def head(self) -> str:
        """The last line's hash, as far as this object has seen."""
        return self._last.hash

    def append(self, event: str, told: Mapping[str, Fact]) -> Entry:
        """Write a line; when this returns it is on the disk."""
        with self._alone() as lock:
            self._catch_up(lock)
            return self._write(lock, event, told)

    def _catch_up(self, lock: Lock) -> None:
        """Follow the lines that are new since the last look, and repair a torn one."""
        if lock.n_bytes < self._end:
            raise _broken(self.path, self._last.seq, "lines were cut off behind it")
        torn = b""
        for found in _lines(lock.descriptor, self._end, self._last, self.path):
            if found.entry is None:
                torn = found.raw
            else:
                self._advance(found.entry)
        if torn:
            self._write(lock, REPAIRED, {"lost_bytes": len(torn)})
            lock.shorten(self._end)

    def _write(self, lock: Lock, event: str, told: Mapping[str, Fact]) -> Entry:
        """Write the next line where the last one ends; nothing of it stays when that fails."""
        time = moment_text(self._clock())
        entry = following(self._last, event, told=told, time=time)
        lock.append(entry.line, end=self._end)
        self._advance(entry)
        return entry

    def _advance(self, entry: Entry) -> None:
        self._last = Link(seq=entry.seq, hash=entry.hash)
        self._end += len(entry.line)

    @contextmanager
    def _alone(self) -> Iterator[Lock]:
        """Open the file, and keep other writers waiting."""
        what = f"the transcript '{self.path}'"
        advice = f"No line of it is lost. {WRITABLE}"
        with (
            Lock(self.path, what=what) as lock,
            explained(f"{what} cannot be written", advice=advice),
        ):
            yield lock


def verify_transcript(path: Path, *, head: str | None = None) -> Checked:
    """Check that every line of a transcript is as it was written, and where it was."""
    entries, last, torn = [], Link(), 0
    with opened(path) as (file, _):
        for found in _lines(file.fileno(), 0, last, path):
            if found.entry is None:
                torn = len(found.raw)
            else:
                entries.append(found.entry)
    if head not in {None, START, *(entry.hash for entry in entries)}:
        reason = "the line whose hash was noted is not there: lines were cut off, or written anew"
        raise _broken(path, len(entries), reason)
    return Checked(
        entries=tuple(entries), head=entries[-1].hash if entries else START, torn_bytes=torn
    )


class _Found(NamedTuple):
    """A line as it stands in the file, and what it says; None for a last line that is torn."""

    raw: bytes
    entry: Entry | None


def _lines(descriptor: int, offset: int, last: Link, path: Path) -> Iterator[_Found]:
    """Read the lines from a place on, each of which has to follow the one before."""
    with FileIO(descriptor, "r", closefd=False) as raw, BufferedReader(raw) as reader:
        reader.seek(offset)
        while line := reader.readline(MAX_LINE + 1):
            # a crash leaves a last line without its end, or, where the file had grown before its
            # bytes were on the disk, with zeros in it; no line of ours has either
            if (not line.endswith(b"\n") or b"\0" in line) and not reader.peek(1):
                yield _Found(line, None)
                return
            entry = read_line(line, last)
            if isinstance(entry, str):
                raise _broken(path, last.seq + 1, entry)
            last = Link(seq=entry.seq, hash=entry.hash)
            yield _Found(line, entry)


def _broken(path: Path, line: int, reason: str) -> TranscriptError:
    return TranscriptError(
        f"the transcript '{path.name}' is not as it was written: at line {line}, {reason}. Nothing "
        "from there on proves anything. Ask its owner for the whole file, and keep this one."
    )
