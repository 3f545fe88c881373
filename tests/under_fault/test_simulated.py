import shutil

import pytest

from cobasis.protocol import analyst
from under_fault.schedule import Schedule
from under_fault.simulated import CLOCKED, Cast, Clock

STEPS = 14


@pytest.fixture(scope="module")
def cast(in_memory):
    return Cast(in_memory)


@pytest.fixture
def play(cast, in_memory, monkeypatch):
    monkeypatch.setattr(analyst, "train", cast.train)
    for module in CLOCKED:
        monkeypatch.setattr(module, "datetime", Clock)

    def played(seed):
        place = in_memory / f"seed-{seed}"
        place.mkdir()
        one = Schedule(cast, place, seed)
        try:
            one.play(STEPS)
        except BaseException as error:
            error.add_note(f"seed {seed}: {one.log}")
            raise
        shutil.rmtree(place)
        return one.crashes

    return played


@pytest.mark.parametrize("n_schedules", [6, pytest.param(2000, marks=pytest.mark.soak)])
def test_the_invariants_hold_after_every_step_of_every_schedule(n_schedules, play, tell):
    crashes = sum(play(seed) for seed in range(n_schedules))
    tell(f"simulator: {n_schedules} schedules of {STEPS} steps, {crashes} crashes: I1 to I9 hold")
    assert crashes > n_schedules // 10
