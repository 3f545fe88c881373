"""What an audit finds: a figure in words, how it stands to the policy, and what to do about it.

9 % is the re-identification threshold of EMA Policy 0070 and Health Canada (about one in eleven),
33 % the usual most under controlled access; neither is legal advice. A bound of this file is a
policy, and a policy has a name: changing one changes `POLICY`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

_MANY = 0.995


def per_cent(share: float) -> str:
    """Return a share in per cent; what is worse than guessing is 0."""
    percent = 100 * min(max(share, 0.0), 1.0)
    if percent in {0.0, 100.0} or 1 <= percent <= 100 * _MANY:
        return f"{percent:.0f} %"
    if percent < 1:
        return f"{percent:.1f} %" if percent >= 0.05 else "less than 0.1 %"  # noqa: PLR2004
    text = f"{percent:.1f}"
    return f"{text} %" if text != "100.0" else "more than 99.9 %"


def times(share: float) -> str:
    """Return how often in a thousand something happens."""
    if share >= 1:
        return "every time"
    thousand = 1000 * share
    if thousand == 0:
        return "never in 1,000"
    if thousand < 1:
        return "less than once in 1,000"
    text = f"{thousand:.1f}".removesuffix(".0") if thousand < 10 else f"{thousand:.0f}"  # noqa: PLR2004
    if text in {"1", "1000"}:
        return "once in 1,000" if text == "1" else "999 times in 1,000"
    return f"{text} times in 1,000"


def of_ten(share: float) -> str:
    """Return a share as so many of ten."""
    tenths = round(10 * share)
    if share < 0.05:  # noqa: PLR2004
        return "fewer than 1 in 10"
    if tenths == 10 and share < 1:  # noqa: PLR2004
        return "more than 9 in 10"
    return f"{tenths} in 10"


POLICY = "cobasis/audit/1"
"""Names the metrics and the bounds below; it travels with an upload."""

Grade = Literal["green", "amber", "red", "told"]
"""Told is a figure without a bound."""

Action = Literal["none", "sign", "block"]
"""What has to happen before rows leave: nothing, a signature, or two names and a reason."""

BLOCKING = ("H1", "H4", "H5")
"""Whose red blocks; any other red needs a signature."""

Figures = Mapping[str, float | int | str | None]
"""What was measured, by name."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Where a figure stops being green, and where it becomes red."""

    green: float  # up to here, itself included
    red: float  # above this


CONTENT = Bounds(green=0.10, red=0.50)
LINKAGE = Bounds(green=0.09, red=1 / 3)
ATTRIBUTE = Bounds(green=0.05, red=0.15)
KNOWN_GREEN, KNOWN_RED = 100, 20
"""People who have to be known: green above the first, red below the second."""
ROWS_PER_COMPONENT_GREEN, ROWS_PER_COMPONENT_RED = 20, 5
SMALLEST_CLASS = 11
SMALLEST_CHANGE, SMALLEST_CHANGED_SHARE = 11, 0.05
WORST_CONDITION = 1e6


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of an audit."""

    id: str  # P1 to P6, H1 to H6, D1
    title: str
    grade: Grade
    words: str  # a sentence with its figures
    figures: Figures = field(default_factory=dict)  # the same for machines; shares are from 0 to 1

    @property
    def action(self) -> Action:
        """What has to happen before rows leave."""
        if self.grade != "red":
            return "none"
        return "block" if self.id in BLOCKING else "sign"


def graded(value: float, bounds: Bounds) -> Grade:
    """Return the grade of a figure of which less is better."""
    if value <= bounds.green:
        return "green"
    return "amber" if value <= bounds.red else "red"


def worst(*grades: Grade) -> Grade:
    """Return the worst of some grades."""
    order: tuple[Grade, ...] = ("told", "green", "amber", "red")
    return max(grades, key=order.index)
