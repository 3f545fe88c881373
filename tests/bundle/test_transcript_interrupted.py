"""At whatever call the disk fails or the process dies: no acknowledged line is lost."""

import pytest

from bundle.transcripts import made
from cobasis.bundle.transcript import REPAIRED, Transcript, verify_transcript
from cobasis.errors import DiskError
from faults import BROKEN, FULL, at_call, deaths


@pytest.fixture
def path(tmp_path):
    return tmp_path / "transcript.jsonl"


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
