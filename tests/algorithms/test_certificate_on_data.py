from functools import cache, partial

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from cobasis import simulate

RNG = np.random.default_rng


@cache
def table(name):
    """Rows on an agreed scale, and labels to train on and to deal by."""
    if name == "digits":
        rows, labels = load_digits(return_X_y=True)
        return (rows - 8) / 16, labels
    rows, labels = load_breast_cancer(return_X_y=True)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0), labels


def alike(name, *, n_parties, seed, by_label=False, **cut):
    """Rows as they are drawn, or in the order of their labels: most parties hold one or two."""
    rows, labels = table(name)
    order = RNG(seed).permutation(len(rows))
    if by_label:
        order = order[np.argsort(labels[order], kind="stable")]
    parts = [part[: cut.get("size")] for part in np.array_split(order, n_parties)]
    return {f"p{i}": (rows[part], labels[part]) for i, part in enumerate(parts)}


by_label = partial(alike, by_label=True)


def by_site(name, *, seed, **options):
    rng = RNG(seed + 100)
    return {
        party: (rows * rng.uniform(0.5, 2, rows.shape[1]) + rng.normal(0, 0.5, rows.shape[1]), y)
        for party, (rows, y) in alike(name, seed=seed, **options).items()
    }


@pytest.mark.parametrize("deal", [alike, by_label, by_site], ids=["alike", "label", "site"])
@pytest.mark.parametrize("basis", ["svd", "pca", "haar", "consensus"])
@pytest.mark.parametrize(("name", "n_parties", "size"), [("cancer", 5, 30), ("digits", 10, 2)])
def test_honest_parties_are_never_stopped(name, n_parties, size, basis, deal):
    rows = deal(name, n_parties=n_parties, seed=0)
    options = {"n_components": size, "basis": basis, "task": "representation"}
    done = simulate(rows, rng=RNG(0), **options)
    assert tuple(done.analyst.certificate.parties) == tuple(rows)


def medians(deal, name, *, shuffled, **options):
    """The correlations of three rounds: of everybody's median, or of one party's, shuffled."""
    found = []
    for seed in range(3):
        rows = dict(deal(name, seed=seed, **options))
        if shuffled:
            table, labels = rows["p1"]
            rows["p1"] = table[:, RNG(seed).permutation(table.shape[1])], labels
        done = simulate(rows, rng=RNG(seed), n_components=16, task="representation")
        seen = {p: each.correlation for p, each in done.analyst.certificate.parties.items()}
        found.append(seen["p1"] if shuffled else float(np.median(list(seen.values()))))
    return found


@pytest.mark.parametrize(
    ("deal", "name", "n_parties", "honest", "shuffled"),
    [
        (alike, "digits", 10, 0.98, 0.08),
        (by_label, "digits", 10, 0.57, 0.06),
        (alike, "cancer", 5, 0.93, 0.51),
    ],
)
def test_the_figures_are_those_that_were_measured(deal, name, n_parties, honest, shuffled):
    """A shuffled party usually lies above three spreads too (.066 and .139): it accuses nobody."""
    options = {"n_parties": n_parties, "size": 100}
    for wrong, wanted, slack in ((False, honest, 0.05), (True, shuffled, 0.06)):
        found = np.median(medians(deal, name, shuffled=wrong, **options))
        assert found == pytest.approx(wanted, abs=slack)


def test_under_a_common_basis_a_wrong_column_order_passes():
    """Nobody can see it in spans: they are equal, whatever the columns mean."""
    rows = alike("cancer", n_parties=5, seed=0)
    table, labels = rows["p1"]
    rows = {**rows, "p1": (table[:, ::-1], labels)}
    done = simulate(rows, rng=RNG(0), n_components=10, basis="haar", task="representation")
    found = done.analyst.certificate.parties["p1"]
    assert found.residual < 1e-12
    assert found.smallest_cosine == pytest.approx(1)
