"""The middle version's figures of time measure what they say, each over its own size."""

import pytest
from experiments.harness.study import load
from experiments.studies import v2_fig_4


@pytest.mark.parametrize(("name", "size"), [("4", {"c": 2}), ("5", {"l": 3}), ("6", {"a": 30})])
def test_each_figure_varies_its_own_size_and_takes_ratios_round_by_round(monkeypatch, name, size):
    monkeypatch.setattr(v2_fig_4, "BASE", {"a": 20, "l": 2, "c": 3})
    asked, real = [], v2_fig_4.anchor_images
    monkeypatch.setattr(
        v2_fig_4, "anchor_images", lambda **sizes: asked.append(sizes) or real(**sizes)
    )
    runs = {each: {"runs": [2.0, 8.0, 5.0], "median": 5.0} for each in v2_fig_4.CALLS}
    runs["odc"] = {"runs": [1.0, 2.0, 50.0], "median": 2.0}
    monkeypatch.setattr(v2_fig_4, "interleaved", lambda *_, **__: runs)
    study = load(f"v2_fig_{name}")
    assert all(set(cell) == set(size) for cell in study.cells)
    found = study.run(**size, repeat=7)
    assert asked == [{"a": 20, "l": 2, "c": 3, **size, "repeat": 7}]
    assert found["imakura/seconds"] == 5.0
    assert found["imakura/times ODC's"] == 2.0  # of 2, 4 and 0.1
    assert found["imakura, as published/times ODC's"] == 1.0
