"""A site whose table has categories, empty cells and an identifier."""

import numpy as np
import polars as pl

from cobasis import NumericFeature
from cobasis.features.contract import CategoryFeature
from tables.parties import site

FEATURES = (
    NumericFeature(name="age", centre=60, scale=20, low=0, high=120),
    CategoryFeature(name="ward", values=("icu", "007", "7"), unknown="other", missing="level"),
    NumericFeature(name="lactate", centre=2, scale=1.5, missing="fill", fill=1.25),
    CategoryFeature(name="sex", values=("f", "m")),
    NumericFeature(name="pulse", centre=80, scale=15, missing="fill", fill=75),
)
NAMES = tuple(each.name for each in FEATURES)
WIDTH = 1 + 5 + 1 + 2 + 1


def ward_site(**changes):
    """The party of `parties.site`, with these features."""
    fields = {"features": FEATURES, "n_anchor_rows": WIDTH + 1, "label": "died", "id": "patient"}
    return site(**fields | changes)


def ward_frame(n_rows, *, seed=0):
    """Columns in another order than agreed, between others that are not."""
    rng = np.random.default_rng(seed)
    wards = np.array(["icu", "007", "7", "hall", None], dtype=object)
    lactate = pl.Series(rng.gamma(2.0, 1.0, n_rows)).round(3)
    pulse = pl.Series(rng.integers(50, 120, n_rows))
    return pl.DataFrame(
        {
            "patient": [f"p-{row:05}" for row in range(n_rows)],
            "pulse": pulse.set(pl.Series(rng.random(n_rows) < 0.2), None),
            "sex": rng.choice(["f", "m"], n_rows),
            "note": ['a, "b"'] * n_rows,
            "lactate": lactate.set(pl.Series(rng.random(n_rows) < 0.3), None),
            "ward": pl.Series(rng.choice(wards, n_rows).tolist(), dtype=pl.String),
            "age": rng.normal(60, 15, n_rows).round(1),
            "died": rng.integers(0, 2, n_rows),
        }
    )
