from dataclasses import replace

import numpy as np
import pytest
from experiments.data import molecules
from experiments.harness.study import key, load, printed
from experiments.harness.systems import Dealt
from experiments.studies import ames, ours_spans, table_07_tdc, table_16, v2_table_2

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


@pytest.fixture
def small(monkeypatch):
    def deal(_, *, repeat, **__):
        return replace(made_up(repeat), metrics=molecules.METRICS)

    def public(*_, **__):
        return (np.random.default_rng(6).random((90, 40)) < 0.4) * 1.0

    for module in (table_07_tdc, v2_table_2, ames, ours_spans):
        monkeypatch.setattr(module, "deal_molecules", deal)
    for module in (table_07_tdc, v2_table_2, ames, ours_spans, table_16):
        monkeypatch.setattr(module, "N_COMPONENTS", 6, raising=False)
    for module in (table_16, v2_table_2):
        monkeypatch.setattr(module, "public_rows", public)
    monkeypatch.setattr(table_07_tdc, "ROUND", ROUND)
    monkeypatch.setattr(ames, "UNIFORM_ROWS", 90)


@pytest.mark.usefixtures("small")
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
