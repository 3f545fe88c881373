"""How far sums over people's rows are an aggregate: by the rows that each feature has."""

from collections.abc import Mapping, Sequence
from typing import Literal

RED, GREEN = 5, 20
"""Rows for each feature of a total: whether a person is in it was told with an area under the curve
of .97 at 1.7, .67 at 5, .54 at 20 (digits, the person's record at hand)."""

TABLE = (1, 15)
"""Likewise of a baseline table, which holds nothing of two columns together: with an area of .65 at
1.1, .55 at 16."""

NARROW, MORE = 0.06, 4
"""Of waves whose bandwidth is so narrow that two rows have less than NARROW in common (their mapped
rows' product, on average) each feature takes MORE times the rows: at 20 the area was .55 to .75, at
80 .51 to .57; of wider waves at 20 .50 to .58 (digits, MNIST, Adult; 10 to 400 features)."""

Light = Literal["green", "amber", "red"]
OFTEN: Mapping[Light, str] = {"green": "hardly ever", "amber": "sometimes", "red": "mostly"}
"""How often whoever has a person's record can tell."""


def rows_asked(common: float) -> int:
    """Return how many times the rows a map's features take, by what two mapped rows share."""
    return MORE if common < NARROW else 1


def tells_most(n_features: Sequence[int], common: Sequence[float]) -> int:
    """Return the place of the map whose total tells most of who is in it; all maps' leave."""
    return max(range(len(common)), key=lambda at: n_features[at] * rows_asked(common[at]))


def light_of(rows_per_feature: float, *, table: bool = False, common: float = 1.0) -> Light:
    """Say by a traffic light how far a total, or that of a baseline table, is an aggregate."""
    red, green = (each * rows_asked(common) for each in (TABLE if table else (RED, GREEN)))
    return "green" if rows_per_feature >= green else "amber" if rows_per_feature >= red else "red"
