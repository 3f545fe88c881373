"""Other parts of the same molecules: TDC's scaffold split, and how near it comes to the paper."""

import numpy as np
from experiments.data.splits import scaffold_parts
from experiments.studies import table_07_splits, table_07_tdc
from experiments.study import key
from experiments.systems import Dealt

RINGS = ["C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "C1CCNCC1", "C1CCOCC1", "C1CCSCC1", "c1ccccc1"]


def test_a_scaffold_split_keeps_ring_systems_together_and_trains_on_large_ones():
    smiles = ["C" * n for n in range(2, 52)]  # no ring: one group, that of the empty scaffold
    smiles += ["C" * n + ring for ring in RINGS for n in range(1, 5)]
    parts = scaffold_parts(smiles)
    assert set(parts[:50]) == {"train"}
    assert all(len(set(group)) == 1 for group in parts[50:].reshape(8, 4))
    names, counts = np.unique(parts, return_counts=True)
    assert dict(zip(names, counts.tolist(), strict=True)) == {"train": 54, "valid": 8, "test": 20}


def test_other_parts_are_measured_as_table_7_is_and_held_against_its_numbers(monkeypatch):
    rng = np.random.default_rng(5)
    bits = (rng.random((160, 40)) < 0.4) * 1.0
    labels = (bits[:, :9].sum(1) > 3).astype(int)
    parties = {f"party-{i}": (bits[i:120:4], labels[i:120:4]) for i in range(4)}
    dealt = Dealt(parties=parties, test_rows=bits[120:], test_labels=labels[120:])
    asked = []
    monkeypatch.setattr(
        table_07_splits, "deal_molecules", lambda *_, **how: asked.append(how) or dealt
    )
    options = {"anchor": "uniform", "n_anchor_rows": 90, "n_components": 6}
    monkeypatch.setattr(table_07_tdc, "ROUND", options)
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
