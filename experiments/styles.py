"""How the series of a chart look: a method looks the same in every chart that has it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.figures import Panel

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = "os^DvPX*<>hpd8H"
DASHES: Sequence[Any] = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 4)))
STYLED = ("odc", "imakura", "kawakami", "gopp", "whitened", "consensus", "central", "alone")
"""Methods with a colour and a shape of their own."""

MOST = 10
"""Series that a chart still shows."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a series looks.

    Attributes
    ----------
    colour, marker : str
        Of its marks.
    dash : object
        Of its line; matplotlib's.
    shift : float
        To the side of the place of its level, so that series stand beside each other.
    """

    colour: str
    marker: str
    dash: Any
    shift: float


def styles_for(panels: Sequence["Panel"]) -> Mapping[str, Style]:
    """Choose the series that are shown, those that the paper has too first, and their looks."""
    marked = dict.fromkeys(name for panel in panels for name in panel.series)
    lines = dict.fromkeys(name for panel in panels for name in panel.lines)
    printed = {
        name
        for panel in panels
        for name, each in panel.series.items()
        if any(number.theirs for _, number in each)
    }
    shown = sorted(marked, key=lambda name: name not in printed)[: MOST - min(len(lines), 3)]
    shown = [name for name in marked if name in shown]
    both = [*shown, *(name for name in lines if name not in shown)][:MOST]
    width = 0.8 / max(len(shown), 1)
    return {
        name: replace(style, shift=(shown.index(name) - (len(shown) - 1) / 2) * width)
        if name in shown
        else style
        for name, style in looks(both).items()
    }


def looks(names: Iterable[str]) -> dict[str, Style]:
    """Give every name its colour and shape."""
    shown = list(names)
    place = _places(shown)
    return {
        name: Style(
            colour=COLOURS[_colour(name, place) % len(COLOURS)],
            marker=MARKERS[place[name] % len(MARKERS)],
            dash=DASHES[place[name] % len(DASHES)],
            shift=0.0,
        )
        for name in shown
    }


def _places(shown: Sequence[str]) -> dict[str, int]:
    """Give known methods their own place and all others what is free."""
    taken = {name: STYLED.index(name) for name in shown if name in STYLED}
    free = (index for index in range(100) if index not in taken.values())
    return taken | {name: next(free) for name in shown if name not in taken}


def _colour(name: str, place: Mapping[str, int]) -> int:
    """Variants, as in "imakura, rescaled", have the colour of their method and another shape."""
    method = re.split("[,/]", name, maxsplit=1)[0]
    return STYLED.index(method) if method in STYLED else place[name]
