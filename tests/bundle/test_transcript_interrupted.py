"""At whatever call the disk fails or the process dies: no acknowledged line is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bundle.transcripts import made
from cobasis.bundle.transcript import REPAIRED, Transcript, verify_transcript
from cobasis.errors import DiskError
from faults import BROKEN, FULL, WRITES, at_call, died, dying_after, dying_half_way


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


CHILD = """
import json, sys
from pathlib import Path
from bundle.test_transcript_interrupted import deaths
print(json.dumps(deaths(Path(sys.argv[1]))))
"""


def deaths(path):
    """Die at every call of an append, and of the repair of a torn line; where, and what stood."""
    head, found = made(path, 3).head, []
    for torn in (b"", b'{"event":"received","hash"', b"x" * 500):
        before = path.read_bytes()

        def dies(act, number, before=before, torn=torn):
            path.write_bytes(before + torn)
            call = died(act, number, lambda: Transcript(path).append("received", {"number": 4}))
            if call and not torn:
                found.append([call, *judge(path, head, f"{act.__name__} {number} ({call})")])
            elif call:
                checked = verify_transcript(path, head=head)
                events = [entry.event for entry in checked.entries[3:]]
                assert events in ([], [REPAIRED], [REPAIRED, "received"], [REPAIRED] * 2), events
                assert REPAIRED in events or checked.torn_bytes >= len(torn) > 0, number
                Transcript(path).append("after", {})
                assert REPAIRED in [each.event for each in verify_transcript(path).entries]
                found.append([call, "received" in events, checked.torn_bytes])
            path.write_bytes(before)
            return call

        number = 1
        while call := dies(dying_after, number):
            if call in WRITES:
                dies(dying_half_way, number)
            number += 1
    return found


def test_a_process_that_dies_at_any_call_loses_no_acknowledged_line(path):
    place = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1])])}
    command = [sys.executable, "-c", CHILD, str(path)]
    done = subprocess.run(command, env=place, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert {"open", "pwrite", "fsync"} <= {call for call, _, _ in found}
    assert {stood for _, stood, _ in found} == {True, False}
    assert any(torn for _, _, torn in found)  # the half-written line was there to be repaired
    assert len(found) > 10
