"""The molecule studies, on made-up molecules and tables."""

from unittest.mock import Mock

import numpy as np
import pytest
from experiments.data import molecules, sources
from experiments.harness.statistics import first_of_two, one_way
from experiments.harness.study import key, printed
from experiments.harness.systems import Dealt, generator
from experiments.harness.uploads import UNDETERMINED, AsPrinted, by_each, uploads
from experiments.studies import ames, ours_spans, table_07_tdc, table_16, v2_table_2

from cobasis import ODC, align
from cobasis.errors import UndeterminedFitError

STUDIES = {
    each.__name__.split(".")[-1]: each for each in (table_07_tdc, table_16, v2_table_2, ames)
}
SMILES = ("CCO", "c1ccccc1", "not a molecule", "CC(=O)O", "CCN", "CCCl", "C1CC1", "OCCO", "CCS")
LABELS = (0, 1, 1, 0, 1, 0, 1, 0, 1)
PARTS = ("train", "train", "test", "valid", "test", "train", "valid", "train", "train")


@pytest.fixture
def task(placed, tmp_path, monkeypatch):
    """Put a task of nine molecules, one of them no molecule, where COBASIS_DATA says."""
    pairs = list(zip(SMILES, LABELS, strict=True))
    table = ["smiles,active", *(f"{text},{label}" for text, label in pairs), "CCCCC,"]
    numbered = enumerate(zip(LABELS, PARTS, strict=True))
    split = ["dataset,row,y,split", *(f"tiny,{row},{y},{part}" for row, (y, part) in numbered)]
    monkeypatch.setattr(molecules, "TINY", molecules.TASKS["hiv"].source, raising=False)
    placed(molecules, "TINY", "\n".join(table).encode())
    placed(molecules, "SPLIT", "\n".join(split).encode())
    given = molecules.Task(source=molecules.TINY, smiles="smiles", label="active", separator=",")
    monkeypatch.setattr(sources, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(molecules, "TASKS", {"tiny": given})
    yield "tiny"
    molecules.molecules.cache_clear()
    molecules._by_scaffold.cache_clear()


def made_up(**_):
    """Deal 120 random sets of bits with a label that some of them tell."""
    rng = np.random.default_rng(5)
    bits = (rng.random((160, 40)) < 0.4).astype(np.uint8)
    labels = (bits[:, :9].sum(1) > 3).astype(int)
    parties = molecules.by_label(bits[:120], labels[:120], rng=rng)
    return Dealt(parties=parties, test_rows=bits[120:] * 1.0, test_labels=labels[120:])


def tiny(monkeypatch, module):
    """Let a study deal made-up rows, with few components and anchor rows."""
    monkeypatch.setattr(table_07_tdc, "N_COMPONENTS", 6)
    for each in (module, table_07_tdc):
        monkeypatch.setattr(each, "deal_molecules", lambda _, **how: made_up(**how), raising=False)
    for name, value in {"N_COMPONENTS": 6, "N_ANCHOR_ROWS": 90, "UNIFORM_ROWS": 90}.items():
        if hasattr(module, name):
            monkeypatch.setattr(module, name, value)
    options = {"anchor": "uniform", "n_anchor_rows": 90, "n_components": 6}
    monkeypatch.setattr(table_07_tdc, "ROUND", options)
    rows = (np.random.default_rng(6).random((200, 40)) < 0.4) * 1.0
    if hasattr(module, "public_rows"):
        monkeypatch.setattr(module, "public_rows", lambda count, **_: rows[:count])


def test_molecules_that_do_not_parse_are_dropped_and_counted(task):
    found = molecules.molecules(task)
    kept = [index for index in range(len(SMILES)) if index != 2]
    assert found.n_dropped == 1
    assert found.labels.tolist() == [LABELS[index] for index in kept]
    assert found.part.tolist() == [PARTS[index] for index in kept]
    assert found.smiles == [SMILES[index] for index in kept]
    assert found.bits.shape == (8, 2048)
    assert found.bits.any(axis=1).all()


def test_fingerprints_are_read_from_the_cache_the_second_time(task, monkeypatch):
    first = molecules.molecules(task).bits
    molecules.molecules.cache_clear()
    monkeypatch.setattr(molecules, "fingerprints", lambda _: pytest.fail("made anew"))
    np.testing.assert_array_equal(molecules.molecules(task).bits, first)


def test_a_split_of_other_rows_is_refused(task, placed):
    other = "dataset,row,y,split\n" + "\n".join(f"tiny,{row},0,train" for row in range(9))
    placed(molecules, "SPLIT", other.encode())
    with pytest.raises(ValueError, match="labels differ"):
        molecules.molecules(task)


def test_training_and_validation_rows_are_dealt_and_the_given_test_part_is_kept(task):
    dealt = molecules.deal_molecules(task, rng=np.random.default_rng(0))
    assert sum(len(labels) for _, labels in dealt.parties.values()) == 7
    assert dealt.test_labels.tolist() == [1]
    fewer = molecules.deal_molecules(task, rng=np.random.default_rng(0), validation=False)
    assert sum(len(labels) for _, labels in fewer.parties.values()) == 5
    assert fewer.test_labels.tolist() == [1]


def test_a_scaffold_split_is_dealt_and_tested_where_it_is_asked_for(task):
    dealt = molecules.deal_molecules(task, rng=np.random.default_rng(0), by_scaffold=True)
    held = [rows for rows, _ in dealt.parties.values() if len(rows)]
    rings = molecules.molecules(task).bits[[1, 5]]  # five of eight may be trained on: two rings
    assert sorted(map(tuple, np.vstack(held))) == sorted(map(tuple, rings))
    assert len(dealt.test_labels) == 6  # and all that have none are one group of six


def test_two_parties_hold_either_label_and_every_row_once():
    bits = np.eye(31, dtype=np.uint8)
    labels = np.arange(31) % 3 // 2
    parties = molecules.by_label(bits, labels, rng=np.random.default_rng(1))
    assert [sorted(set(each)) for _, each in parties.values()] == [[0], [0], [1], [1]]
    assert [len(each) for _, each in parties.values()] == [11, 10, 5, 5]
    held = np.vstack([rows for rows, _ in parties.values()])
    assert sorted(held.argmax(1)) == list(range(31))


class Refusing(ODC):
    """ODC that finds every fit undetermined."""

    fits = Mock(side_effect=UndeterminedFitError("2 of 6 directions", ("label-0-0",)))


def test_odc_that_is_refused_is_measured_as_printed_and_said_and_nothing_else_is():
    options = {"n_components": 6, "anchor": "uniform", "n_anchor_rows": 90}
    sent = uploads(made_up(), repeat=3, span_condition="diffspan_orth", **options)
    refused = by_each(sent, {"odc": Refusing()}, repeat=3)
    assert refused.pop(f"odc {UNDETERMINED}") == 1.0
    assert refused == by_each(sent, {"odc": AsPrinted()}, repeat=3)
    with pytest.raises(UndeterminedFitError):
        by_each(sent, {"whitened": Refusing()}, repeat=3)


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("table_07_tdc", {"data": "ames", "condition": "any"}),
        ("table_07_tdc", {"data": "hiv", "condition": "samespan_orth"}),
        ("table_07_tdc", {"data": "cyp2d6_veith", "condition": "diffspan"}),
        ("table_07_tdc", {"data": "ames", "condition": "samespan", "system": "gopp"}),
        ("table_16", {"anchor": "pubchem", "condition": "diffspan_orth", "a": 512}),
        ("v2_table_2", {"rows": "dealt", "data": "hiv"}),
        ("v2_table_2", {"rows": "dealt, ours", "data": "hiv"}),
        ("v2_table_2", {"rows": "pooled", "data": "hiv"}),
        ("ames", {"system": "odc, consensus basis"}),
        ("ames", {"system": "pooled, raw"}),
    ],
)
def test_a_cell_measures_every_number_that_the_paper_prints_for_it(name, cell, monkeypatch):
    module = STUDIES[name]
    tiny(monkeypatch, module)
    found = module.run(**cell, repeat=0)
    assert all(0 <= value <= 100 for value in found.values())
    measured = {key(cell, value) for value in found}
    assert measured
    assert {place for place in printed(name) if place.startswith(key(cell, ""))} <= measured


def test_standard_deviations_over_ten_runs_become_intervals():
    assert printed("v2_table_2")["dealt/ames/imakura/roc"].value == 79.3
    # 1.2 points over ten runs: 1.2 * t(0.975, 9) / sqrt(10)
    assert printed("v2_table_2")["dealt/ames/imakura/roc"].margin == pytest.approx(0.86)
    assert printed("v2_table_2")["dealt/ames/gopp/seconds"].margin == pytest.approx(2.184)


def figures(repeats):
    """Make up repeats in which size matters to Imakura, and the source to nobody."""
    rng = np.random.default_rng(8)
    values = {}
    for anchor in table_16.ANCHORS:
        for level, size in enumerate(table_16.SIZES):
            for method in ("imakura", "odc"):
                effect = 5.0 * level if method == "imakura" else 0.0
                place = key(
                    {"anchor": anchor, "condition": "samespan_orth", "a": size}, f"{method}/roc"
                )
                values[place] = (80 + effect + rng.normal(size=repeats)).tolist()
    return values


def row(lines, name):
    """Return the figures of one row, as text."""
    [found] = [line for line in lines if line.startswith(f"| {name} |")]
    return [each.strip() for each in found.split("|")[2:-1]]


def test_the_analysis_sets_our_variances_beside_the_papers():
    values = figures(12)
    lines = table_16.analysis(values)
    groups = {
        (anchor, method): [
            values[
                key({"anchor": anchor, "condition": "samespan_orth", "a": size}, f"{method}/roc")
            ]
            for size in table_16.SIZES
        ]
        for anchor in table_16.ANCHORS
        for method in ("imakura", "odc")
    }
    ours = one_way(groups["uniform", "imakura"])
    assert ours.p < 1e-10
    said = [f"{ours.f:.2f}", f"{ours.p:.3g}", f"{ours.effect:.2f}"]
    assert row(lines, "uniform/samespan_orth/imakura/roc") == [*said, "91.55", "5.08e-45", "0.83"]
    ours = first_of_two([groups["uniform", "odc"], groups["pubchem", "odc"]])
    assert ours.p > 0.01
    said = [f"{ours.f:.2f}", f"{ours.p:.3g}", f"{ours.effect:.2f}"]
    assert row(lines, "samespan_orth/odc/roc") == [*said, "0.03", "0.868", "0.01"]

    values = {
        place: each[:4] if place.startswith("pubchem") else each for place, each in values.items()
    }
    shorter = {place: each[:4] for place, each in values.items()}
    name = "samespan_orth/imakura/roc"  # sources are compared over the shorter
    assert row(table_16.analysis(values), name) == row(table_16.analysis(shorter), name)
    lines = table_16.analysis(figures(1))
    assert not any(line.startswith("| uniform/") for line in lines)
    assert any("two repeats" in line for line in lines)


def test_a_clock_does_not_change_an_alignment_and_counts_it():
    rng = np.random.default_rng(4)
    images = {name: rng.normal(size=(60, 9)) for name in ("north", "south", "west")}
    timed = v2_table_2.Timed(aligner=ODC())
    found, plain = align(timed, images), align(ODC(), images)
    for name, turn in plain.changes_of_basis.items():
        np.testing.assert_array_equal(found.changes_of_basis[name], turn)
    first = timed.seconds
    assert first > 0
    timed.fits(images, found.target)
    assert timed.seconds > first


@pytest.mark.parametrize("ending", ["", "_orth"])
def test_whitened_odc_under_an_isometric_anchor_has_the_rows_and_bases_of_table_7(
    ending, monkeypatch
):
    """Where bases are orthonormal it is ODC itself, up to a rotation that all rows share."""
    tiny(monkeypatch, ours_spans)
    cell = {"data": "ames", "condition": f"samespan{ending}"}
    found = ours_spans.run(**cell, repeat=1)
    assert {"whitened/roc", "whitened/pr"} <= set(found)
    dealt = ours_spans.deal_molecules("ames", rng=generator(1))
    options = {**table_07_tdc.ROUND, "anchor": "isometric", "span_condition": cell["condition"]}
    rows = uploads(dealt, repeat=1, **options).aligned(ours_spans.OURS["whitened"]).rows
    odc = uploads(dealt, repeat=1, **options).aligned(AsPrinted()).rows
    same = np.allclose(rows @ rows.T, odc @ odc.T, rtol=0, atol=1e-8)
    assert same == (ending == "_orth")
