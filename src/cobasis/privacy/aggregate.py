"""How far sums over people's rows are an aggregate: by the rows that each feature has."""

from collections.abc import Mapping
from typing import Literal

RED, GREEN = 5, 20
"""Rows for each feature of a total: whether a person is in it was told with an area under the curve
of .97 at 1.7, .67 at 5, .54 at 20 (digits, the person's record at hand)."""

Light = Literal["green", "amber", "red"]
OFTEN: Mapping[Light, str] = {"green": "hardly ever", "amber": "sometimes", "red": "mostly"}
"""How often whoever has a person's record can tell."""


def light_of(rows_per_feature: float) -> Light:
    """Say by a traffic light how far a total is an aggregate."""
    return "green" if rows_per_feature >= GREEN else "amber" if rows_per_feature >= RED else "red"
