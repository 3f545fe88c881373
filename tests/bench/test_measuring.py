"""How the benchmark measures and judges: nothing here is about speed."""

from functools import partial
from itertools import chain, repeat

import numpy as np
import pytest
from benchmarks import cores, goals, sweeps, timing
from benchmarks.inputs import INPUTS, Shape, separated

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


def test_goals_differ_by_the_number_of_components():
    def point(components, ratio):
        return {"a": 9, "l": components, "c": 2, "scipy loop / ours": {"median": ratio}}

    points = [point(50, 1.4), point(100, 1.2), point(250, 1.05), point(500, 0.9)]
    few, many, floor = sweeps.judged(points, "different, uniform anchor")
    assert (few["value"], few["asked"], few["verdict"]) == (1.2, ">= 1.3x", "missed")
    assert (many["value"], many["asked"], many["verdict"]) == (0.9, ">= 1x", "missed")
    assert many["where"].startswith("1 of 2 points")
    assert floor["verdict"] == "not measured"
    [whole, _] = sweeps.judged(points, "shared, isometric anchor")
    assert (whole["value"], whole["asked"]) == (0.9, ">= 2x")


def test_inputs_have_full_rank_and_the_spans_and_gaps_that_they_are_named_after():
    for made in INPUTS.values():
        images = made(a=60, l=5, c=3)
        assert [image.shape for image in images.values()] == [(60, 5)] * 3
        assert all(np.linalg.matrix_rank(image) == 5 for image in images.values())
    first, second = INPUTS["shared, isometric anchor"](a=60, l=5, c=2).values()
    product = first.T @ second
    np.testing.assert_allclose(product.T @ product, np.eye(5), atol=1e-12)
    first, second = INPUTS["different, isometric anchor"](a=300, l=20, c=2).values()
    cosines = np.linalg.svd(first.T @ second, compute_uv=False)
    assert (cosines[0] > 0.9, cosines[-1] < 0.3) == (True, True)
    gaps = []
    for noise in (0.1, 0.5, 1.25):
        beside = np.hstack([*separated(a=100, l=5, c=8, noise=noise).values()])
        values = np.linalg.svd(beside, compute_uv=False)
        gaps.append(values[4] / values[5])
    assert gaps[0] > gaps[1] > gaps[2] > 1


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
