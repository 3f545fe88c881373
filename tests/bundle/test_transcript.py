"""No line of a transcript can be changed, removed, moved or added unnoticed; a crash tears one."""

import json
from dataclasses import replace

import pytest

from bundle.bundles import transcript
from cobasis.bundle.transcript import REPAIRED, START, Transcript, following, verify_transcript
from cobasis.errors import OptionError, TranscriptError
from faults import BROKEN, FULL, deaths, failures


@pytest.fixture
def path(tmp_path):
    return tmp_path / "transcript.jsonl"


def test_lines_are_canonical_json_that_carries_the_hash_before(path):
    transcript(path)
    lines = path.read_bytes().splitlines()
    told = [json.loads(line) for line in lines]
    assert lines[2] == json.dumps(told[2], sort_keys=True, separators=(",", ":")).encode()
    assert sorted(told[2]) == ["event", "hash", "previous", "seq", "time", "told"]
    hashes = [START.hash, *(each["hash"] for each in told)]
    assert [each["previous"] for each in told] == hashes[:-1]
    assert [each["seq"] for each in told] == [1, 2, 3, 4, 5]
    assert told[0]["time"] == "2026-11-21T15:00:01Z"
    entries = verify_transcript(path)
    assert [entry.hash for entry in entries] == hashes[1:]
    assert [entry.told["party"] for entry in entries] == [f"party-{n}" for n in range(5)]


def test_nothing_is_appended_to_a_transcript_that_was_changed(path):
    transcript(path)
    writer = Transcript(path)
    before = path.read_bytes()
    path.write_bytes(before.replace(b"party-1", b"party-7"))
    with pytest.raises(TranscriptError, match="at line 2, it was changed"):
        Transcript(path)
    path.write_bytes(before[:100])
    with pytest.raises(TranscriptError, match="at line 5, lines were cut off behind it"):
        writer.append("received", {})


def test_two_writers_take_turns(path):
    one = Transcript(path)
    two = Transcript(path)
    for number in range(6):
        (one, two)[number % 2].append("received", {"number": number})
    assert [each.told["number"] for each in verify_transcript(path)] == [*range(6)]


@pytest.mark.parametrize("tear", ["cut", "zeros", "zeros and a line feed"])
@pytest.mark.parametrize("kept", [1, 40, 150])
def test_a_torn_last_line_is_replaced_by_a_note(path, tear, kept):
    transcript(path)
    whole = path.read_bytes()
    line = following(replace(START, seq=5), "x", told={"a": "b"}, time="").line
    torn = line[:kept] + {"cut": b"", "zeros": b"\0" * 9}.get(tear, b"\0" * 9 + b"\n")
    path.write_bytes(whole + torn)
    assert len(verify_transcript(path)) == 5
    assert path.read_bytes() == whole + torn  # who only looks changes nothing
    Transcript(path).append("received", {})
    note, last = verify_transcript(path)[5:]
    assert (note.event, note.told) == (REPAIRED, {"lost_bytes": len(torn)})
    assert last.event == "received"
    assert path.read_bytes().startswith(whole)


def test_a_line_that_is_too_long_is_not_written(path):
    with pytest.raises(OptionError, match=r"above 1,048,576.*\[CB107\]$"):
        Transcript(path).append("received", {"names": ["a" * 1000] * 1100})
    assert not path.read_bytes()


@pytest.mark.parametrize("act", [FULL, BROKEN], ids=["ENOSPC", "EIO"])
@pytest.mark.parametrize("n_lines", [0, 3])
def test_a_disk_that_fails_at_any_call_loses_no_line(path, act, n_lines):
    transcript(path, n_lines)
    calls, acknowledged = set(), []
    before = path.read_bytes() if n_lines else b""

    def append():
        acknowledged.append(Transcript(path).append("received", {"number": 4}))

    for call in failures(act, append):
        calls.add(call)
        assert not path.exists() or len(verify_transcript(path)) == n_lines
        assert Transcript(path).append("after", {}).seq == n_lines + 1
        path.unlink()
        path.write_bytes(before) if n_lines else None
        assert not acknowledged
    assert {"open", "pwrite", "fsync"} <= calls


@pytest.mark.parametrize("torn", [b"", b'{"event":"received","hash"', b"x" * 500])
def test_a_process_that_dies_at_any_call_loses_no_acknowledged_line(path, torn):
    """Of an append, and of the repair of a torn line, which stands until its note does."""
    transcript(path, 3)
    found, whole = [], path.read_bytes()
    path.write_bytes(whole + torn)
    for where, call in deaths(lambda: Transcript(path).append("received", {"number": 4})):
        entries = verify_transcript(path)
        events = [entry.event for entry in entries[3:]]
        lost = path.stat().st_size - sum(len(entry.line) for entry in entries)
        notes = [REPAIRED] * events.count(REPAIRED)
        assert events in (notes, [*notes, "received"]), where
        assert len(notes) <= 2 * bool(torn), where
        assert not torn or notes or lost >= len(torn), where
        last = Transcript(path).append("after", {})
        after = verify_transcript(path)
        assert after[-1] == last, where
        assert not torn or REPAIRED in [each.event for each in after], where
        found.append((call, "received" in events, lost))
        path.write_bytes(whole + torn)
    assert {"open", "flock", "pwrite", "fsync"} <= {call for call, _, _ in found}
    assert {stood for _, stood, _ in found} == {True, False}
    assert any(lost for _, _, lost in found)  # the half-written line was there to be repaired
