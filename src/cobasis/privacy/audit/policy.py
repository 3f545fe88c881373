"""What an audit holds its figures against: bounds and grades.

9 % is the re-identification threshold of EMA Policy 0070 and Health Canada (about one in eleven),
33 % the usual most under controlled access; neither is legal advice. A bound of this file is a
policy, and a policy has a name: changing one changes `POLICY`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cobasis.algorithms import BasisName

POLICY = "cobasis/audit/1"  # names the metrics and the bounds below; it travels with an upload

TITLES = {
    "P1": "Rebuilt, if one party helps the analyst",
    "P2": "Picked out of a list by an analyst with similar records, alone",
    "P3": "Picked out of a list, if the secret basis leaks",
    "P4": "People whose records have to be known, to rebuild others or pick them out",
    "P5": "Sensitive columns told, if 20 people are known",
    "P6": "What distances show, to anybody who opens the file",
    "S1": "Rows for each feature of the total",
    "S2": "Your own rows for each feature",
    "S3": "Cells of few people in tables of words",
    "H1": "Anchor",
    "H2": "Rows for each component",
    "H3": "Smallest class",
    "H4": "Earlier uploads and proposals of these rows",
    "H5": "The model that comes back",
    "H6": "Labels",
    "D1": "Formal guarantee",
}

_OWN = (
    "It reads your basis, whose directions are your rows' own. So it also tells who is in the "
    "table: surely with as many rows as components, well at three times, hardly at twenty."
)
_PROPOSED = (
    "It reads the common span, and from your proposal your own directions (of a weighted one also "
    "how strong each is), exactly. So a consensus hides no more from it than a basis of your own."
)
COLLUSION: Mapping[BasisName, str] = {
    "svd": _OWN,
    "pca": _OWN,
    "lpp": _OWN,
    "haar": "It has the span already, which is drawn from the secret and is of nobody's rows: your "
    "projected rows are all that it sees of them.",
    "public": "It has the span already, which is of the public rows: your projected rows are all "
    "that it sees of yours.",
    "consensus": _PROPOSED,
    "weighted_consensus": _PROPOSED,
}
"""What a party that helps the analyst sees under each basis, besides what it rebuilds of rows."""

Grade = Literal["green", "amber", "red", "told"]  # told is a figure without a bound

Action = Literal["none", "sign", "block"]
"""What has to happen before rows leave: nothing, a signature, or two names and a reason."""

BLOCKING = ("H1", "H4")  # whose red blocks; any other red needs a signature

CONTENT, LINKAGE, ATTRIBUTE = (0.10, 0.50), (0.09, 1 / 3), (0.05, 0.15)
"""Up to the first a figure is green, the bound itself included; above the second it is red."""

KNOWN_GREEN, KNOWN_RED = 100, 20
"""People who have to be known: green above the first, red below the second."""


@dataclass(frozen=True)
class Finding:
    id: str  # P1 to P6, S1 to S3, H1 to H6, D1
    grade: Grade
    words: str  # a sentence with its figures
    figures: Mapping[str, Any] = field(default_factory=dict)  # for machines; shares are 0 to 1

    @property
    def title(self) -> str:
        return TITLES[self.id]

    @property
    def action(self) -> Action:
        if self.grade != "red":
            return "none"
        return "block" if self.id in BLOCKING else "sign"


def graded(value: float, bounds: tuple[float, float]) -> Grade:
    """Return the grade of a figure of which less is better."""
    green, red = bounds
    return "green" if value <= green else "amber" if value <= red else "red"


def graded_known(number: int | None, tried: int) -> Grade:
    """Return the grade of a number of people who have to be known; None is more than was tried."""
    if (tried + 1 if number is None else number) > KNOWN_GREEN:
        return "green"
    # more than was tried says no more, and is no reason to sign
    return "amber" if number is None or number >= KNOWN_RED else "red"


def graded_bits(sent: float, needed: float) -> Grade:
    """Return the grade of bits that leave of a record, beside those that tell it from all."""
    return "red" if sent >= needed else "amber" if 2 * sent >= needed else "green"


def worst(*grades: Grade) -> Grade:
    order: tuple[Grade, ...] = ("told", "green", "amber", "red")
    return max(grades, key=order.index)


def per_cent(share: float) -> str:
    """Return a share in per cent; what is worse than guessing is 0, and nearly all is not all."""
    percent = 100 * min(max(share, 0.0), 1.0)
    if 0 < percent < 1:
        return f"{percent:.1f} %" if percent >= 0.05 else "less than 0.1 %"  # noqa: PLR2004
    if 99.5 < percent < 100:  # noqa: PLR2004
        return f"{percent:.1f} %" if percent < 99.95 else "more than 99.9 %"  # noqa: PLR2004
    return f"{percent:.0f} %"
