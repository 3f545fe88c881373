from functools import partial

import pytest
from benchmarks import formulas, goals, results, timing
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


@pytest.mark.parametrize("shape", [Shape(1000, 50, 4), Shape(1000, 50, 1000)], ids=str)
def test_work_adds_up_from_the_products_and_decompositions_of_the_papers_table_2(shape):
    a, l, c = shape  # noqa: E741 -- the paper's letters

    def product(rows, inner, columns):
        return 2 * rows * inner * columns

    def svd(rows, columns):
        small, large = sorted((rows, columns))
        return 4 * large * small**2 + 8 * small**3

    solved, qr = svd(a, l) + product(l, a, l), 2 * a * l**2 - 2 / 3 * l**3
    assert formulas.operations_of(shape) == pytest.approx(
        {
            "imakura": svd(a, c * l) + product(a, l, l) + c * solved,
            "kawakami": svd(a, c * l) + c * (qr + l**3 / 3 + l**3),
            "odc": c * (product(l, a, l) + svd(l, l) + 2 * product(l, l, l)),
        }
    )


def test_memory_is_counted_and_times_are_fitted_as_the_paper_does():
    held = {"imakura": 480 + 120 + 144, "kawakami": 480 + 36 + 144, "odc": 480 + 36 + 36}
    assert formulas.numbers_of(SMALL) == held
    law, line = results.power_law([1, 10, 100], [3, 300, 30_000]), {"start": 3, "slope": 2, "r2": 1}
    assert (law["exponent"], law["r2"]) == pytest.approx((2, 1))
    found = results.straight_line([1, 2, 4], [5, 7, 11])
    assert {name: found[name] for name in line} == pytest.approx(line)
