"""A party's table on disk: 5 million rows of 200 numbers become the sums of 1,000 features.

Timed in turns against NumPy's two products of as many rows alone, each block times the waves and
features times features, which nothing can do without.
"""

import tempfile
from statistics import median
from typing import Any

import numpy as np

from benchmarks import goals, party_table
from benchmarks.machine import in_a_child, peak_bytes
from cobasis import Agreement, NumericFeature, RandomFourier, SumsTerms
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.sums_party import SumsParty
from cobasis.tables import open_table

WAVES, BLOCK, NAMES = 500, 10_000, ("north", "south", "east")
MOST_TIMES, MOST_BYTES = 1.5, 1e9


def measure(*, quick: bool) -> dict[str, Any]:
    n_rows, turns = 100_000 if quick else 5_000_000, []
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/table.parquet"
        in_a_child("party_table:make", path=path, n_rows=n_rows)
        for _ in range(3):
            sums, _ = party_table.timed(lambda: sum_up(path, n_rows))
            least, _ = party_table.timed(lambda: products(n_rows))
            turns.append({"sums": sums, "products": least})
    ratios, peak = [each["sums"] / each["products"] for each in turns], peak_bytes()
    what = f"a table of {n_rows:,} rows x {party_table.FEATURES} becomes sums of {2 * WAVES:,}"
    where = f"{min(ratios):.2f} to {max(ratios):.2f} in {len(turns)} rounds"
    times: dict[str, Any] = {"most": MOST_TIMES, "unit": "x", "where": where}
    judged = [
        goals.goal(f"{what}, against NumPy's products alone", median(ratios), **times),
        goals.goal(f"{what}: peak memory", peak / 1e6, most=MOST_BYTES / 1e6, unit=" MB"),
    ]
    return {"n_rows": n_rows, "rounds": turns, "peak_bytes": peak, "goals": judged}


def sum_up(path: str, n_rows: int) -> None:
    """Make a party's masked sums of the table, block by block."""
    columns = (NumericFeature(name=each, low=-60, high=60) for each in party_table.NAMES)
    waves = RandomFourier(n_waves=WAVES, bandwidth=10.0)
    agreement = Agreement(
        round_id="bench",
        parties=NAMES,
        task="classification",
        classes=(0, 1),
        features=tuple(columns),
        model="ridge",
        minimum_parties=3,
        release="sums",
        sums=SumsTerms(maps=(waves,), most_rows=n_rows, most_rows_in_all=3 * n_rows),
    )
    keys = {name: MaskKey(name.encode().ljust(32), simulated=True) for name in NAMES}
    public = {name: key.public for name, key in keys.items()}
    north = SumsParty("north", agreement=agreement, key=keys["north"], keys=public)
    north.sum_up(open_table(path, agreement=agreement, party="north", labels="died"))


def products(n_rows: int) -> None:
    """Do what NumPy needs for as many rows, were nothing read, mapped or cut."""
    rng, n_features = np.random.default_rng(0), party_table.FEATURES
    block, weights = rng.normal(size=(BLOCK, n_features)), rng.normal(size=(n_features, WAVES))
    mapped, total = rng.normal(size=(BLOCK, 2 * WAVES)), np.zeros((2 * WAVES, 2 * WAVES))
    for _ in range(n_rows // BLOCK):
        block @ weights
        total += mapped.T @ mapped
