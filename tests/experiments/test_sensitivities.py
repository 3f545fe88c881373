"""What Tables 7, 8 and 16 leave open, and how near each choice comes to their numbers."""

from unittest.mock import Mock

import numpy as np
import pytest
from experiments.data import molecules
from experiments.data.adult import COLUMNS, Persons, partition
from experiments.data.molecules import scaffold_parts
from experiments.harness.models import mlp
from experiments.harness.study import key, printed
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
    """Deal 160 random sets of bits to four parties."""
    rng = np.random.default_rng(5)
    bits = (rng.random((200, 40)) < 0.4) * 1.0
    labels = (bits[:, :9].sum(1) > 3).astype(int)
    parties = {f"party-{i}": (bits[i:160:4], labels[i:160:4]) for i in range(4)}
    return Dealt(parties=parties, test_rows=bits[160:], test_labels=labels[160:])


def test_a_scaffold_split_keeps_ring_systems_together_and_trains_on_large_ones():
    smiles = ["C" * n for n in range(2, 52)]  # no ring: one group, that of the empty scaffold
    smiles += ["C" * n + ring for ring in RINGS for n in range(1, 5)]
    parts = scaffold_parts(smiles)
    assert set(parts[:50]) == {"train"}
    assert all(len(set(group)) == 1 for group in parts[50:].reshape(8, 4))
    names, counts = np.unique(parts, return_counts=True)
    assert dict(zip(names, counts.tolist(), strict=True)) == {"train": 54, "valid": 8, "test": 20}


@pytest.fixture
def asked(monkeypatch):
    """Let all studies measure something tiny; return what they asked for."""
    asked = {"deal": [], "public": [], "rates": set()}

    def public(count, **how):
        asked["public"].append((count, how["smaller"]))
        return (np.random.default_rng(6).random((90, 40)) < 0.4) * 1.0

    def network(seed, **how):
        asked["rates"].add(how["learning_rate_init"])
        return mlp(seed, **how)

    monkeypatch.setattr(
        table_07_tdc, "deal_molecules", lambda *_, **how: asked["deal"].append(how) or dealt()
    )
    monkeypatch.setattr(table_07_tdc, "ROUND", ROUND)
    monkeypatch.setattr(table_16, "public_rows", public)
    monkeypatch.setattr(table_16_open, "N_COMPONENTS", 6)
    monkeypatch.setitem(table_16_open.OPEN, "250 components", {"n_components": 7})
    persons = partition(tiny_adult(), rng=np.random.default_rng(0), n_blocks=3, n_tests=30)
    monkeypatch.setattr(table_08_open, "adult", lambda: None)
    monkeypatch.setattr(table_08_open, "partition", lambda *_, **__: persons)
    monkeypatch.setattr(table_08_open, "SIZE", 4)
    monkeypatch.setattr(table_08, "ANCHOR_ROWS", 60)
    monkeypatch.setattr(table_07_images, "dealt", lambda *_: dealt())
    monkeypatch.setitem(table_07_open.ROUND, "n_components", 4)
    monkeypatch.setattr(table_07_open, "mlp", network)
    return asked


@pytest.mark.parametrize(
    ("study", "of", "start", "count"),
    [
        (table_07_splits, table_07_tdc, "{data}/{condition}/", 2 * 3),
        (table_16_open, table_16, "pubchem/diffspan_orth/{a}/", 4 * 3),
        (table_08_open, table_08, "{condition}/", 4),
        (table_07_open, table_07_images, "{data}/", 1 + 4 + 5 * 3),
    ],
)
def test_what_a_table_leaves_open_is_measured_as_it_is_and_held_against_its_numbers(
    asked, study, of, start, count
):
    values, published = {}, printed(of.__name__.rpartition(".")[2])
    for cell in study.STUDY.cells[: 4 if study is table_07_open else 12]:
        for name in study.run(**cell, repeat=0):
            place = start.format(**cell) + name
            if place in published:
                values[key(cell, name)] = [published[place].value - 3, published[place].value]
    assert "".join(study.analysis(values)).count("| 1.5 ") == count
    del values[next(iter(values))]
    assert "".join(study.analysis(values)).count("| 1.5 ") == count - 1
    if study is table_07_splits:
        scaffold = [how.get("by_scaffold", False) for how in asked["deal"][:6]]
        assert scaffold == [False, False, False, False, True, True]
    if study is table_16_open:
        assert asked["public"] == [(a, s) for s in (False, True, False) for a in table_16.SIZES]
    if study is table_07_open:
        assert asked["rates"] == {5e-4, 1e-3, 2e-3}


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


def test_halves_in_turn_have_every_other_feature():
    persons = partition(tiny_adult(), rng=np.random.default_rng(0), n_blocks=3, n_tests=30)
    halves = table_08.in_turn(persons).halves
    assert [list(np.flatnonzero(half)[:3]) for half in halves] == [[0, 2, 4], [1, 3, 5]]
    assert not np.any(halves[0] & halves[1])


def tiny_adult():
    """Make 150 persons of 20 numbers, and a label."""
    rows = np.random.default_rng(7).random((150, 20))
    return Persons(
        rows=rows,
        labels=(rows[:, 0] + rows[:, 1] > 1).astype(int),
        columns=[COLUMNS[0], COLUMNS[7]] * 10,
    )


@pytest.mark.parametrize("condition", ours_weighting.CONDITIONS)
def test_weights_are_1_where_spans_agree_and_change_rows_where_not(condition, monkeypatch):
    monkeypatch.setattr(ours_spans, "deal_molecules", lambda *_, **__: dealt())
    monkeypatch.setattr(table_07_tdc, "ROUND", ROUND)
    found = ours_weighting.run(data="ames", condition=condition, repeat=0)
    assert {f"{method}/roc" for method in ours_weighting.METHODS} <= set(found)
    sent = uploads(dealt(), repeat=0, span_condition=condition, **ROUND)
    rows = {method: sent.aligned(way).rows for method, way in ours_weighting.METHODS.items()}
    lengths = {method: np.linalg.norm(each, axis=0) for method, each in rows.items()}
    weights = lengths["kawakami, weighted"] / lengths["kawakami"]
    np.testing.assert_allclose(rows["kawakami, weighted"], rows["kawakami"] * weights, atol=1e-12)
    one = condition == "samespan_orth"
    assert np.allclose(weights, 1, rtol=0, atol=1e-9) == one
    scaled = lengths["kawakami, feature scaling"]
    assert np.allclose(scaled, scaled[0]) == one
    assert any("dealt out" in name for name in found) != one  # parties see test rows alike


def test_gopp_has_cells_of_its_own_with_the_numbers_of_the_others_cells(monkeypatch):
    monkeypatch.setattr(table_07_tdc, "deal_molecules", lambda *_, **__: dealt())
    monkeypatch.setattr(table_07_tdc, "ROUND", ROUND)
    cell = {"data": "ames", "condition": "diffspan_orth"}
    beside = table_07_tdc.run(**cell, repeat=0)
    own = table_07_tdc.run(**{**cell, "system": "gopp"}, repeat=0)
    assert prefixed(own, "gopp") == {n: v for n, v in beside.items() if n.startswith("gopp/")}
    refusing = Mock(side_effect=UndeterminedFitError("2 of 6 directions", ("party-0",)))
    assert by_gopp(Mock(aligned=refusing), repeat=0) == {"refused": 1.0}
    for study in (table_15, table_16):  # beside the others for every anchor
        assert sum(each.get("system") == "gopp" for each in study.STUDY.cells) == 16


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
