"""What Table 7 leaves open: TDC's parts, Kawakami's weights, and how near each comes to it."""

import numpy as np
import pytest
from experiments.data.splits import scaffold_parts
from experiments.studies import ours_spans, ours_weighting, table_07_splits, table_07_tdc
from experiments.study import key
from experiments.systems import Dealt
from experiments.uploads import uploads

RINGS = ["C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "C1CCNCC1", "C1CCOCC1", "C1CCSCC1", "c1ccccc1"]
ROUND = {"anchor": "uniform", "n_anchor_rows": 90, "n_components": 6}


def dealt():
    """Deal 120 random sets of bits to four parties."""
    rng = np.random.default_rng(5)
    bits = (rng.random((160, 40)) < 0.4) * 1.0
    labels = (bits[:, :9].sum(1) > 3).astype(int)
    parties = {f"party-{i}": (bits[i:120:4], labels[i:120:4]) for i in range(4)}
    return Dealt(parties=parties, test_rows=bits[120:], test_labels=labels[120:])


def test_a_scaffold_split_keeps_ring_systems_together_and_trains_on_large_ones():
    smiles = ["C" * n for n in range(2, 52)]  # no ring: one group, that of the empty scaffold
    smiles += ["C" * n + ring for ring in RINGS for n in range(1, 5)]
    parts = scaffold_parts(smiles)
    assert set(parts[:50]) == {"train"}
    assert all(len(set(group)) == 1 for group in parts[50:].reshape(8, 4))
    names, counts = np.unique(parts, return_counts=True)
    assert dict(zip(names, counts.tolist(), strict=True)) == {"train": 54, "valid": 8, "test": 20}


def test_other_parts_are_measured_as_table_7_is_and_held_against_its_numbers(monkeypatch):
    asked = []
    monkeypatch.setattr(
        table_07_splits, "deal_molecules", lambda *_, **how: asked.append(how) or dealt()
    )
    monkeypatch.setattr(table_07_tdc, "ROUND", ROUND)
    values = {}
    for cell in table_07_splits.STUDY.cells[:8]:
        found = table_07_splits.run(cell, repeat=0)
        start = f"{cell['data']}/{cell['condition']}"
        names = [name for name in found if "dealt out" not in name]
        printed = {name: table_07_tdc.STUDY.published[f"{start}/{name}"].value for name in names}
        assert len(printed) == 6
        values |= {key(cell, name): [value, value + 4] for name, value in printed.items()}
    assert [how.get("by_scaffold", False) for how in asked[:4]] == [False, False, True, True]
    assert distances(values, "ames") == ["2.0", "2.0"]
    del values[next(iter(values))]
    assert distances(values, "ames") == ["", "2.0"]
    assert distances(values, "cyp1a2_veith") == ["2.0", "2.0"]


def distances(values, task):
    """Return what the analysis says of other parts."""
    [line] = [each for each in table_07_splits.analysis(values) if each.startswith(f"| {task} ")]
    return [each.strip() for each in line.split("|")[3:-1]]


@pytest.mark.parametrize("condition", ours_weighting.CONDITIONS)
def test_weights_are_1_where_spans_agree_and_change_rows_where_not(condition, monkeypatch):
    monkeypatch.setattr(ours_spans, "deal_molecules", lambda *_, **__: dealt())
    monkeypatch.setattr(table_07_tdc, "ROUND", ROUND)
    found = ours_weighting.run({"data": "ames", "condition": condition}, repeat=0)
    assert {f"{method}/roc" for method in ours_weighting.METHODS} <= set(found)
    sent = uploads(dealt(), repeat=0, span_condition=condition, **ROUND)
    rows = {method: align(sent).rows for method, align in ours_weighting.METHODS.items()}
    lengths = {method: np.linalg.norm(each, axis=0) for method, each in rows.items()}
    weights = lengths["kawakami, weighted"] / lengths["kawakami"]
    np.testing.assert_allclose(rows["kawakami, weighted"], rows["kawakami"] * weights, atol=1e-12)
    one = condition == "samespan_orth"
    assert np.allclose(weights, 1, rtol=0, atol=1e-9) == one
    scaled = lengths["kawakami, feature scaling"]
    assert np.allclose(scaled, scaled[0]) == one
    assert any("dealt out" in name for name in found) != one  # parties see test rows alike


def test_the_analysis_says_how_far_each_form_is_from_the_papers_rows():
    values = {}
    for place, each in ours_weighting.PUBLISHED.items():
        side = 1 if "samespan" in place else -1
        for off, method in enumerate(ours_weighting.METHODS):
            ours = place.replace("/kawakami/", f"/{method}/")
            values[ours] = [each.value + side * off, each.value]
    lines = ours_weighting.analysis(values)
    assert lines[-4:] == [f"| {task} | 0.0 | 0.5 | 1.0 | 1.5 |" for task in ours_weighting.TASKS]
    del values["ames/diffspan_orth/kawakami, weighted/pr"]
    assert "| ames | 0.0 |  | 1.0 | 1.5 |" in ours_weighting.analysis(values)
