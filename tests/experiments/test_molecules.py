"""The molecule studies, on made-up molecules and tables, and what Tables 7, 8 and 16 leave open."""

from dataclasses import replace

import numpy as np
import pytest
from experiments.data import molecules
from experiments.data.adult import COLUMNS, Persons, partition
from experiments.harness.models import mlp
from experiments.harness.study import key, load, printed
from experiments.harness.systems import Dealt
from experiments.studies import (
    ames,
    ours_spans,
    table_07_images,
    table_07_open,
    table_07_tdc,
    table_08,
    table_08_open,
    table_16,
    table_16_open,
    v2_table_2,
)

SMILES = ("CCO", "c1ccccc1", "not a molecule", "CC(=O)O", "CCN", "CCCl", "C1CC1", "OCCO", "CCS")
LABELS = (0, 1, 1, 0, 1, 0, 1, 0, 1)
PARTS = ("train", "train", "test", "valid", "test", "train", "valid", "train", "train")
ROUND = {"anchor": "uniform", "n_anchor_rows": 90, "n_components": 6}


@pytest.fixture
def task(placed, monkeypatch):
    """Put a task of nine molecules, one of them no molecule, where COBASIS_DATA says."""
    pairs = list(zip(SMILES, LABELS, strict=True))
    table = ["smiles,active", *(f"{text},{label}" for text, label in pairs), "CCCCC,"]
    numbered = enumerate(zip(LABELS, PARTS, strict=True))
    split = ["dataset,row,y,split", *(f"tiny,{row},{y},{part}" for row, (y, part) in numbered)]
    monkeypatch.setattr(molecules, "TINY", molecules.TASKS["hiv"].source, raising=False)
    placed(molecules, "TINY", "\n".join(table).encode())
    placed(molecules, "SPLIT", "\n".join(split).encode())
    given = molecules.Task(source=molecules.TINY, smiles="smiles", label="active", separator=",")
    monkeypatch.setattr(molecules, "TASKS", {"tiny": given})
    yield "tiny"
    molecules.molecules.cache_clear()


def test_molecules_that_do_not_parse_are_dropped_and_a_split_of_other_rows_is_refused(task, placed):
    found = molecules.molecules(task)
    kept = [index for index in range(len(SMILES)) if index != 2]
    assert found.n_dropped == 1
    for told, whole in ((found.labels, LABELS), (found.part, PARTS), (found.smiles, SMILES)):
        assert list(told) == [whole[index] for index in kept]
    assert found.bits.shape == (8, 2048)
    assert found.bits.any(axis=1).all()
    molecules.molecules.cache_clear()
    other = "dataset,row,y,split\n" + "\n".join(f"tiny,{row},0,train" for row in range(9))
    placed(molecules, "SPLIT", other.encode())
    molecules.molecules.cache_clear()
    with pytest.raises(ValueError, match="labels differ"):
        molecules.molecules(task)


@pytest.mark.parametrize(
    ("how", "held", "tests"),
    [({}, 7, [1]), ({"validation": False}, 5, [1]), ({"by_scaffold": True}, 2, [0, 0, 0, 0, 1, 1])],
)
def test_the_given_parts_are_dealt_or_those_of_the_scaffold_split(task, how, held, tests):
    """By scaffold five of eight may be trained on: two rings, for no ring is a group of six."""
    dealt = molecules.deal_molecules(task, repeat=0, **how)
    assert sum(len(labels) for _, labels in dealt.parties.values()) == held
    assert sorted(dealt.test_labels) == sorted(tests)


def made_up(repeat=0):
    rng = np.random.default_rng(5)
    bits = (rng.random((180, 40)) < 0.4) * 1.0
    labels = (bits[:, :9].sum(1) > 3).astype(int)
    parties = {f"party-{i}": (bits[i:144:4], labels[i:144:4]) for i in range(4)}
    return Dealt(parties=parties, test_rows=bits[144:], test_labels=labels[144:], repeat=repeat)


def tiny_adult():
    rows = np.random.default_rng(7).random((150, 20))
    labels = (rows[:, 0] + rows[:, 1] > 1).astype(int)
    persons = Persons(rows=rows, labels=labels, columns=[COLUMNS[0], COLUMNS[7]] * 10)
    return partition(persons, repeat=0, n_blocks=3, n_tests=30)


@pytest.fixture
def asked(monkeypatch):
    asked = []

    def deal(_, *, repeat, **__):
        return replace(made_up(repeat), metrics=molecules.METRICS)

    def public(count, *, smaller=False, **_):
        asked.append((count, smaller))
        return (np.random.default_rng(6).random((90, 40)) < 0.4) * 1.0

    def network(seed, **how):
        asked.append(how["learning_rate_init"])
        return mlp(seed, **how)

    for module in (table_07_tdc, v2_table_2, ames, ours_spans):
        monkeypatch.setattr(module, "deal_molecules", deal)
        monkeypatch.setattr(module, "N_COMPONENTS", 6, raising=False)
    for module in (table_16, v2_table_2):
        monkeypatch.setattr(module, "public_rows", public)
    for module in (table_16, table_16_open):
        monkeypatch.setattr(module, "N_COMPONENTS", 6)
    monkeypatch.setattr(table_07_tdc, "ROUND", ROUND)
    monkeypatch.setattr(ames, "UNIFORM_ROWS", 90)
    monkeypatch.setitem(table_16_open.OPEN, "250 components", {"n_components": 7})
    monkeypatch.setattr(table_08_open, "adult", lambda: None)
    monkeypatch.setattr(table_08_open, "partition", lambda *_, **__: tiny_adult())
    monkeypatch.setattr(table_08_open, "SIZE", 4)
    monkeypatch.setattr(table_08, "ANCHOR_ROWS", 60)
    monkeypatch.setattr(table_07_images, "dealt", lambda _, repeat: made_up(repeat))
    monkeypatch.setitem(table_07_open.ROUND, "n_components", 4)
    monkeypatch.setattr(table_07_open, "mlp", network)
    return asked


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("table_07_tdc", {"data": "hiv", "condition": "samespan_orth"}),
        ("table_07_tdc", {"data": "ames", "condition": "samespan", "system": "gopp"}),
        ("table_16", {"anchor": "pubchem", "condition": "diffspan_orth", "a": 512}),
        ("v2_table_2", {"rows": "dealt", "data": "hiv"}),
        ("ames", {"system": "odc, consensus basis"}),
        ("ours_spans", {"data": "ames", "condition": "samespan"}),
        ("ours_weighting", {"data": "ames", "condition": "samespan_orth"}),
    ],
)
def test_a_cell_measures_every_number_that_the_paper_prints_for_it(name, cell):
    found = load(name).run(**cell, repeat=0)
    assert all(0 <= value <= 100 for value in found.values())
    measured = {key(cell, value) for value in found}
    assert measured
    assert {place for place in printed(name) if place.startswith(key(cell, ""))} <= measured


@pytest.mark.parametrize(
    ("name", "place", "cells", "count"),
    [
        ("table_07_splits", "table_07_tdc {data}/{condition}/", slice(6), 3),
        ("table_16_open", "table_16 pubchem/diffspan_orth/{a}/", slice(None, None, 4), 3),
        ("table_08_open", "table_08 {condition}/", slice(1), 1),
        ("table_07_open", "table_07_images {data}/", slice(4), 1 + 4 + 5 * 3),
    ],
)
def test_what_a_table_leaves_open_is_measured_as_it_is_and_held_against_its_numbers(
    asked, name, place, cells, count
):
    values, study, (of, start) = {}, load(name), place.split()
    for cell in study.cells[cells]:
        for value in study.run(**cell, repeat=0):
            if theirs := printed(of).get(start.format(**cell) + value):
                values[key(cell, value)] = [theirs.value - 3, theirs.value]
    assert "".join(study.analysis(values)).count("| 1.5 ") == count
    del values[next(iter(values))]
    assert "".join(study.analysis(values)).count("| 1.5 ") == count - 1
    if name == "table_16_open":
        assert asked == [(512, False), (512, True), (512, False)]
    if name == "table_07_open":
        assert {*asked} == {5e-4, 1e-3, 2e-3}
