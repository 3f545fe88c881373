"""What Tables 7, 8 and 16 leave open, and how near each choice comes to their numbers."""

from unittest.mock import Mock

import numpy as np
import pytest
from experiments.data import molecules
from experiments.data.adult import COLUMNS, Persons, partition
from experiments.data.splits import scaffold_parts
from experiments.harness.models import ACCURACY, mlp
from experiments.harness.study import key
from experiments.harness.systems import Dealt, prefixed
from experiments.harness.uploads import by_gopp, uploads
from experiments.studies import (
    ours_spans,
    ours_weighting,
    table_07_images,
    table_07_open,
    table_07_splits,
    table_07_tdc,
    table_08,
    table_08_open,
    table_15,
    table_16,
    table_16_open,
)

from cobasis.errors import UndeterminedFitError

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
        table_07_tdc, "deal_molecules", lambda *_, **how: asked.append(how) or dealt()
    )
    monkeypatch.setattr(table_07_tdc, "ROUND", ROUND)
    values = {}
    for cell in table_07_splits.STUDY.cells[:12]:
        found = table_07_splits.run(cell, repeat=0)
        start = f"{cell['data']}/{cell['condition']}"
        names = [name for name in found if "dealt out" not in name]
        printed = {name: table_07_tdc.STUDY.published[f"{start}/{name}"].value for name in names}
        assert len(printed) == 6
        values |= {key(cell, name): [value, value + 4] for name, value in printed.items()}
    scaffold = [how.pop("by_scaffold", False) for how in asked[:6]]
    assert scaffold == [False, False, False, False, True, True]
    assert distances(values, "ames") == ["2.0"] * 3
    del values[next(iter(values))]
    assert distances(values, "ames") == ["", "2.0", "2.0"]
    assert distances(values, "cyp1a2_veith") == ["2.0"] * 3


def test_table_7_has_the_split_that_came_nearest_for_each_task(monkeypatch):
    asked = {}
    monkeypatch.setattr(
        table_07_tdc,
        "deal_molecules",
        lambda task, rng, **how: asked.update({task: how}),  # noqa: ARG005
    )
    for task in molecules.TASKS:
        table_07_tdc.deal(task, repeat=0)
    assert asked.pop("ames") == {"validation": False}
    assert asked.pop("hiv") == asked.pop("tox21_sr-are") == {}
    assert all(how == {"by_scaffold": True} for how in asked.values())


def test_smaller_compounds_are_the_half_with_the_fewest_bits(monkeypatch):
    bits = np.tri(9, 12, dtype=np.uint8)[::-1]  # 9 compounds of 9 to 1 bits
    monkeypatch.setattr(molecules, "_public_bits", lambda: bits)
    drawn = [molecules.public_rows(9, rng=np.random.default_rng(2), smaller=s) for s in (0, 1)]
    assert [sorted(each.sum(axis=1)) for each in drawn] == [[*range(1, 10)], [1, 2, 3, 4]]


def test_other_compounds_and_components_are_held_against_table_16(monkeypatch):
    asked = []

    def rows(count, **how):
        asked.append((count, how["smaller"]))
        return (np.random.default_rng(6).random((90, 40)) < 0.4) * 1.0

    monkeypatch.setattr(table_07_tdc, "deal_molecules", lambda *_, **__: dealt())
    monkeypatch.setattr(table_16, "public_rows", rows)
    monkeypatch.setattr(table_16_open, "N_COMPONENTS", 6)
    monkeypatch.setitem(table_16_open.OPEN, "250 components", {"n_components": 7})
    values = {}
    for cell in table_16_open.STUDY.cells:
        start = key(table_16.cell("pubchem", "diffspan_orth", cell["a"]), "")[:-1]
        for name in table_16_open.run(cell, repeat=0):
            if "dealt out" not in name:
                printed = table_16.STUDY.published[f"{start}/{name}"].value
                values[key(cell, name)] = [printed - 3, printed + (cell["a"] == 512)]
    assert asked == [(a, smaller) for smaller in (False, True, False) for a in table_16.SIZES]
    lines = table_16_open.analysis(values)[-4:]
    assert [line.split("|")[2:-1] for line in lines] == [[" 1.0 "] * 3, *[[" 1.5 "] * 3] * 3]


def test_other_halves_have_every_other_feature_and_are_held_against_table_8(monkeypatch):
    persons = partition(tiny_adult(), rng=np.random.default_rng(0), n_blocks=3, n_tests=30)
    monkeypatch.setattr(table_08_open, "adult", lambda: None)
    monkeypatch.setattr(table_08_open, "partition", lambda *_, **__: persons)
    monkeypatch.setattr(table_08_open, "SIZE", 4)
    monkeypatch.setattr(table_08, "ANCHOR_ROWS", 60)
    halves = table_08.in_turn(persons).halves
    assert [list(np.flatnonzero(half)[:3]) for half in halves] == [[0, 2, 4], [1, 3, 5]]
    assert not np.any(halves[0] & halves[1])
    values = {}
    for cell in table_08_open.STUDY.cells:
        found = table_08_open.run(cell, repeat=0)
        assert set(table_08.PRINTED) <= set(found)
        for method in table_08.PRINTED:
            place = key(cell, method)
            values[place] = [table_08.STUDY.published[place].value + 1.5]
    lines = table_08_open.analysis(values)[-4:]
    assert [line.split("|")[-2].strip() for line in lines] == ["1.5"] * 4


def tiny_adult():
    """Make 150 persons of 20 numbers, and a label."""
    rows = np.random.default_rng(7).random((150, 20))
    return Persons(
        rows=rows,
        labels=(rows[:, 0] + rows[:, 1] > 1).astype(int),
        columns=[COLUMNS[0], COLUMNS[7]] * 10,
    )


def distances(values, task):
    """Return what the analysis says of other parts."""
    [line] = [each for each in table_07_splits.analysis(values) if each.startswith(f"| {task} ")]
    return [each.strip() for each in line.split("|")[2:-1]]


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


def test_other_learning_rates_and_projected_rows_are_held_against_table_7(monkeypatch):
    rng = np.random.default_rng(2)
    rows, labels = rng.random((200, 9)), np.arange(200) % 2
    rows[:, 0] += labels
    parties = {f"party-{i}": (rows[i:150:3], labels[i:150:3]) for i in range(3)}
    split = Dealt(parties=parties, test_rows=rows[150:], test_labels=labels[150:])
    monkeypatch.setattr(table_07_images, "dealt", lambda *_: split)
    monkeypatch.setitem(table_07_open.ROUND, "n_components", 4)
    values, rates = {}, []
    real = table_07_open.mlp
    monkeypatch.setattr(
        table_07_open, "mlp", lambda seed, **how: rates.append(how) or real(seed, **how)
    )
    for cell in table_07_open.STUDY.cells[:4]:
        for name in table_07_open.run(cell, repeat=0):
            if "dealt out" not in name:
                printed = table_07_images.STUDY.published[f"{cell['data']}/{name}"].value
                values[key(cell, name)] = [printed + 1, printed + 2]
    assert {how["learning_rate_init"] for how in rates} == {5e-4, 1e-3, 2e-3}
    lines = table_07_open.analysis(values)
    own = [line.split("|")[-5:-1] for line in lines if line.startswith("| mnist/")]
    assert own[0] == ["  ", "  ", "  ", " 1.5 "]
    assert own[1] == [" 1.5 "] * 4
    assert own[2:] == [[*[" 1.5 "] * 3, "  "]] * 5


def test_gopp_has_cells_of_its_own_with_the_numbers_of_the_others_cells(monkeypatch):
    monkeypatch.setattr(table_07_tdc, "deal_molecules", lambda *_, **__: dealt())
    monkeypatch.setattr(table_07_tdc, "ROUND", ROUND)
    cell = {"data": "ames", "condition": "diffspan_orth"}
    beside = table_07_tdc.run(cell, repeat=0)
    own = table_07_tdc.run({**cell, "system": "gopp"}, repeat=0)
    assert prefixed(own, "gopp") == {n: v for n, v in beside.items() if n.startswith("gopp/")}
    refusing = Mock(side_effect=UndeterminedFitError("2 of 6 directions", ("party-0",)))
    found = by_gopp(Mock(aligned=refusing), make=mlp, metrics={"": ACCURACY}, repeat=0)
    assert found == {"refused": 1.0}


def test_gopp_stands_beside_the_others_for_every_anchor(monkeypatch):
    for study in (table_15, table_16):
        assert sum(each.get("system") == "gopp" for each in study.STUDY.cells) == 16
    monkeypatch.setattr(table_15, "deal_images", lambda *_, **__: dealt())
    monkeypatch.setattr(table_15, "ROUND", {"anchor": "uniform", "n_components": 4})
    cell = {"data": "mnist", "condition": "diffspan_orth", "a": 40, "system": "gopp"}
    assert "" in table_15.run(cell, repeat=0)
    monkeypatch.setattr(table_07_tdc, "deal_molecules", lambda *_, **__: dealt())
    monkeypatch.setattr(table_16, "N_COMPONENTS", 4)
    cell = {"anchor": "uniform", "condition": "diffspan_orth", "a": 40, "system": "gopp"}
    assert {"roc", "pr"} <= set(table_16.run(cell, repeat=0))


def test_table_17_leaves_out_the_repeats_in_which_gopp_was_refused():
    cells = [{k: v for k, v in each.items() if k != "system"} for each in table_15.STUDY.cells]
    values = {
        key(each, method): [90.0, 91.0, 92.0] for each in cells for method in table_15.ALIGNERS
    }
    gopp = {key(each, "gopp/"): [np.nan, 90.0, 91.0] for each in cells}
    lines = table_15.analysis(values | gopp)
    assert sum("| gopp | 0 | 1 | " in line for line in lines) == 4
    gopp["mnist/samespan_orth/196/gopp/"] = [np.nan, np.nan, 91.0]
    lines = table_15.analysis(values | gopp)
    assert sum("| gopp |" in line for line in lines) == 3
