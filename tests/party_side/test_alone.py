"""A party's work folder: one command at a time, and nothing plain of a command that was killed."""

import subprocess
import sys

import pytest

from cobasis.errors import AnotherRunError
from cobasis.party_side.desk import alone
from cobasis.party_side.preview import make_ready
from cobasis.party_side.receiving import accept, adopt
from cobasis.party_side.secret import forget, join
from cobasis.party_side.send import prepare, propose
from cobasis.vault import Fresh
from faults import Killed, at_call, dying_after, on

HOLDS = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDONLY)
fcntl.flock(descriptor, fcntl.LOCK_EX)
print("taken", flush=True)
sys.stdin.read()
"""


def test_while_another_process_is_at_work_every_command_is_refused_and_touches_nothing(site):
    desk, to = site.desk("north"), site.folder("north") / "north.upload"
    ready = make_ready(desk, site.table("north"))
    (desk.work / "upload.safetensors").write_bytes(b"of the other process")
    words = [sys.executable, "-c", HOLDS, str(desk.work)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"taken\n"
        for command in (
            lambda: prepare(ready, to),
            lambda: propose(ready, to),
            lambda: join(desk, site.secret_file("north")),
            lambda: adopt(desk, to),
            lambda: accept(desk, to),
            lambda: forget(desk),
        ):
            with pytest.raises(AnotherRunError, match=r"'north' is at work in round.*\[CB604\]"):
                command()
        other.kill()
    assert (desk.work / "upload.safetensors").read_bytes() == b"of the other process"
    assert not to.exists()
    assert desk.vault.history() == ()
    prepare(ready, to)  # the lock went with its process
    assert to.exists()


def test_another_party_and_another_round_are_not_kept_waiting(make):
    site = make()
    first = [site.desk("north"), site.desk("south")]
    other = make(round_id="icu-2027").desk("north")
    with alone(first[0]), alone(first[1]), alone(other):
        assert len({each.work for each in (*first, other)}) == 3


def test_a_secret_that_a_killed_join_had_opened_goes_when_the_next_command_begins(make):
    site = make()
    opened = on("replace", "secret.bin")
    with pytest.raises(Killed), at_call(1, dying_after, counts=opened):
        join(site.desk("north"), site.secret_file("north"))
    left = site.desk("north").work / "opened"
    assert [each.read_bytes() for each in left.rglob("secret.bin")] == [site.key]
    with alone(site.desk("north")):
        assert not left.exists()


def test_projected_rows_of_a_killed_prepare_go_and_its_directions_stay_sealed(site):
    to = site.folder("north") / "north.upload"
    ready = make_ready(site.desk("north"), site.table("north"))
    assert isinstance(ready.choice, Fresh)
    projected = on("replace", "upload.safetensors")
    with pytest.raises(Killed), at_call(1, dying_after, counts=projected):
        prepare(ready, to)
    work = site.desk("north").work
    assert (work / "upload.safetensors").exists()
    with alone(site.desk("north")):
        left = {each.name: each for each in work.iterdir()}
        assert set(left) == {"marks", "notes.age"}
    marks = list(left["marks"].iterdir())
    assert marks
    assert all(each.read_bytes().startswith(b"age-encryption.org/") for each in marks)
    prepare(ready, to)
    assert [each.name for each in work.iterdir()] == ["notes.age"]
