"""A transcript: what one side did, line by line, so that nobody can change a line unnoticed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader, FileIO
from pathlib import Path
from typing import NamedTuple

from cobasis.bundle.chain import MAX_LINE, START, Entry, Fact, Link, following, read_line
from cobasis.bundle.manifest import moment_text
from cobasis.disk.files import opened
from cobasis.disk.lock import Lock
from cobasis.errors import DiskError, TranscriptError

REPAIRED = "repaired"
"""The event of the note that takes the place of a line which a crash tore."""


def now() -> datetime:
    """Return the time by this machine's clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A transcript whose every line is as it was written.

    Attributes
    ----------
    entries : tuple of Entry
        All of them.
    head : str
        The last line's hash. Whoever notes it can tell later whether lines are missing.
    torn_bytes : int
        Bytes of a last line that a crash tore; 0 where there is none.
    """

    entries: tuple[Entry, ...]
    head: str
    torn_bytes: int


class Transcript:
    """A file to which lines are appended, and from which none can be taken unnoticed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "transcript.jsonl")
    ...     line = Transcript(path).append("joined", {"round": "icu-2026"})
    ...     verify_transcript(path).head == line.hash
    True
    """

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
        with Lock(self.path, what=what) as lock:
            try:
                yield lock
            except OSError as error:
                raise DiskError(
                    f"{what} cannot be written: {error.strerror}. No line of it is lost. Free some "
                    "space, or check your rights to it, then start again."
                ) from error


def verify_transcript(path: Path, *, head: str | None = None) -> Checked:
    """Check that every line of a transcript is as it was written, and where it was."""
    entries, last, torn = [], Link(), 0
    with opened(path) as (file, _):
        try:
            for found in _lines(file.fileno(), 0, last, path):
                if found.entry is None:
                    torn = len(found.raw)
                else:
                    entries.append(found.entry)
        except OSError as error:
            raise DiskError(
                f"'{path}' cannot be read: {error.strerror}. Check the disk it is on."
            ) from error
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
