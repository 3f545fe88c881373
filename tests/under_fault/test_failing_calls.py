"""The k-th call of the system fails, k = 1 until all succeed: one coded error, and a retry goes on.

The calls are those of ``cobasis.disk.calls``: open, lock, make, reserve, write, sync, rename,
delete. A full disk and a broken one are tried; half of what was to be written is, before a write
fails.
"""

import shutil
from itertools import count

import pytest

from cobasis.errors import CobasisError
from cobasis.protocol import aligned
from faults import BROKEN, FULL, at_call
from under_fault.checking import problems
from under_fault.jobs import COMMANDS, build, site_at, unlock

ACTS = {"full": FULL, "broken": BROKEN}
FEWEST = {"prepare": 125, "receive": 165, "run": 110, "parts": 330, "accept": 70}


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
        self.stages, self.wrong, self.coded, self.failed = stages, [], 0, 0
        for name in ("MOST_CELLS", "BLOCK_BYTES"):  # "parts" changes them
            monkeypatch.setattr(aligned, name, getattr(aligned, name))

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
            self.failed += 1
            self.wrong += [(*told, clock.stopped_at, each) for each in self.retried(site, command)]
        shutil.rmtree(place)
        return clock.stopped_at is not None

    def retried(self, site, command):
        """Run the same command again; what was wrong before, and is wrong then."""
        found = problems(site, command, whole=False)
        try:
            COMMANDS[command](site)
        except CobasisError as error:
            return [*found, repr(error)]
        return found + problems(site, command, whole=True)

    def sweep(self, command, act, *, first, step):
        """Let every step-th call fail, until there is none."""
        numbers = count(first, step)
        while self.trial(command, next(numbers), act):
            pass

    def calls_of(self, command):
        """How many calls a command makes when none fails."""
        place = shutil.copytree(self.stages / command, self.stages / "trial")
        with at_call(0, None) as clock:
            COMMANDS[command](site_at(place))
        shutil.rmtree(place)
        return clock.count


@pytest.mark.parametrize("command", COMMANDS)
def test_when_some_call_fails_it_is_one_coded_error_and_a_retry_succeeds(
    stages, monkeypatch, command
):
    trials = Trials(stages, monkeypatch)
    step = 1 + trials.calls_of(command) // 4
    trials.sweep(command, "full", first=1 + step // 2, step=step)
    trials.sweep(command, "broken", first=step, step=step)
    assert trials.wrong == []
    assert trials.failed > 4
    assert trials.coded > trials.failed // 2


@pytest.mark.soak
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_whichever_call_fails_it_is_one_coded_error_and_a_retry_succeeds(
    stages, monkeypatch, tell, command, act
):
    trials = Trials(stages, monkeypatch)
    trials.sweep(command, act, first=1, step=1)
    tell(f"{command}, {act}: {trials.failed} calls failed one by one, {trials.coded} coded errors")
    assert trials.wrong == []
    assert trials.failed == trials.calls_of(command) >= FEWEST.get(command, 5)
