"""Our studies of bases and of l: what parties see alone, rules on that, and verdicts."""

import numpy as np
import pytest
from experiments.harness.study import key
from experiments.studies import _ours, ours_bases, ours_choosing_l


def test_signs_are_energy_and_agreement_of_halves():
    rng = np.random.default_rng(0)
    strong = rng.normal(size=(200, 2)) * 10
    rows = np.hstack([strong, 0.1 * rng.normal(size=(200, 10))])
    energy, overlap = ours_choosing_l.signs([rows, rows], (2, 5), repeat=0)
    values = np.linalg.svd(rows, compute_uv=False) ** 2
    assert energy[2] == pytest.approx(values[:2].sum() / values.sum())
    assert energy[5] == pytest.approx(values[:5].sum() / values.sum())
    assert overlap[2] > 0.99
    assert overlap[5] < 0.8


def test_rules_take_the_l_that_they_say():
    energy = {10: 0.7, 50: 0.85, 100: 0.97}
    found = ours_choosing_l.rules(energy, {10: 0.9, 50: 0.6, 100: 0.4})
    assert found == {
        "energy 80%": 50,
        "energy 90%": 100,
        "energy 95%": 100,
        "overlap 50%": 50,
        "overlap 70%": 10,
        "l = 50": 50,
        "l = 100": 100,
        "largest l": 100,
    }
    none = ours_choosing_l.rules(dict.fromkeys(energy, 0.1), dict.fromkeys(energy, 0.1))
    assert (none["energy 80%"], none["overlap 50%"]) == (100, 10)


def values_of_bases(lower):
    """Made-up numbers of the study: pooled rows at 90, every basis below by its own."""
    found = {}
    for cell in ours_bases.STUDY.cells:
        names = [
            f"{model}, l={size}"
            for model in ours_bases.MODELS
            for size in _ours.sizes(cell["data"])
        ]
        pooled = cell["basis"] == "pooled"
        for name in [*names, *(["linear, raw", "rff, raw"] if pooled else [])]:
            found[key(cell, name)] = [90.0 - (0 if pooled else lower(cell)), 90.0]
    return found


def test_the_verdict_names_the_settings_that_are_near_everywhere():
    def lower(cell):
        if cell["basis"] == "svd" and cell["data"] == "hiv":
            return 10.0
        return 3.0 if cell["basis"] == "consensus" else 5.0

    *_, verdict, sure = ours_bases.analysis(values_of_bases(lower))
    assert " consensus, linear, l = 50; " in verdict
    assert "svd" not in verdict
    assert "haar" not in verdict
    assert "svd" not in sure
    *_, nobody, none_sure = ours_bases.analysis(values_of_bases(lambda _: 30.0))
    assert nobody.endswith("by the means: none.")
    assert none_sure == "With every interval: none."
    *_, everybody = ours_bases.analysis(values_of_bases(lambda _: 0.0))
    assert " consensus, linear, l = 50; " in everybody


def test_a_setting_that_did_not_run_everywhere_is_not_judged():
    values = values_of_bases(lambda _: 0.0)
    del values["hiv/alike/svd/linear, l=100"]
    found = ours_bases.settings_of(values)
    assert [size for *place, size in found if place == ["svd", "linear"]] == [50, 200]
    values["ames/alike/svd/linear, l=200"] = [np.nan] * 2  # the certificate stopped them
    assert "svd, linear, l = 200" not in {s.name for s in ours_bases.judged_settings(values)}


def test_the_setting_that_is_nearest_stands_first():
    near = {"consensus": 1.0, "weighted_consensus": 0.5}
    found = ours_bases.judged_settings(values_of_bases(lambda cell: near.get(cell["basis"], 7.0)))
    assert found[0].name.startswith("weighted_consensus, ")
    assert found[0].most.mean == pytest.approx(0.25)
    assert found[-1].most.mean > 2


def test_the_rules_table_names_where_most_is_lost():
    values = {
        "ames/alike/lost by l = 50": [1.0, 3.0],
        "hiv/alike/lost by l = 50": [0.0, 0.0],
        "ames/alike/score, l=50": [80.0, 80.0],
        "ames/alike/lost by energy 80%": [1.0, 1.0],
        "hiv/alike/lost by energy 80%": [4.0, 4.0],
    }
    *_, row, _, _, verdict = ours_choosing_l.analysis(values)
    assert row.startswith("| l = 50 | 2")
    assert row.endswith("| ames/alike | 1.0 |")
    assert "**l = 50**: no rule" in verdict


def test_days_take_the_largest_l_that_the_basis_has_and_pooled_rows_the_same():
    values = values_of_bases(lambda _: 1.0)
    at_24 = "diabetes130/by site/pooled/linear, l=24"
    values[at_24] = [91.0, 91.0]
    for basis, below in (("consensus", [2.0, 1.0]), ("svd", [1.0, 0.0])):
        found = ours_bases.gaps(values, basis=basis, model="linear", size=200)
        assert found["diabetes130/by site"].tolist() == below
    networks = {
        size for size in (10, 20, 24) if "mlp" in ours_bases._models("diabetes130", "pooled", size)
    }
    assert networks == {20, 24}
    assert "mlp" not in ours_bases._models("mnist", "pooled", 100)
