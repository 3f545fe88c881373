"""The k-th call of the system fails, k = 1 until all succeed: one coded error, and a retry goes on.

The calls are those that write: open, write, sync, reserve, rename, delete. A full disk and a
broken one are tried; half of what was to be written is, before a write fails.
"""

import shutil
from itertools import count

import pytest

from cobasis.analyst_side import training
from cobasis.disk.whole import make_folder
from cobasis.errors import CobasisError, DiskError
from faults import BROKEN, FULL, at_call
from under_fault.checking import problems
from under_fault.jobs import COMMANDS, build, site_at, unlock

ACTS = {"full": FULL, "broken": BROKEN}
FEWEST = {"prepare": 85, "receive": 140, "run": 130, "parts": 180, "accept": 65}


@pytest.fixture(scope="module")
def stages(in_memory):
    """Folders just before each command."""
    with pytest.MonkeyPatch.context() as patch:
        unlock(patch)
        build(str(in_memory), None)
        yield in_memory


class Trials:
    """One command with its k-th call failing, on a fresh copy each time."""

    def __init__(self, stages, monkeypatch):
        self.stages, self.wrong, self.coded, self.calls = stages, [], 0, 0
        monkeypatch.setattr(training, "IN_MEMORY_CELLS", training.IN_MEMORY_CELLS)

    def trial(self, command, number, act):
        """Whether a call failed at all; what was wrong is noted."""
        place = shutil.copytree(self.stages / command, self.stages / "trial")
        site = site_at(place)
        told = command, number, act
        with at_call(number, ACTS[act]) as clock:
            try:
                COMMANDS[command](site)
            except CobasisError as error:
                self.coded += 1
                if not error.code:
                    self.wrong.append((*told, clock.stopped_at, repr(error)))
            except Exception as error:  # noqa: BLE001 -- a traceback is what may not be
                self.wrong.append((*told, clock.stopped_at, repr(error)))
        if clock.stopped_at is not None:
            self.calls += 1
            self.wrong += [(*told, each) for each in problems(site, command, whole=False)]
            COMMANDS[command](site)
            self.wrong += [(*told, each) for each in problems(site, command, whole=True)]
        shutil.rmtree(place)
        return clock.stopped_at is not None

    def sweep(self, command, act, *, first, step):
        """Every step-th call until there is none; the number of the last one that failed."""
        last = 0
        for number in count(first, step):
            if not self.trial(command, number, act):
                return last
            last = number
        return last


def test_a_folder_that_cannot_be_made_is_a_disk_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DiskError, match=r"cannot be made: Not a directory.*\[CB601\]"):
        make_folder(tmp_path / "file" / "rows")


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "parts"])
def test_when_some_call_fails_it_is_one_coded_error_and_a_retry_succeeds(
    stages, monkeypatch, command
):
    trials = Trials(stages, monkeypatch)
    step = FEWEST[command] // 8
    last = trials.sweep(command, "full", first=3, step=step)
    trials.sweep(command, "broken", first=3 + step // 2, step=step)
    assert trials.wrong == []
    assert last > FEWEST[command] - step
    assert trials.coded > trials.calls // 2


@pytest.mark.soak
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_whichever_call_fails_it_is_one_coded_error_and_a_retry_succeeds(
    stages, monkeypatch, tell, command, act
):
    trials = Trials(stages, monkeypatch)
    last = trials.sweep(command, act, first=1, step=1)
    tell(f"{command}, {act}: {last} calls failed one by one, {trials.coded} coded errors")
    assert trials.wrong == []
    assert last >= FEWEST[command]
