"""The middle version's figures of time: what is timed is right, and it is timed in turn."""

import numpy as np
import pytest
from experiments.studies import v2_fig_4, v2_fig_5, v2_fig_6

from cobasis import Kawakami, align


def test_what_is_timed_aligns():
    anchors = v2_fig_4.anchor_images(a=40, l=5, c=3, repeat=0)
    for call in (v2_fig_4.odc_printed, v2_fig_4.imakura_printed, v2_fig_4.kawakami_printed):
        turns = call(anchors)
        seen = [image @ turn for image, turn in zip(anchors.values(), turns, strict=True)]
        np.testing.assert_allclose(seen[1], seen[0], atol=1e-8)
        np.testing.assert_allclose(seen[2], seen[0], atol=1e-8)
        assert np.linalg.matrix_rank(seen[0]) == 5
    ours = align(Kawakami(scale="paper"), anchors)
    printed = v2_fig_4.kawakami_printed(anchors)
    both = zip(anchors.values(), printed, strict=True)
    energy = [np.sum((image @ turn) ** 2) for image, turn in both]
    assert sum(energy) == pytest.approx(5)  # the constraint, summed over columns
    mine = [np.sum((anchors[n] @ turn) ** 2) for n, turn in ours.changes_of_basis.items()]
    assert sum(mine) == pytest.approx(5)


def test_methods_are_timed_in_turn(monkeypatch):
    order = []
    monkeypatch.setattr(v2_fig_4, "ROUNDS", 2)
    calls = {name: lambda _, name=name: order.append(name) for name in "abc"}
    anchors = v2_fig_4.anchor_images(a=10, l=3, c=2, repeat=0)
    runs = v2_fig_4.timed(calls, anchors)
    assert "".join(order) == "abc" + "abc" + "cba"  # to warm up, forwards, backwards
    assert [len(each) for each in runs.values()] == [2, 2, 2]


def test_a_long_measurement_is_not_repeated(monkeypatch):
    monkeypatch.setattr(v2_fig_4, "ENOUGH", 0.0)
    anchors = v2_fig_4.anchor_images(a=10, l=3, c=2, repeat=0)
    runs = v2_fig_4.timed({"a": lambda _: None}, anchors)
    assert len(runs["a"]) == 1


def test_ratios_are_taken_round_by_round(monkeypatch):
    runs = {name: [2.0, 8.0, 5.0] for name in v2_fig_4.CALLS}
    runs["odc"] = [1.0, 2.0, 50.0]
    monkeypatch.setattr(v2_fig_4, "timed", lambda *_: runs)
    found = v2_fig_4.measured(a=10, l=3, c=2, repeat=0)
    assert found["imakura/seconds"] == 5.0
    assert found["imakura/times ODC's"] == 2.0  # of 2, 4 and 0.1
    assert found["imakura, as published/times ODC's"] == 1.0


@pytest.mark.parametrize(
    ("study", "settings"), [(v2_fig_4, {"c": 2}), (v2_fig_5, {"l": 3}), (v2_fig_6, {"a": 30})]
)
def test_each_figure_varies_its_own_size(monkeypatch, study, settings):
    seen = {}
    monkeypatch.setattr(study, "measured", lambda **sizes: seen.update(sizes) or {})
    study.run(settings, repeat=7)
    assert seen == settings | {"repeat": 7}
