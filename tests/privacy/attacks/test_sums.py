"""What totals of masked sums still give away: figures for the threat model."""

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from cobasis import (
    CategoryFeature,
    Columns,
    NumericFeature,
    RandomFourier,
    numeric_features,
    simulate,
)
from cobasis.features.maps import turn_of
from cobasis.privacy.aggregate import GREEN, RED
from cobasis.protocol.totals import cut, gram, ones_and


def mapped(rows, *, n_waves, seed=0):
    """Rows as a public map has them, which the analyst can make as well."""
    turn = turn_of(
        RandomFourier(n_waves=n_waves, bandwidth=2.0, seed=seed),
        numeric_features(map(str, range(rows.shape[1]))),
    )
    return turn.apply(rows)


def told_apart(rate, *, seed):
    """Area under the curve of who is in a total, by leverage, at so many rows a feature."""
    rows, _ = load_digits(return_X_y=True)
    order, n_waves = np.random.default_rng(seed).permutation(len(rows)), 20
    phi = mapped(rows[order] / 16, n_waves=n_waves, seed=seed)
    n_rows = int(rate * 2 * n_waves)
    inside, outside = phi[:n_rows], phi[n_rows : 2 * n_rows]
    second = inside.T @ inside
    inverse = np.linalg.inv(second + 1e-9 * np.trace(second) * np.eye(len(second)))
    far = [np.einsum("ij,jk,ik->i", each, inverse, each) for each in (outside, inside)]
    return roc_auc_score(np.repeat([1, 0], n_rows), np.concatenate(far))


def test_who_is_in_a_total_shows_by_rows_a_feature():
    found = {
        rate: float(np.mean([told_apart(rate, seed=seed) for seed in range(5)]))
        for rate in (0.5, 2.0, RED, GREEN)
    }
    assert found[0.5] > 0.99
    assert found[2.0] > 0.8
    assert 0.55 < found[RED] < 0.8
    assert found[GREEN] < 0.6


def test_a_row_that_left_between_two_totals_is_read_exactly():
    """The difference rule: no second total over other rows but where sums are aggregates."""
    rows, labels = load_digits(return_X_y=True)
    phi, targets = mapped(rows[:200] / 16, n_waves=50), np.eye(10)[labels[:200]]
    table = ones_and(phi, targets, bits=20)
    upper = np.triu_indices(111)
    both = (table, np.delete(table, 7, 0))
    first, second = (gram([each], width=111, bits=20)[upper] for each in both)
    left = np.zeros((111, 111), dtype=np.int64)
    left[np.triu_indices(111)] = first - second
    assert np.array_equal(left[0], (table[7] * 2**20).astype(np.int64))
    candidates = cut(mapped(rows / 16, n_waves=50), bits=20)
    assert np.argmin(np.abs(candidates - left[0, 1:101] / 2**20).sum(axis=1)) == 7


def test_all_parties_but_one_read_that_ones_sums_whose_rank_is_its_rows():
    rows, labels = load_digits(return_X_y=True)
    shares = {"north": 30, "south": 60, "east": 90}
    dealt, at = {}, 0
    for name, n_rows in shares.items():
        dealt[name] = rows[at : at + n_rows] / 16, labels[at : at + n_rows]
        at += n_rows
    waves = RandomFourier(n_waves=50, bandwidth=2.0)
    done = simulate(dealt, rng=np.random.default_rng(0), release="sums", maps=[waves])
    total, known = done.result.total, np.zeros(())
    for name in ("south", "east"):
        own, told = dealt[name]
        table = ones_and(mapped(own, n_waves=50), np.eye(10)[told], bits=20) / 2**20
        known = known + table.T @ table
    rest = total.grams[0] - known
    assert rest[0, 0] == shares["north"]
    assert np.linalg.matrix_rank(rest[:101, :101], tol=1e-6) == shares["north"]


def test_columns_with_categories_publish_every_two_way_table():
    rng = np.random.default_rng(0)
    features = [
        CategoryFeature(name="ward", values=("icu", "surgery")),
        NumericFeature(name="hiv", low=0.0, high=1.0),
    ]
    wards, hiv = rng.choice(["icu", "surgery"], size=90), np.zeros(90)
    wards[3], hiv[3] = "icu", 1.0
    table, labels = pl.DataFrame({"ward": wards, "hiv": hiv}), rng.integers(2, size=90)
    parts = {name: (table[at::3], labels[at::3]) for at, name in enumerate("abc")}
    made = simulate(parts, rng=rng, release="sums", features=features, maps=[Columns()])
    gram_of = made.result.total.grams[0]
    # hiv runs from -1 to 1, so those on a ward with it are half of the ward and its product
    on_icu = (gram_of[0, 1] + gram_of[1, 3]) / 2
    assert on_icu == np.sum((wards == "icu") & (hiv == 1)) == 1


@pytest.mark.parametrize("flipped", [0.0, 1.0])
def test_a_party_that_lies_shifts_the_model_and_is_not_found(flipped):
    rows, labels = load_digits(return_X_y=True)
    rows, labels = rows / 16, (labels % 2).astype(int)
    parts = {name: (rows[at:900:3], labels[at:900:3]) for at, name in enumerate("abc")}
    own, told = parts["c"]
    parts["c"] = own, np.where(np.arange(len(told)) < flipped * len(told), 1 - told, told)
    waves = RandomFourier(n_waves=50, bandwidth=2.0)
    done = simulate(parts, rng=np.random.default_rng(0), release="sums", maps=[waves])
    score = done.score(rows[900:], labels[900:])["a"]
    assert score > 0.9 if not flipped else score < 0.86
