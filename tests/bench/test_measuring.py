"""How the benchmark measures and judges: nothing here is about speed."""

from functools import partial
from itertools import chain, repeat

import numpy as np
import pytest
from benchmarks import cores, goals, timing
from benchmarks.inputs import Shape

SMALL = Shape(a=40, l=3, c=4)


def test_contenders_take_turns_and_a_ratio_is_taken_round_by_round():
    order = []
    calls = {name: partial(order.append, name) for name in "abc"}
    found = timing.interleaved(calls, rounds=2, warm=False)
    assert order == ["a", "b", "c", "c", "b", "a"]
    assert all(len(found[name]["runs"]) == 2 for name in "abc")
    assert len(timing.interleaved(calls, rounds=9, enough=0.0)["a"]["runs"]) == 1
    times = {"slow": {"runs": [2.0, 9.0, 4.0]}, "fast": {"runs": [1.0, 3.0, 4.0]}}
    assert timing.ratio(times, "slow", "fast") == {"median": 2.0, "low": 1.5, "high": 2.5}


def test_a_goal_is_met_or_missed_with_its_figure_and_the_worst_point_decides():
    for verdict, figure, bounds in (
        *(("missed", 1.2, {"least": 1.3}), ("met", 1.3, {"least": 1.3})),
        *(("missed", 3.1, {"most": 3}), ("met", 2.9, {"most": 3}), ("no goal", 2.9, {})),
    ):
        found = goals.goal("anything", figure, unit="x", **bounds)
        assert (found["verdict"], found["figure"]) == (verdict, f"{figure}x")
    said = {1.54e-13: "1.54e-13", 3.0: "3", 99.96: "100", 999.6: "1,000", 3221.225: "3,221"}
    assert {each: goals.written(each) for each in said} == said
    found = goals.worst([("here", 2.0), ("there", 0.5)], "faster", least=1.0)
    assert found["verdict"] == "missed"
    assert found["where"] == "1 of 2 points meet it; worst: there"
    assert goals.worst([], "faster", least=1.0)["verdict"] == "not measured"


def controls(monkeypatch, *answers):
    told = chain(answers, repeat(answers[-1]))
    monkeypatch.setattr(timing, "reached", lambda: next(told))


def test_threads_and_a_busy_machine_are_judged_in_the_rounds_that_count(monkeypatch):
    for ours, verdict in ((2.0, "met"), (3.1, "missed")):
        judged = cores.judged_busy({"ours": ours, "scipy loop": 50.0}, told="")
        assert [each["verdict"] for each in judged] == [verdict, "no goal"]
    controls(monkeypatch, *[1.99] * 6, 1.2)
    monkeypatch.setattr(cores, "BUSY_QUICK", SMALL)
    first, second = cores.busy_machine(quick=True)["goals"]
    assert first["verdict"] == second["verdict"] == "not measured"
    assert f"2.1x in 6 of {timing.MOST} rounds, and 7 were wanted" in first["where"]
    controls(monkeypatch, 1.99, 1.2, 1.95, 1.99)
    monkeypatch.setattr(cores, "SHAPES", (SMALL,))
    [point] = cores.two_threads(quick=True)["points"]
    one, two = point["runs"]["one"], point["runs"]["two"]
    assert len(one) == len(two) == cores.ROUNDS_QUICK
    assert point["speed-up"]["median"] == pytest.approx(np.median(np.divide(one, two)))
    assert point["told"] == "control at 1.9x to 2.1x in 3 of 4 rounds"
    fast = point | {"speed-up": {"median": 1.8}}
    verdicts = [cores.judged_threads(fast, rounds=rounds)["verdict"] for rounds in (3, 4)]
    assert verdicts == ["met", "not measured"]
