"""Features of both kinds, and frames that hold them."""

import numpy as np
import polars as pl

from cobasis import NumericFeature
from cobasis.features.contract import CategoryFeature

AGE = NumericFeature(name="age", centre=60, scale=20, unit="years", low=0, high=120)
LACTATE = NumericFeature(
    name="lactate", centre=2, scale=1.5, unit="mmol/l", low=0, missing="fill", fill=1.25
)
WARD = CategoryFeature(name="ward", values=("icu", "7", "true"), unknown="other", missing="level")
SEX = CategoryFeature(name="sex", values=("f", "m"), base="f")
MIXED = (AGE, WARD, LACTATE, SEX)
WIDTH = 1 + 5 + 1 + 1


def mixed(n_rows=4):
    """A frame with all there is: words of every level, empty cells where they may be."""
    return pl.DataFrame(
        {
            "age": [60.0, 80.0, 20.0, 40.0],
            "ward": ["icu", "hall", None, "7"],
            "lactate": [2.0, None, 3.5, float("nan")],
            "sex": ["f", "m", "m", "f"],
        }
    )[[row % 4 for row in range(n_rows)]]


ENCODED = [
    [0.0, 1, 0, 0, 0, 0, 0.0, 0],
    [1.0, 0, 0, 0, 1, 0, -0.5, 1],
    [-2.0, 0, 0, 0, 0, 1, 1.0, 1],
    [-1.0, 0, 1, 0, 0, 0, -0.5, 0],
]
"""What `mixed` becomes."""


class Frame:
    """The least of a data frame of another library: numbers, and names for columns."""

    def __init__(self, values, columns):
        self.values, self.columns = np.asarray(values), columns

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self):
        return len(self.values)
