"""How the benchmark measures and judges: nothing here is about speed."""

from functools import partial

import numpy as np
import pytest
from benchmarks import fig6, goals, gopp, points, sweeps, timing
from benchmarks.inputs import INPUTS, separated
from benchmarks.sections import SECTIONS

from cobasis.planning.costs import Size


def test_contenders_take_turns_in_alternating_order():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "abc"}
    found = timing.interleaved(calls, rounds=2, warm=False)
    assert order == ["a", "b", "c", "c", "b", "a"]
    assert all(len(found[name]["runs"]) == 2 for name in "abc")


def test_a_ratio_is_taken_round_by_round():
    times = {"slow": {"runs": [2.0, 9.0, 4.0]}, "fast": {"runs": [1.0, 3.0, 4.0]}}
    assert timing.ratio(times, "slow", "fast") == {"median": 2.0, "low": 1.5, "high": 2.5}


@pytest.mark.parametrize(
    ("figure", "bounds", "verdict"),
    [
        (1.2, {"least": 1.3}, "missed"),
        (1.3, {"least": 1.3}, "met"),
        (3.1, {"most": 3}, "missed"),
        (2.9, {"most": 3}, "met"),
        (2.9, {}, "no goal"),
    ],
)
def test_a_goal_is_met_or_missed_with_its_figure(figure, bounds, verdict):
    found = goals.goal("anything", figure, unit="x", **bounds)
    assert (found["verdict"], found["figure"]) == (verdict, f"{figure}x")


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (1.54e-13, "1.54e-13"),
        (3.0, "3"),
        (99.96, "100"),
        (999.6, "1,000"),
        (3221.225, "3,221"),
        (1.2e9, "1.2e+09"),
    ],
)
def test_thousands_are_written_out(figure, said):
    assert goals.written(figure) == said


def test_the_worst_point_decides_and_is_named():
    found = goals.worst([("here", 2.0), ("there", 0.5)], "faster", least=1.0)
    assert found["verdict"] == "missed"
    assert found["where"] == "1 of 2 points meet it; worst: there"


def test_different_spans_shall_be_faster_with_few_components_and_not_slower_with_many():
    def point(components, ratio):
        return {"a": 9, "l": components, "c": 2, "scipy loop / ours": {"median": ratio}}

    name = "different, uniform anchor"
    points_of = [point(50, 1.4), point(100, 1.2), point(250, 1.05), point(500, 0.9)]
    few, many, floor = sweeps.judged(points_of, name)
    assert (few["value"], few["asked"], few["verdict"]) == (1.2, ">= 1.3x", "missed")
    assert (many["value"], many["asked"], many["verdict"]) == (0.9, ">= 1x", "missed")
    assert many["where"].startswith("1 of 2 points")
    assert floor["verdict"] == "not measured"
    [whole, _] = sweeps.judged(points_of, "shared, isometric anchor")
    assert (whole["value"], whole["asked"]) == (0.9, ">= 2x")


def test_different_spans_are_timed_at_four_sizes_of_many_components():
    wanted = partial(sweeps.wanted, "different, isometric anchor", "l")
    timed = [size.n_components for size in points.sizes("l", quick=False) if wanted(size=size)]
    assert timed == [50, 100, 250, 500, 750, 950]


def test_no_point_is_no_verdict():
    assert goals.worst([], "faster", least=1.0)["verdict"] == "not measured"


def test_the_sweeps_are_table_5s():
    counted = {free: len(points.sizes(free, quick=False)) for free in "lac"}
    assert counted == {"l": 19, "a": 20, "c": 20}
    assert points.sizes("l", quick=False)[-1] == Size(
        n_anchor_rows=1000, n_components=950, n_parties=50
    )
    assert points.sizes("c", quick=False)[-1].letters == (1000, 50, 1000)
    assert points.sizes("a", quick=False)[-1].letters == (20_000, 50, 50)


@pytest.mark.parametrize("free", "lac")
def test_published_forms_are_tried_at_five_points_of_the_same_sweep(free):
    found = points.published_sizes(free, quick=False)
    assert len(found) == 5
    assert set(found) <= set(points.sizes(free, quick=False))


@pytest.mark.parametrize("name", INPUTS)
def test_an_input_has_the_shape_that_was_asked_for_and_full_rank(name):
    images = INPUTS[name](a=60, l=5, c=3)
    assert [image.shape for image in images.values()] == [(60, 5)] * 3
    assert all(np.linalg.matrix_rank(image) == 5 for image in images.values())


def test_where_the_span_is_shared_products_of_images_are_orthogonal():
    first, second = INPUTS["shared, isometric anchor"](a=60, l=5, c=2).values()
    product = first.T @ second
    np.testing.assert_allclose(product.T @ product, np.eye(5), atol=1e-12)


def test_where_spans_differ_they_agree_in_some_directions_and_hardly_in_others():
    first, second = INPUTS["different, isometric anchor"](a=300, l=20, c=2).values()
    cosines = np.linalg.svd(first.T @ second, compute_uv=False)
    assert cosines[0] > 0.9
    assert cosines[-1] < 0.3


def test_noise_closes_the_gap_behind_the_leading_directions():
    def gap(noise):
        images = separated(a=100, l=5, c=8, noise=noise)
        values = np.linalg.svd(np.hstack(list(images.values())), compute_uv=False)
        return values[4] / values[5]

    assert gap(0.1) > gap(0.5) > gap(1.25) > 1


def test_a_power_law_is_found_again():
    sizes = [1.0, 2.0, 4.0, 8.0]
    found = fig6.power_law(sizes, [3 * size**1.7 for size in sizes])
    assert found["exponent"] == pytest.approx(1.7)
    assert found["r2"] == pytest.approx(1)


def test_the_slopes_interval_is_the_textbooks():
    sizes, seconds = [1.0, 2.0, 3.0, 4.0], [1.1, 1.9, 3.2, 3.8]
    found = fig6.straight_line(sizes, seconds)
    design = np.column_stack([np.ones(4), sizes])
    start, slope = np.linalg.lstsq(design, seconds)[0]
    rest = np.asarray(seconds) - design @ [start, slope]
    error = np.sqrt(rest @ rest / 2 * np.linalg.inv(design.T @ design)[1, 1])
    assert found["slope"] == pytest.approx(slope)
    assert found["high"] - found["slope"] == pytest.approx(4.302653 * error, rel=1e-5)


def test_a_sweep_is_put_together_from_every_section_that_has_its_points():
    here = {"a": 1000, "l": 50, "c": 50, "seconds": {"ours": 1.0}}
    there = {"a": 1000, "l": 50, "c": 100, "seconds": {"ours": 2.0}}
    other = {"a": 2000, "l": 50, "c": 50, "seconds": {"ours": 7.0}}
    found = fig6.by_contender([here, there, other], "c")
    assert found == {"ours": ([50, 100], [1.0, 2.0])}


def test_gopp_is_timed_with_momentum_and_without():
    found = gopp.measure(quick=True)
    for each, told in zip(found["inputs"], found["goals"], strict=True):
        assert each["iterations"]["momentum"] < each["iterations"]["alternation"]
        assert each["objective, momentum / alternation"] < 1 + 1e-6
        assert len(each["seconds"]["momentum"]["runs"]) == 3
        assert told["verdict"] == "no goal"
        assert f"{each['iterations']['alternation']} with alternation" in told["where"]


def test_every_section_says_what_it_measures():
    assert all(section.title for section in SECTIONS.values())
    assert len({(each.module, *each.options.values()) for each in SECTIONS.values()}) == len(
        SECTIONS
    )
