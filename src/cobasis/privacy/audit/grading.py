"""What an audit finds: a figure, how it stands to the policy, and what somebody has to do about it.

9 % is the re-identification threshold of EMA Policy 0070 and Health Canada (about one in eleven),
33 % the usual most under controlled access; neither is legal advice. A bound of this file is a
policy, and a policy has a name: changing one changes `POLICY`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

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
