"""Attributions add up, are Shapley's, are the same at all parties, and need a common reference."""

from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import polars as pl
import pytest

from cobasis import CategoryFeature, NumericFeature, OptionError, Outcome, ShapeError, simulate
from cobasis.features.contract import Interaction
from cobasis.statistics.attributions import attributions, surrogate
from models.chains import quicken

WARD = CategoryFeature(name="ward", values=("icu", "surgery", "other"), base="icu")
FEATURES = (NumericFeature(name="age", centre=60.0, scale=15.0), WARD, NumericFeature(name="crp"))


def people(at, n_rows=80):
    """People of one party, who are older where its number is higher."""
    rng = np.random.default_rng(at)
    age, crp, ward = rng.normal(50 + 10 * at, 15, n_rows), *rng.normal(size=(2, n_rows))
    words = np.array(WARD.values)[np.digitize(ward, [-0.5, 0.5])]
    return pl.DataFrame({"age": age, "ward": words, "crp": crp}), (age - 60) / 15 * (1 + crp) + ward


def classes(hidden):
    return np.array(["dead", "ill", "well"])[np.digitize(hidden, [-99, 0.3])]


@cache
def played(model, labels=classes, **options):
    rows = {name: people(at) for at, name in enumerate(("north", "south", "east"))}
    rows = {name: (table, labels(hidden)) for name, (table, hidden) in rows.items()}
    given = {"features": FEATURES, "model": model} | options
    with pytest.MonkeyPatch.context() as patched:
        quicken(model, patched)
        return simulate(rows, rng=np.random.default_rng(0), **given).parties


@pytest.mark.parametrize("model", ["logistic", "ridge", "mlp", "boosted_trees", "rff"])
def test_they_add_up_and_are_the_same_at_all_parties(model):
    parties, (new, _) = played(model, n_components=4), people(9, 6)
    found = {name: party.attributions(new) for name, party in parties.items()}
    for name, each in found.items():
        shares = parties[name].model.scores(parties[name].transform(new), method="predict_proba")
        told = np.log(shares[:, -1] / shares[:, 0])
        np.testing.assert_allclose(each.values.sum(axis=1) + each.base, told, atol=1e-8)
        np.testing.assert_allclose(each.values, found["north"].values, atol=1e-8)
        assert (each.names, each.explained) == (("age", "ward", "crp"), "log-odds of class well")
    assert "age " in each.summary()
    other = parties["east"].attributions(new, of="ill")
    np.testing.assert_allclose(other.values, -each.values, atol=1e-8)
    with pytest.raises(OptionError, match="no class 'no' can be explained, of ill, well"):
        parties["east"].attributions(new, of="no")


def test_a_linear_model_is_explained_by_its_coefficients():
    def labels(hidden):
        return pl.DataFrame({"value": np.exp(hidden / 9), "died": hidden < 1})

    told = {"task": "survival", "outcome": Outcome(event="died")}
    party, (new, _) = played("cox", labels, **told)["south"], people(9, 30)
    found, beta = party.attributions(new), {"ward=icu": 0.0}
    beta |= {each.name: each.estimate for each in party.coefficients().lines}
    assert found.explained == "log hazard"  # the reference's mean is the agreed centre
    np.testing.assert_allclose(found.values[:, 0], beta["age"] * (new["age"] - 60), atol=1e-10)
    words = [beta[f"ward={word}"] for word in new["ward"]]
    np.testing.assert_allclose(np.diff(found.values[:, 1]), np.diff(words), atol=1e-10)


def test_a_line_that_stands_for_a_linear_model_is_its_table_of_coefficients():
    rng, (rows, _) = np.random.default_rng(0), people(1, 300)
    age, crp = rows["age"].to_numpy(), rows["crp"].to_numpy()
    y = np.sin(age / 9) + 0.3 * crp + 0.02 * age * crp + rng.normal(size=300)
    features = [
        NumericFeature(name="age", centre=60.0, scale=12.0, knots=(40.0, 55.0, 80.0)),
        WARD,
        NumericFeature(name="crp", centre=8.0, scale=3.0),
        Interaction(of=("age", "crp")),
    ]
    parts = {name: (rows[at::3], y[at::3]) for at, name in enumerate(("north", "south", "east"))}
    done = simulate(parts, rng=rng, task="regression", model="ols", features=features)
    party = done.parties["south"]
    found = party.surrogate(rows)
    assert found.fidelity == pytest.approx(1)
    beta = {each.name: each.estimate for each in party.coefficients().lines}
    told = {name: beta[name] for name, _ in found.lines}
    assert dict(found.lines) == pytest.approx(told, rel=1e-4)
    assert len(told) == 7


def test_a_line_says_how_far_it_is_from_a_model_on_rows_it_was_not_fitted_to():
    parties, (rows, _) = played("rff", n_components=4), people(1, 400)
    found = parties["south"].surrogate(rows)
    assert 0.3 < found.fidelity < 0.95
    noise, table = np.random.default_rng(0).normal(size=(2, 40, 1))
    told = {"features": [NumericFeature(name="x")], "explained": "x"}
    assert surrogate(noise[:, 0], table, **told).fidelity < 0.2  # of rows it was fitted to, more
    with pytest.raises(ShapeError, match="20 rows or more, not 19"):
        parties["south"].surrogate(rows[:19])


@pytest.mark.parametrize("m", [1, 4, 6])
def test_up_to_twelve_columns_they_are_exactly_shapleys(m):
    rng = np.random.default_rng(m)
    row, background = rng.normal(size=m), rng.normal(size=(7, m))

    def predict(some):
        return np.exp(some.sum(axis=1)) + np.sin(some).sum(axis=1) ** 2

    def worth(known):
        return predict(np.where(np.isin(range(m), known), row, background)).mean()

    values, _ = attributions(
        predict, row[np.newaxis], background=background, groups=np.arange(m), seed=bytes(32)
    )
    for place in range(m):
        others = [each for each in range(m) if each != place]
        every = [one for size in range(m) for one in combinations(others, size)]
        gains = [(worth((*one, place)) - worth(one)) / comb(m - 1, len(one)) for one in every]
        assert values[0, place] == pytest.approx(sum(gains) / m)


def test_of_more_columns_a_sample_is_exact_for_sums_and_near_for_products():
    rows = np.random.default_rng(0).normal(size=(3, 20))
    told = {"background": np.zeros((1, 20)), "groups": np.arange(20), "seed": bytes(32)}
    found, base = attributions(lambda some: some @ np.arange(20) + 3, rows, **told)
    assert found == pytest.approx(rows * np.arange(20))
    assert base == pytest.approx(3)
    found, _ = attributions(lambda some: some[:, :3].prod(axis=1), rows, **told)
    assert found[:, 0] == pytest.approx(rows[:, :3].prod(axis=1) / 3, abs=0.03)
