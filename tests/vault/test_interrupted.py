"""At whatever call the disk fails or the process dies: old state or new, and a retry works."""

import os

import pytest

from cobasis.disk import calls as disk_calls
from cobasis.disk import whole
from cobasis.errors import DiskError, VaultError
from faults import BROKEN, FULL, at_call, deaths
from vault.steps import STEPS, Trial


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


@pytest.mark.parametrize("name", STEPS)
def test_a_process_that_dies_at_any_call_leaves_the_old_state_or_the_new_one(name, tmp_path):
    trial, calls, states = Trial(name, tmp_path), [], []
    for where, call in deaths(lambda: trial.work(trial.folder)):
        calls.append(call)
        states.append(trial.judge(f"{where} of '{name}'"))
        trial.reset()
    wanted = {"fsync", "replace"} if name == "forget" else {"pwrite", "fsync", "replace"}
    assert wanted <= set(calls)
    assert any(states)
    assert not all(states) or name == "open a new vault"


class InPlace:
    """A writer that writes where readers look."""

    def __init__(self, path, **_):
        self.path = path

    def __enter__(self):
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
            self._descriptor = disk_calls.open_file(self.path, flags)
        except OSError as error:
            raise DiskError from error
        return self

    def write(self, data, *, offset):
        try:
            disk_calls.write(self._descriptor, data, offset=offset, path=self.path)
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
