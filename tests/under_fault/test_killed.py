"""kill -9 at every named point of prepare, receive, run and accept, by a real signal.

Nothing that was acknowledged is lost, nothing is visible in part, and the same command, typed
again, goes on. A kill does not take away what the system has yet to write: that is for the tests
of failing calls, and of files that are synced before they get their names.
"""

import re
import shutil
import signal
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import cobasis
from under_fault.warm import Warm

COMMANDS = ("prepare", "receive", "run", "parts", "accept")
PREFIXES = ("prepare.", "receive.", "run.", "accept.", "score.", "analyst.")
FORMS = {"event": ("run",), "command": ("prepare",)}


@pytest.fixture(scope="module")
def warm():
    made = Warm()
    yield made
    made.close()


@pytest.fixture(scope="module")
def stages(warm, in_memory):
    """Folders just before each command, and the points that each passes."""
    root = in_memory
    warm.ask("build", folder=str(root))
    passed = {}
    for command in COMMANDS:
        folder = shutil.copytree(root / command, root / "trial")
        passed[command] = warm.ask("passed", folder=str(folder), command=command)
        shutil.rmtree(folder)
    return root, passed


def named_in_the_source():
    """Every point that these commands name, where a name may be made of a word."""
    text = "".join(
        path.read_text("utf-8")
        for part in ("party_side", "analyst_side")
        for path in (Path(cobasis.__file__).parent / part).glob("*.py")
    )
    names = set(re.findall(r'point\("([^"]+)"\)', text))
    for word, rest in re.findall(r'point\(f"{(\w+)}\.([^"]+)"\)', text):
        names |= {f"{value}.{rest}" for value in FORMS[word]}
    return {name for name in names if name.startswith(PREFIXES)}


def test_the_commands_pass_every_point_that_they_name_and_these_are_forty_and_more(stages):
    passed = {name for names in stages[1].values() for name in names}
    assert passed == named_in_the_source()
    assert len(passed) >= 40


class Cycles:
    """Kills and retries, and what was wrong after any of them."""

    def __init__(self, warm, stages):
        self.warm, (self.root, self.passed) = warm, stages
        self.kills, self.points, self.wrong = 0, set(), []

    def cycle(self, command, at, *, again=None):
        """Kill a command at a point, and perhaps its retry as well; then retry."""
        place = shutil.copytree(self.root / command, self.root / f"cycle-{self.kills}")
        told = {"folder": str(place), "command": command}
        for number in [at, *([] if again is None else [again])]:
            done = self.warm.do("killed", at=number, **told)
            if done.status == 0 and number == again:
                break  # less was left to do than that
            assert done.status == -signal.SIGKILL, done
            self.kills += 1
            self.points.add(done.answer)
        retry = self.warm.do("retried", **told)
        if retry != (0, []):
            self.wrong.append((command, at, again, retry))
        shutil.rmtree(place)


def test_killed_once_at_every_point_nothing_is_lost_or_half_visible_and_a_retry_succeeds(
    warm, stages, tell
):
    cycles = Cycles(warm, stages)
    done = set()
    for command, names in stages[1].items():
        for at, name in zip(count(1), names, strict=False):
            if name not in done:
                done.add(name)
                cycles.cycle(command, at)
    assert cycles.wrong == []
    assert cycles.points == done == named_in_the_source()
    tell(f"kill -9: {cycles.kills} kills at {len(cycles.points)} points: 0 lost, 0 partial")


@pytest.mark.soak
def test_killed_a_thousand_times_also_while_it_recovers_nothing_is_lost(warm, stages, tell):
    cycles, rng = Cycles(warm, stages), np.random.default_rng(5)
    while cycles.kills < 1000:
        command = COMMANDS[rng.integers(len(COMMANDS))]
        most = len(stages[1][command])
        again = int(rng.integers(1, most + 1)) if rng.random() < 0.3 else None
        cycles.cycle(command, int(rng.integers(1, most + 1)), again=again)
    assert cycles.wrong == []
    tell(f"kill -9: {cycles.kills} kills at {len(cycles.points)} points: 0 lost, 0 partial")
