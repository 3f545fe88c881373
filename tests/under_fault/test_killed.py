"""kill -9 after every call that changes the disk, of every command, by a real signal.

Nothing that was acknowledged is lost, nothing is visible in part, and the same command, typed
again, goes on. A kill does not take away what the system has yet to write: that is for the tests
of failing calls, and of files that are synced before they get their names.
"""

import shutil
import signal

import numpy as np
import pytest

from under_fault.jobs import COMMANDS

KILLS_OF_A_COMMAND = 3
FEWEST = 1000


@pytest.fixture(scope="module")
def stages(warm, in_memory):
    """Folders just before each command; their keys are the warm interpreter's."""
    warm.ask("build", folder=str(in_memory))
    return in_memory


@pytest.fixture(scope="module")
def calls(warm, stages):
    """The calls that each command makes."""
    called = {}
    for command in COMMANDS:
        folder = shutil.copytree(stages / command, stages / "trial")
        called[command] = warm.ask("called", folder=str(folder), command=command)
        shutil.rmtree(folder)
    return called


@pytest.fixture
def cycles(warm, stages, calls):
    return Cycles(warm, stages, calls)


def test_every_command_changes_the_disk_by_calls_that_are_numbered(calls, tell):
    counts = {command: len(called) for command, called in calls.items()}
    tell(f"calls that change the disk: {sum(counts.values())}: {counts}")
    assert sum(counts.values()) >= FEWEST
    kinds = {name for called in calls.values() for name in called}
    assert {"open", "flock", "pwrite", "fsync", "replace", "unlink", "mkdir", "rmdir"} <= kinds


class Cycles:
    """Kills and retries, and what was wrong after any of them."""

    def __init__(self, warm, root, called):
        self.warm, self.root, self.called = warm, root, called
        self.kills, self.wrong = 0, []

    def cycle(self, command, at, *, within=False, again=None):
        """Kill a command after a call, or within it, and perhaps its retry as well; then retry."""
        place = shutil.copytree(self.root / command, self.root / f"cycle-{self.kills}")
        told = {"folder": str(place), "command": command}
        for number in [at, *([] if again is None else [again])]:
            done = self.warm.do("killed", at=number, within=within and number == at, **told)
            if done.status == 0 and number == again:
                break  # less was left to do than that
            assert done.status == -signal.SIGKILL, done
            self.kills += 1
        retry = self.warm.do("retried", **told)
        if retry != (0, []):
            self.wrong.append((command, at, self.called[command][at - 1], within, again, retry))
        shutil.rmtree(place)


@pytest.mark.parametrize("command", COMMANDS)
def test_killed_now_and_then_nothing_is_lost_or_half_visible_and_a_retry_succeeds(cycles, command):
    """After a few of its calls, spread over all of them."""
    most = len(cycles.called[command])
    first = 1 + list(COMMANDS).index(command) % 3
    for at in np.linspace(first, most, KILLS_OF_A_COMMAND).astype(int).tolist():
        cycles.cycle(command, at)
    assert cycles.wrong == []
    assert cycles.kills == KILLS_OF_A_COMMAND


@pytest.mark.soak
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_after_and_within_every_call_and_while_it_recovers_nothing_is_lost(
    cycles, tell, command
):
    """All commands together: more than a thousand kills, since they make more calls than that."""
    rng, called = np.random.default_rng(5), cycles.called[command]
    for at, name in enumerate(called, start=1):
        again = int(rng.integers(1, len(called) + 1)) if rng.random() < 0.3 else None
        cycles.cycle(command, at, again=again)
        if name == "pwrite":
            cycles.cycle(command, at, within=True)
    assert cycles.wrong == []
    assert cycles.kills >= len(called)
    tell(f"kill -9: {command}, {cycles.kills} kills at {len(called)} calls: 0 lost, 0 partial")
