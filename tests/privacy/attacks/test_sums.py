"""What totals of masked sums still give away: figures for the threat model."""

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from cobasis import Columns, NumericFeature, RandomFourier, numeric_features, simulate
from cobasis.features.contract import CategoryFeature
from cobasis.features.maps import turn_of
from cobasis.privacy.aggregate import GREEN, MORE, RED, light_of, rows_asked
from cobasis.protocol.totals import cut, gram, ones_and

ROWS, LABELS = load_digits(return_X_y=True)
ROWS, RNG = ROWS / 16, np.random.default_rng
WAVES = RandomFourier(n_waves=50, bandwidth=2.0)


def mapped(rows, waves=WAVES):
    """Rows as a public map has them, which the analyst can make as well."""
    return turn_of(waves, numeric_features(map(str, range(64)))).apply(rows)


def played(parts):
    return simulate(parts, rng=RNG(0), release="sums", maps=[WAVES])


def told_apart(rate, *, seed, bandwidth=2.0, n_waves=20):
    """Area under the curve of who is in a total, by leverage, at so many rows a feature."""
    waves = RandomFourier(n_waves=n_waves, bandwidth=bandwidth, seed=seed)
    n_rows = int(rate * 2 * n_waves)
    phi = mapped(ROWS[RNG(seed).permutation(len(ROWS))], waves)
    inside, outside = phi[:n_rows], phi[n_rows : 2 * n_rows]
    second = inside.T @ inside
    inverse = np.linalg.inv(second + 1e-9 * np.trace(second) * np.eye(len(second)))
    far = [np.einsum("ij,jk,ik->i", each, inverse, each) for each in (outside, inside)]
    return roc_auc_score(np.repeat([1, 0], n_rows), np.concatenate(far))


def test_who_is_in_a_total_shows_by_rows_a_feature():
    for rate, least, most in ((0.5, 0.99, 1), (2.0, 0.8, 1), (RED, 0.55, 0.8), (GREEN, 0.45, 0.6)):
        assert least < np.mean([told_apart(rate, seed=seed) for seed in range(5)]) <= most


@pytest.mark.parametrize("bandwidth", [0.75, 1.5, 3.0])  # as a simulation's three
def test_a_narrow_bandwidth_takes_four_times_the_rows(bandwidth):
    waves = RandomFourier(n_waves=5, bandwidth=bandwidth)
    means = mapped(ROWS, waves).mean(axis=0)
    common = float(means @ means)
    assert rows_asked(common) == (MORE if bandwidth < 1 else 1)
    enough = GREEN * rows_asked(common)
    for rate, least, most in ((enough, 0.5, 0.58), (enough / MORE, 0.52, 0.75)):
        told = {"bandwidth": bandwidth, "n_waves": 5}
        area = np.mean([told_apart(rate, seed=seed, **told) for seed in range(10)])
        assert least < area < most
        assert light_of(rate, common=common) == ("green" if rate == enough else "amber")


def test_a_round_is_graded_by_the_map_that_tells_most():
    rows = RNG(0).normal(size=(600, 6))
    dealt = {name: (rows[at::3], rows[at::3, 0] > 0) for at, name in enumerate("abc")}
    lights = {}
    for bandwidths in ((3.0,), (3.0, 0.5)):
        maps = [RandomFourier(n_waves=12, bandwidth=each) for each in bandwidths]
        told = simulate(dealt, rng=RNG(0), release="sums", maps=maps).result
        assert told.chosen == 0
        lights[len(maps)] = told.aggregate
    assert ": green." in lights[1]
    assert "of map 2 of 2, whose bandwidth is narrow: amber." in lights[2]


def test_a_row_that_left_between_two_totals_is_read_exactly():
    """The difference rule: no second total over other rows but where sums are aggregates."""
    table = ones_and(mapped(ROWS[:200]), np.eye(10)[LABELS[:200]], bits=20)
    upper = np.triu_indices(111)
    both = (table, np.delete(table, 7, 0))
    first, second = (gram([each], width=111, bits=20)[upper] for each in both)
    left = np.zeros((111, 111), dtype=np.int64)
    left[np.triu_indices(111)] = first - second
    assert np.array_equal(left[0], (table[7] * 2**20).astype(np.int64))
    candidates = cut(mapped(ROWS), bits=20)
    assert np.argmin(np.abs(candidates - left[0, 1:101] / 2**20).sum(axis=1)) == 7


def test_all_parties_but_one_read_that_ones_sums_whose_rank_is_its_rows():
    ends = {"north": (0, 30), "south": (30, 90), "east": (90, 180)}
    dealt = {name: (ROWS[slice(*at)], LABELS[slice(*at)]) for name, at in ends.items()}
    rest = played(dealt).result.total.grams[0]
    for name in ("south", "east"):
        own, told = dealt[name]
        table = ones_and(mapped(own), np.eye(10)[told], bits=20) / 2**20
        rest = rest - table.T @ table
    assert rest[0, 0] == 30
    assert np.linalg.matrix_rank(rest[:101, :101], tol=1e-6) == 30


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
    even = (LABELS % 2).astype(int)
    parts = {name: (ROWS[at:900:3], even[at:900:3]) for at, name in enumerate("abc")}
    own, told = parts["c"]
    parts["c"] = own, np.where(np.arange(len(told)) < flipped * len(told), 1 - told, told)
    score = played(parts).score(ROWS[900:], even[900:])["a"]
    assert score > 0.9 if not flipped else score < 0.86
