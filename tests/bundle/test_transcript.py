"""No line of a transcript can be changed, removed, moved or added unnoticed; a crash tears one."""

import json
import os
import stat
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.transcripts import Clock, in_memory, made
from cobasis.bundle.transcript import (
    MAX_LINE,
    REPAIRED,
    START,
    Transcript,
    following,
    read_line,
    verify_transcript,
)
from cobasis.errors import DiskError, OptionError, TranscriptError
from faults import BROKEN, FULL, at_call, deaths

STEADY = settings(max_examples=100, deadline=None, derandomize=True, database=None)
FACTS = st.one_of(
    st.text(max_size=20),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.lists(st.text(max_size=5), max_size=3),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "transcript.jsonl"


def test_lines_are_canonical_json_that_carries_the_hash_before(path):
    made(path)
    lines = path.read_bytes().splitlines()
    told = [json.loads(line) for line in lines]
    assert lines[2] == json.dumps(told[2], sort_keys=True, separators=(",", ":")).encode()
    assert sorted(told[2]) == ["event", "hash", "previous", "seq", "time", "told"]
    assert [each["previous"] for each in told] == [
        START.hash,
        *(each["hash"] for each in told[:-1]),
    ]
    assert [each["seq"] for each in told] == [1, 2, 3, 4, 5]
    assert told[0]["time"] == "2026-11-21T15:00:01Z"
    checked = verify_transcript(path, head=told[-1]["hash"])
    assert (checked.head, checked.torn_bytes) == (told[-1]["hash"], 0)
    assert [entry.told["party"] for entry in checked.entries] == [f"party-{n}" for n in range(5)]


@STEADY
@given(told=st.dictionaries(st.text(max_size=10), FACTS, max_size=4))
def test_what_is_told_comes_back(told):
    entry = following(START, "event", told=told, time="")
    assert read_line(entry.line, START) == entry


CHANGES = {
    "a line is removed": lambda lines, at, _: lines[:at] + lines[at + 1 :],
    "a line stands twice": lambda lines, at, _: lines[: at + 1] + lines[at:],
    "a line of another transcript is put in": lambda lines, at, _: (
        [*lines[:at], following(START, "x", told={}, time="").line, *lines[at:]]
    ),
    "two lines change places": lambda lines, at, other: [
        lines[{at: other, other: at}.get(each, each)] for each in range(len(lines))
    ],
    "a byte is changed": lambda lines, at, other: [
        *lines[:at],
        lines[at][:other] + bytes([lines[at][other] ^ 1]) + lines[at][other + 1 :],
        *lines[at + 1 :],
    ],
    "a space is put in": lambda lines, at, _: [
        *lines[:at],
        lines[at].replace(b",", b", ", 1),
        *lines[at + 1 :],
    ],
    "the end is cut off": lambda lines, at, _: lines[:at],
}


@pytest.mark.parametrize("change", CHANGES)
@STEADY
@given(data=st.data())
def test_any_change_is_found_by_whoever_noted_the_last_hash(change, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "changed.jsonl"
    lines, head = in_memory(data.draw(st.integers(2, 6)))
    at = data.draw(st.integers(0, len(lines) - 1))
    limit = len(lines[at]) if change == "a byte is changed" else len(lines)
    other = data.draw(st.integers(0, limit - 1).filter(lambda each: each != at))
    changed = b"".join(CHANGES[change](lines, at, other))
    assert changed != b"".join(lines)
    path.write_bytes(changed)
    with pytest.raises(TranscriptError, match=r"is not as it was written: at line .*\[CB807\]$"):
        verify_transcript(path, head=head)


def test_without_a_noted_hash_only_the_end_can_be_cut_off_unnoticed(path):
    head = made(path).head
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    assert len(verify_transcript(path).entries) == 3
    with pytest.raises(TranscriptError, match="lines were cut off, or written anew"):
        verify_transcript(path, head=head)


def test_a_transcript_written_anew_is_good_only_for_whoever_noted_nothing(path):
    head = made(path).head
    path.unlink()
    made(path, 6)
    Transcript(path).append("another", {})
    assert len(verify_transcript(path, head=head).entries) == 7  # the same five lines begin it
    path.unlink()
    Transcript(path, clock=Clock()).append("another", {})
    assert len(verify_transcript(path).entries) == 1
    with pytest.raises(TranscriptError):
        verify_transcript(path, head=head)


def test_nothing_is_appended_to_a_transcript_that_was_changed(path):
    transcript = made(path)
    before = path.read_bytes()
    path.write_bytes(before.replace(b"party-1", b"party-7"))
    with pytest.raises(TranscriptError, match="at line 2, it was changed"):
        Transcript(path)
    path.write_bytes(before[:100])
    with pytest.raises(TranscriptError, match="at line 5, lines were cut off behind it"):
        transcript.append("received", {})


def test_two_writers_take_turns(path):
    one = Transcript(path)
    two = Transcript(path)
    for number in range(6):
        (one, two)[number % 2].append("received", {"number": number})
    assert [each.told["number"] for each in verify_transcript(path).entries] == [*range(6)]


@pytest.mark.parametrize("tear", ["cut", "zeros", "zeros and a line feed"])
@pytest.mark.parametrize("kept", [1, 40, 150])
def test_a_torn_last_line_is_replaced_by_a_note(path, tear, kept):
    made(path)
    whole = path.read_bytes()
    line = following(replace(START, seq=5), "x", told={"a": "b"}, time="").line
    torn = line[:kept] + {"cut": b"", "zeros": b"\0" * 9}.get(tear, b"\0" * 9 + b"\n")
    path.write_bytes(whole + torn)
    checked = verify_transcript(path)
    assert (len(checked.entries), checked.torn_bytes) == (5, len(torn))
    assert path.read_bytes() == whole + torn  # who only looks changes nothing
    Transcript(path).append("received", {})
    note, last = verify_transcript(path).entries[5:]
    assert (note.event, note.told) == (REPAIRED, {"lost_bytes": len(torn)})
    assert last.event == "received"
    assert path.read_bytes().startswith(whole)


HOSTILE = {
    "no JSON": b"{\n",
    "a list": b"[]\n",
    "deep": b"[" * 100_000 + b"\n",
    "no object": b"null\n",
    "an empty line": b"\n",
    "no text": b"\xff\xfe\n",
    "endless": b"a" * (MAX_LINE + 10) + b"\n",
    "another seq": following(replace(START, seq=1), "x", told={}, time="").line,
    "truth for a number": following(START, "x", told={}, time="").line.replace(b":1,", b":true,"),
    "NaN": following(START, "x", told={"a": 1.5}, time="").line.replace(b"1.5", b"NaN"),
    "infinity": following(START, "x", told={"a": 1.5}, time="").line.replace(b"1.5", b"1e999"),
    "a name twice": following(START, "x", told={}, time="").line.replace(
        b'{"event"', b'{"event":"y","event"'
    ),
    "details that are a list": following(START, "x", told={}, time="").line.replace(
        b'"told":{}', b'"told":[]'
    ),
}


@pytest.mark.parametrize("wrong", HOSTILE)
def test_a_file_that_anybody_may_have_written_is_one_clear_error(path, wrong):
    path.write_bytes(HOSTILE[wrong] + b"{}\n")
    with pytest.raises(TranscriptError, match=r"at line 1, "):
        verify_transcript(path)


@pytest.mark.parametrize(
    "fact", [None, {"a": 1}, float("nan"), float("inf"), b"bytes", [1], ("a",)]
)
def test_only_words_numbers_truths_and_lists_of_words_are_told(path, fact):
    with pytest.raises(OptionError, match=r"the event 'received' has something else.*\[CB107\]$"):
        Transcript(path).append("received", {"fact": fact})


def test_a_line_has_an_end(path):
    with pytest.raises(OptionError, match="above 1,048,576"):
        Transcript(path).append("received", {"names": ["a" * 1000] * 1100})
    assert not path.exists() or not path.read_bytes()


def test_the_file_is_its_owners_and_no_link_or_pipe(path, tmp_path):
    made(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "missing/t.jsonl"):
        with pytest.raises(DiskError, match=r"cannot be written.*\[CB601\]$"):
            Transcript(tmp_path / name).append("received", {})
    with pytest.raises(DiskError):
        verify_transcript(tmp_path / "none")


def judge(path, head, where):
    """Every acknowledged line is there, and at most the one that was being written besides."""
    checked = verify_transcript(path, head=head)
    assert len(checked.entries) in {3, 4}, where
    line = Transcript(path).append("after", {})
    after = verify_transcript(path, head=head)
    assert after.head == line.hash, where
    assert [each.event for each in after.entries].count("after") == 1, where
    return len(checked.entries) == 4, checked.torn_bytes


@pytest.mark.parametrize("act", [FULL, BROKEN], ids=["ENOSPC", "EIO"])
@pytest.mark.parametrize("n_lines", [0, 3])
def test_a_disk_that_fails_at_any_call_loses_no_line(path, act, n_lines):
    head, number, calls = made(path, n_lines).head, 0, []
    before = path.read_bytes() if n_lines else b""
    while True:
        number += 1
        path.unlink() if path.exists() else None
        path.write_bytes(before) if n_lines else None
        clean = False
        with at_call(number, act) as clock:
            try:
                Transcript(path).append("received", {"number": 4})
                clean = True
            except DiskError:
                pass
        assert clean == (clock.stopped_at is None)
        if clean:
            break
        calls.append(clock.stopped_at)
        checked = verify_transcript(path, head=head) if path.exists() else None
        assert checked is None or len(checked.entries) == n_lines
        assert Transcript(path).append("after", {}).seq == n_lines + 1
    assert {"open", "pwrite", "fsync"} <= set(calls)


@pytest.mark.parametrize("torn", [b"", b'{"event":"received","hash"', b"x" * 500])
def test_a_process_that_dies_at_any_call_loses_no_acknowledged_line(path, torn):
    """Of an append, and of the repair of a torn line."""
    head, found = made(path, 3).head, []
    whole = path.read_bytes()

    def appends():
        Transcript(path).append("received", {"number": 4})

    path.write_bytes(whole + torn)
    for where, call in deaths(appends):
        if torn:
            found.append((call, *judge_repair(path, head, torn, where)))
        else:
            found.append((call, *judge(path, head, where)))
        path.write_bytes(whole + torn)
    assert {"open", "flock", "pwrite", "fsync"} <= {call for call, _, _ in found}
    assert {stood for _, stood, _ in found} == {True, False}
    assert any(lost for _, _, lost in found)  # the half-written line was there to be repaired
    assert len(found) >= 5


def judge_repair(path, head, torn, where):
    """The torn bytes stand until the line that tells of them does."""
    checked = verify_transcript(path, head=head)
    events = [entry.event for entry in checked.entries[3:]]
    assert events in ([], [REPAIRED], [REPAIRED, "received"], [REPAIRED] * 2), events
    assert REPAIRED in events or checked.torn_bytes >= len(torn) > 0, where
    Transcript(path).append("after", {})
    assert REPAIRED in [each.event for each in verify_transcript(path).entries]
    return "received" in events, checked.torn_bytes
