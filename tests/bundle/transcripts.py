"""Transcripts of a few lines, on disk and in memory."""

from datetime import UTC, datetime, timedelta
from itertools import count

from cobasis.bundle.transcript import START, Transcript, following


def made(path, n_lines=5):
    """Write lines, and return the last one's hash."""
    start = datetime(2026, 11, 21, 15, tzinfo=UTC)
    times = (start + timedelta(seconds=number) for number in count(1))
    transcript, last = Transcript(path, clock=times.__next__), START
    for number in range(n_lines):
        last = transcript.append("received", {"party": f"party-{number}", "n_rows": number})
    return last.hash


def in_memory(n_lines):
    """The lines of a transcript, and the last one's hash."""
    lines, last = [], START
    for number in range(n_lines):
        last = following(last, "received", told={"n_rows": number}, time="2026-11-21T15:00:00Z")
        lines.append(last.line)
    return lines, last.hash
