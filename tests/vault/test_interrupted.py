"""At whatever call the disk fails or the process dies: old state or new, and a retry works."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cobasis.disk import whole
from cobasis.errors import DiskError, VaultError
from faults import BROKEN, FULL, at_call
from vault.steps import STEPS, Trial

TESTS = Path(__file__).parents[1]


def attempts(trial, act):
    """Let the disk fail at the k-th call, k = 1 until it runs clean; yields where it did."""
    number = 0
    while True:
        number += 1
        trial.reset()
        clean = False
        with at_call(number, act) as clock:
            try:
                trial.work(trial.folder)
                clean = True
            except DiskError:
                pass
        if clock.stopped_at is None:
            assert clean
            return
        # an error while it tidies up after its work is none that anybody has to hear of
        assert not clean or clock.stopped_at in {"unlink", "rmdir"}, clock.stopped_at
        yield f"call {number} ({clock.stopped_at})", clock.stopped_at


@pytest.mark.parametrize(
    "act",
    [pytest.param(FULL, id="ENOSPC"), pytest.param(BROKEN, id="EIO", marks=pytest.mark.soak)],
)
@pytest.mark.parametrize("name", STEPS)
def test_a_disk_that_fails_at_any_call_leaves_the_old_state_or_the_new_one(name, act, tmp_path):
    trial, calls, states = Trial(name, tmp_path), [], []
    for where, call in attempts(trial, act):
        states.append(trial.judge(where))
        calls.append(call)
    expected = {"fsync", "replace"} if name == "forget" else {"pwrite", "fsync", "replace"}
    assert expected <= set(calls)
    assert not states[0] or name == "open a new vault"


FEW = ("open a new vault", "begin a kept upload", "accept again", "forget")


@pytest.mark.parametrize(
    "names",
    [FEW, pytest.param([name for name in STEPS if name not in FEW], marks=pytest.mark.soak)],
    ids=["few", "others"],
)
def test_a_process_that_dies_at_any_call_leaves_the_old_state_or_the_new_one(names, tmp_path):
    place = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-m", "vault.dying", str(tmp_path), *names]
    done = subprocess.run(command, env=place, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout)
    assert set(told) == set(names)
    for name, found in told.items():
        wanted = {"fsync", "replace"} if name == "forget" else {"pwrite", "fsync", "replace"}
        assert wanted <= set(found["points"]), name
        assert found["new"] > 0, name
        assert found["new"] < len(found["points"]) or name == "open a new vault"
    assert sum(len(found["points"]) for found in told.values()) > 40


class InPlace:
    """A writer that writes where readers look."""

    def __init__(self, path, *, n_bytes, mode):
        self.path, self.n_bytes, self.mode = path, n_bytes, mode

    def __enter__(self):
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, self.mode)
        except OSError as error:
            raise DiskError from error
        return self

    def write(self, data, *, offset):
        try:
            os.pwrite(self._descriptor, data, offset)
        except OSError as error:
            raise DiskError from error

    def __exit__(self, *_):
        os.close(self._descriptor)


def test_a_vault_that_wrote_in_place_would_be_found_out(tmp_path, monkeypatch):
    trial = Trial("accept again", tmp_path)
    monkeypatch.setattr(whole, "WholeFile", InPlace)

    def judged():
        for where, _ in attempts(trial, FULL):
            trial.judge(where)

    with pytest.raises(VaultError):
        judged()
