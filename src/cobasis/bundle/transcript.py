"""A transcript: what one side did, line by line, so that nobody can change a line unnoticed."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

from cobasis.disk.lock import Lock
from cobasis.disk.whole import opened, settle_names
from cobasis.errors import DiskError, OptionError, TranscriptError
from cobasis.protocol.agreement import moment_text
from cobasis.strict_json import canonical_json, json_object

Fact = str | int | float | bool | list[str]
"""What a line may tell: words, numbers that are about no row, and lists of words."""

REPAIRED = "repaired"  # the event of the note that takes the place of a line which a crash tore

MAX_LINE = 2**20


@dataclass(frozen=True, kw_only=True)
class Entry:
    seq: int  # counts lines, from 1
    time: str  # by the clock of whoever wrote it
    event: str
    told: Mapping[str, Fact]
    previous: str  # hash of the line before
    hash: str
    line: bytes  # as it stands in the file


_FIRST = hashlib.sha256(b"cobasis/transcript/1").hexdigest()
START = Entry(seq=0, time="", event="", told={}, previous="", hash=_FIRST, line=b"")
"""What stands before the first line."""


def following(last: Entry, event: str, *, told: Mapping[str, Fact], time: str) -> Entry:
    fields: dict[str, Any] = {
        "seq": last.seq + 1,
        "time": time,
        "event": event,
        "told": dict(told),
        "previous": last.hash,
    }
    fields["hash"] = hashlib.sha256(canonical_json(fields) + b"\n").hexdigest()
    line = canonical_json(fields) + b"\n"
    if len(line) > MAX_LINE:
        raise OptionError(
            f"the event '{event}' would make a line of {len(line):,} bytes, above {MAX_LINE:,}. "
            "Tell less, for instance a digest in place of a list."
        )
    return Entry(**fields, line=line)


def read_line(line: bytes, last: Entry) -> Entry | None:
    """Read the line that has to come next: the one that its own words would make there, or None."""
    with suppress(ValueError, OptionError):
        match json_object(line):
            case {"event": str(event), "told": dict(told), "time": str(time)}:
                entry = following(last, event, told=told, time=time)
                return entry if entry.line == line else None
    return None


def now() -> datetime:
    return datetime.now(UTC)


class Transcript:
    """A file of lines, appended to; lines cut off its end are noticed only while it is open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last, self._end = START, 0
        if path.exists():
            with self._alone() as lock:
                self._catch_up(lock)

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
        with opened(self.path) as (file, _):
            for found in _lines(file.fileno(), self._end, self._last, self.path):
                if isinstance(found, bytes):
                    torn = found
                else:
                    self._advance(found)
        if torn:
            # the note goes over the torn bytes first, and only then is the file cut to its end: a
            # kill between the two leaves whole lines and a tail of the torn one, which is torn in
            # turn and noted again; cut first, a kill would hide that a line was ever lost
            self._write(lock, REPAIRED, {"lost_bytes": len(torn)})
            lock.shorten(self._end)

    def _write(self, lock: Lock, event: str, told: Mapping[str, Fact]) -> Entry:
        """Write the next line where the last one ends; nothing of it stays when that fails."""
        entry = following(self._last, event, told=told, time=moment_text(now()))
        try:
            lock.write(entry.line, offset=self._end)
            lock.settle()
            # a kill between write and sync leaves a torn line, which whoever opens next repairs
            if not self._end:  # the file is new, and its name has to outlive a power cut
                settle_names(self.path.parent)
        except DiskError:
            with suppress(DiskError):
                lock.shorten(self._end)
            raise
        self._advance(entry)
        return entry

    def _advance(self, entry: Entry) -> None:
        self._last, self._end = entry, self._end + len(entry.line)

    def _alone(self) -> Lock:
        return Lock(self.path, what=f"the transcript '{self.path}'", wait=True)


def verify_transcript(path: Path) -> tuple[Entry, ...]:
    """Read a transcript; TranscriptError where a line is not as it was written."""
    with opened(path) as (file, _):
        found = [*_lines(file.fileno(), 0, START, path)]
    return tuple(each for each in found if isinstance(each, Entry))  # not one that a crash tore


def _lines(descriptor: int, offset: int, last: Entry, path: Path) -> Iterator[Entry | bytes]:
    """Read the lines from a place on, and last what is left of one that a crash tore, as bytes."""
    with FileIO(descriptor, "r", closefd=False) as raw, BufferedReader(raw) as reader:
        reader.seek(offset)
        while line := reader.readline(MAX_LINE + 1):
            # a crash leaves a last line without its end, or, where the file had grown before its
            # bytes were on the disk, with zeros in it; no line of ours has either
            if (not line.endswith(b"\n") or b"\0" in line) and not reader.peek(1):
                yield line
                return
            if (entry := read_line(line, last)) is None:
                reason = "it was changed, or does not follow the one before"
                raise _broken(path, last.seq + 1, reason)
            last = entry
            yield entry


def _broken(path: Path, line: int, reason: str) -> TranscriptError:
    return TranscriptError(
        f"the transcript '{path.name}' is not as it was written: at line {line}, {reason}. Nothing "
        "from there on proves anything. Ask its owner for the whole file, and keep this one."
    )
