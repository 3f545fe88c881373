from dataclasses import replace

import pytest
from experiments.harness import evidence
from experiments.harness.store import recorded


def kept(name, change, *, repeats):
    results = recorded(name)
    results.cells = {
        place: replace(cell, values={k: v + change(cell, k) for k, v in cell.values.items()})
        for place, cell in results.cells.items()
        if cell.repeat < repeats
    }
    return {name: results}


@pytest.mark.parametrize(
    ("lost", "repeats", "verdict"), [(0, 9, "met"), (3, 9, "missed"), (0, 1, "not measured")]
)
def test_goals_are_met_by_a_method_nowhere_below_and_two_points_below_on_the_farthest_task(
    lost, repeats, verdict
):
    def lose(cell, name):
        on_hiv = cell.settings.get("data") == "hiv" and cell.settings["basis"] != "pooled"
        return -lost * (name.startswith("imakura/") or on_hiv)

    told = "\n".join(evidence.given_spans(kept("table_07_images", lose, repeats=repeats)))
    assert f"given: {verdict}.** " in told
    assert ("| imakura, uniform anchor | 16 of 16 | 0 | nowhere |" in told) == (verdict == "met")
    told = "\n".join(evidence.free_basis(kept("ours_bases", lose, repeats=repeats)))
    assert f"basis is free: {verdict}.**" in told
    assert "(hiv/" in told or verdict != "missed"
    assert ("one repeat, which has no interval" in told) == (repeats == 1)
