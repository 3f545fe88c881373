"""The three sweeps of the ODC paper's Table 5, whole and short."""

from collections.abc import Mapping
from typing import Any

from cobasis.planning.costs import Size

WHOLE = {
    "l": range(50, 951, 50),
    "a": range(1000, 20_001, 1000),
    "c": range(50, 1001, 50),
}
SHORT: Mapping[str, tuple[int, ...]] = {"l": (50, 100, 400), "a": (1000, 5000), "c": (50, 250)}
PUBLISHED: Mapping[str, tuple[int, ...]] = {
    "l": (50, 250, 500, 750, 950),
    "a": (1000, 5000, 10_000, 15_000, 20_000),
    "c": (50, 250, 500, 750, 1000),
}
"""Where the slow published forms are tried."""

FIELD = {"l": "n_components", "a": "n_anchor_rows", "c": "n_parties"}
BASE = {"n_anchor_rows": 1000, "n_components": 50, "n_parties": 50}

MANY_COMPONENTS = 300
ENOUGH_PARTIES = 6
"""Above that many components these are timed, and the time is multiplied."""


def sizes(free: str, *, quick: bool) -> list[Size]:
    """Return one sweep's sizes; `free` is the letter that is swept."""
    values = SHORT[free] if quick else WHOLE[free]
    return [Size(**BASE | {FIELD[free]: value}) for value in values]


def published_sizes(free: str, *, quick: bool) -> list[Size]:
    """Return the five sizes of one sweep at which published forms are tried."""
    values = PUBLISHED[free][:1] if quick else PUBLISHED[free]
    return [Size(**BASE | {FIELD[free]: value}) for value in values]


def parties_timed(size: Size) -> int:
    """Return how many parties are timed; what they take is scaled to all of them."""
    if size.n_components > MANY_COMPONENTS:
        return min(ENOUGH_PARTIES, size.n_parties)
    return size.n_parties


def shape(size: Size) -> dict[str, Any]:
    """Return a size as keywords for an input."""
    a, l, c = size.letters  # noqa: E741 -- the paper's letters
    return {"a": a, "l": l, "c": c}


def label(size: Size) -> str:
    """Return a size in words."""
    a, l, c = size.letters  # noqa: E741
    return f"a={a}, l={l}, c={c}"
