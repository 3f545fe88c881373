"""Random schedules of everything that can happen to an analyst; a seed that fails is kept here."""

import shutil
from contextlib import ExitStack

import pytest

from cobasis.protocol import analyst
from under_fault.schedule import Schedule
from under_fault.simulated import Cast, clocked

STEPS = 14


@pytest.fixture(scope="module")
def cast(in_memory):
    return Cast(in_memory)


class Theatre:
    """Plays schedules one after the other, and counts."""

    def __init__(self, cast, folder):
        self.cast, self.folder, self.played, self.crashes, self.steps = cast, folder, 0, 0, 0

    def play(self, seed):
        """One schedule; an assertion names its seed and its steps."""
        place = self.folder / f"seed-{seed}"
        place.mkdir()
        one = Schedule(self.cast, place, seed)
        try:
            one.play(STEPS)
        except BaseException as error:
            error.add_note(f"seed {seed}: {one.log}")
            raise
        self.played, self.crashes = self.played + 1, self.crashes + one.crashes
        self.steps += STEPS
        shutil.rmtree(place)

    def __str__(self):
        return f"{self.played} schedules of {STEPS} steps, {self.crashes} crashes: I1 to I9 hold"


@pytest.fixture
def theatre(cast, in_memory, monkeypatch):
    monkeypatch.setattr(analyst, "train", cast.train)
    with ExitStack() as clocks:
        for patch in clocked():
            clocks.enter_context(patch)
        yield Theatre(cast, in_memory)


@pytest.mark.parametrize("n_schedules", [25, pytest.param(2000, marks=pytest.mark.soak)])
def test_the_invariants_hold_after_every_step_of_every_schedule(n_schedules, theatre, tell):
    for seed in range(n_schedules):
        theatre.play(seed)
    tell(f"simulator: {theatre}")
    assert theatre.crashes > n_schedules // 10
