"""Every command with a call of the system that fails, or behind which it is killed.

Nothing that was acknowledged is lost, nothing is visible in part, and the same command, typed
again, goes on. A kill is a real one. It does not take away what the system has yet to write: that
is for calls that fail, a full disk's and a broken one's, where half of what was to be written is.
"""

import shutil
import signal
from itertools import product

import numpy as np
import pytest

from under_fault import jobs

ACTS, KILLS_OF_A_COMMAND, FEW = ("full", "broken"), 3, 3
FEWEST = {"prepare": 125, "receive": 165, "run": 110, "parts": 330, "accept": 70}
every_command = pytest.mark.parametrize("command", jobs.COMMANDS)


@pytest.fixture(scope="module")
def stages(warm, in_memory):
    """Folders just before each command; their keys are the warm interpreter's."""
    warm.ask(jobs.build, folder=str(in_memory))
    return in_memory


@pytest.fixture(scope="module")
def whole(warm, stages):
    """Of every command: its calls, and what it leaves, where nothing disturbs it."""
    found = {}
    for command in jobs.COMMANDS:
        folder = shutil.copytree(stages / command, stages / "trial")
        found[command] = warm.ask(jobs.called, folder=str(folder), command=command)
        shutil.rmtree(folder)
    return found


@pytest.fixture(scope="module")
def calls(whole):
    return {command: called for command, (_, called, _) in whole.items()}


def test_every_command_changes_the_disk_by_calls_that_are_numbered(calls, tell):
    counts = {command: len(called) for command, called in calls.items()}
    tell(f"calls that change the disk: {sum(counts.values())}: {counts}")
    assert sum(counts.values()) >= 1000
    kinds = {name for called in calls.values() for name in called}
    assert {"open", "flock", "pwrite", "fsync", "replace", "unlink", "mkdir", "rmdir"} <= kinds


@pytest.fixture
def cycle(warm, stages, whole):
    """Kills a command after a call, or within it, and perhaps its retry as well; then retries."""

    def kill_and_retry(command, at, *, within=False, again=0):
        place = shutil.copytree(stages / command, stages / "cycle")
        told = {"folder": str(place), "command": command}
        done = warm.do(jobs.killed, at=at, within=within, **told)
        assert done.status == -signal.SIGKILL, done
        if again:  # it may live: less may be left to do than that
            status = warm.do(jobs.killed, at=again, within=False, **told).status
            assert status in {-signal.SIGKILL, 0}
        _, called, wanted = whole[command]
        retry = warm.do(jobs.retried, wanted=wanted, **told)
        assert retry == (0, []), (at, called[at - 1], within, again)
        shutil.rmtree(place)

    return kill_and_retry


@every_command
def test_killed_now_and_then_nothing_is_lost_or_half_visible_and_a_retry_succeeds(
    cycle, calls, command
):
    first = 1 + list(jobs.COMMANDS).index(command) % 3
    for at in np.linspace(first, len(calls[command]), KILLS_OF_A_COMMAND).astype(int).tolist():
        cycle(command, at)


@pytest.mark.soak
@every_command
def test_killed_after_and_within_every_call_and_while_it_recovers_nothing_is_lost(
    cycle, calls, tell, command
):
    """All commands together: more than a thousand kills, since they make more calls than that."""
    rng, called = np.random.default_rng(5), calls[command]
    for at, name in enumerate(called, start=1):
        cycle(command, at, again=int(rng.integers(len(called))) if rng.random() < 0.3 else 0)
        if name == "pwrite":
            cycle(command, at, within=True)
    tell(f"kill -9: {command}, at and within {len(called)} calls: 0 lost, 0 partial")


FAILING = [
    *((command, ACTS[at % 2], FEW) for at, command in enumerate(jobs.COMMANDS)),
    *(pytest.param(*each, 0, marks=pytest.mark.soak) for each in product(jobs.COMMANDS, ACTS)),
]
"""Some calls of each command, by one kind of failure; or every one, by both."""


@pytest.mark.parametrize(("command", "act", "few"), FAILING)
def test_when_a_call_fails_it_is_one_coded_error_and_a_retry_succeeds(  # noqa: PLR0917 -- a table
    warm, stages, whole, tell, command, act, few
):
    made, _, wanted = whole[command]
    told = {"stage": str(stages / command), "command": command, "act": act, "wanted": wanted}
    failed, coded, wrong = warm.ask(jobs.failing, step=1 + made // few if few else 1, **told)
    assert wrong == []
    if few:
        assert failed > 1
        assert coded >= failed // 2
    else:
        tell(f"{command}, {act}: {failed} calls failed one by one, {coded} coded errors")
        assert failed == made >= FEWEST.get(command, 5)
