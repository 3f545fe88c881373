"""One chart for each study: ours with intervals, the paper's as hollow marks of the same shape.

Colours are those of Okabe and Ito, which colour-blind eyes tell apart; every series has a shape
of its own too, so that a black and white print says the same.
"""

import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from textwrap import fill
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.harness.comparison import FOR_ALL, Layout, Number, charted, holds_for_all, said
from experiments.harness.study import Settings, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = "os^DvPX*<>hpd8H"
DASHES: Sequence[Any] = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 4)))
STYLED = ("odc", "imakura", "kawakami", "gopp", "whitened", "consensus", "central", "alone")
"""Methods with a colour and a shape of their own."""

MOST = 10  # series that a chart still shows


@dataclass(frozen=True)
class Style:
    colour: str  # of its marks
    marker: str
    dash: Any  # of its line; matplotlib's
    shift: float = 0.0  # to the side of its level's place, so that series stand side by side


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
    found = looks(both)
    for place, name in enumerate(name for name in shown if name in found):
        found[name] = replace(found[name], shift=(place - (len(shown) - 1) / 2) * width)
    return found


def looks(names: Iterable[str]) -> dict[str, Style]:
    """Give every name its colour and shape: known methods their own, all others what is free."""
    shown = list(names)
    known = {name: STYLED.index(name) for name in shown if name in STYLED}
    free = (index for index in range(100) if index not in known.values())
    place = known | {name: next(free) for name in shown if name not in known}
    found = {}
    for name in shown:
        method = re.split("[,/]", name, maxsplit=1)[0]  # variants have their method's colour
        index, several = place[name], (COLOURS, MARKERS, DASHES)
        looks = (STYLED.index(method) if method in STYLED else index, index, index)
        found[name] = Style(*(one[at % len(one)] for one, at in zip(several, looks, strict=True)))
    return found


UNCHARTED = ("dealt out", "parties left out", "refused")
"""What stands in the table only: figures for calibration, counts, refusals."""

MOST_PANELS, COLUMNS = 12, 3
WIDE = 20.0  # from this ratio of largest to smallest an axis is logarithmic
LETTERS = 130  # of the legend, that fit on a line
TITLE = 34  # of a panel's title, too
Level = str | int | float


@dataclass(kw_only=True)
class Panel:
    title: str  # which settings, and which values
    series: dict[str, list[tuple[Level, Number]]] = field(default_factory=dict)
    lines: dict[str, Number] = field(default_factory=dict)  # what holds for all levels


def draw(study: Study, found: Sequence[Number]) -> Figure | None:
    """Draw one study, or nothing where a chart would not say more than its table."""
    found = [each for each in found if any(fnmatchcase(each.name, one) for one in study.charted)]
    whole = panels_of(found)
    panels = whole[:MOST_PANELS]
    if not panels:
        return None
    columns = 2 if len(panels) % 2 == 0 and len(panels) % COLUMNS else min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(9.5, 1.0 + 2.7 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    styles = styles_for(whole)
    laid = charted([each.settings for each in found])
    for axes, panel in zip(grid.flat, panels, strict=False):
        _draw_panel(axes, panel, styles=styles, laid=laid)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    figure.supylabel(study.unit, fontsize=9)
    _legend(figure, panels, styles=styles)
    return figure


def svg(figure: Figure, *, title: str) -> str:
    """Return a chart as an SVG element, the same every time, that refers to nothing outside."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cobasis"}):
        named = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=named)
    text = buffer.getvalue()
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    fits = 'style="max-width: 100%; height: auto"'  # the page it stands on
    shown = f'<svg role="img" aria-label="{label}" {fits}'
    return text[text.index("<svg") :].replace("<svg", shown, 1)


def panels_of(found: Sequence[Number]) -> list[Panel]:
    """Say for each number in which part of the chart it stands, and where."""
    laid = charted([each.settings for each in found])
    shown = [each for each in found if not any(word in each.name for word in UNCHARTED)]
    inside = [each for each in shown if not holds_for_all(each.settings)]
    lonely = len({each.name.split("/")[0] for each in inside}) == 1 and len(laid.apart) > 0
    apart = laid.apart[:-1] if lonely else laid.apart
    panels: dict[tuple[Level, ...], Panel] = {}
    of: dict[tuple[Level, ...], Settings] = {}
    for each in inside or shown:
        series, _, rest = each.name.partition("/")
        if lonely:  # one method only: a setting tells the series apart
            series = said(laid.apart[-1], each.settings)
        place = (rest, *(each.settings[name] for name in apart))
        parts = (*(said(name, each.settings) for name in apart), rest)
        title = " · ".join(part for part in parts if part)
        panel = panels.setdefault(place, Panel(title=title))
        of[place] = {name: each.settings[name] for name in apart}
        at = each.settings[laid.across] if laid.across else each.name
        panel.series.setdefault(series, []).append((at, each))
    order = {rest: i for i, rest in enumerate(dict.fromkeys(place[0] for place in panels))}
    own = {place: set(panel.series) for place, panel in panels.items()}
    for each in (each for each in shown if inside and holds_for_all(each.settings)):
        series, _, rest = each.name.partition("/")
        known = rest in order
        if not known and (len(order) > 1 or not (each.theirs or series in STYLED)):
            continue
        for place, panel in panels.items():
            if _fits(each, of[place]) and (place[0] == rest or not known):
                called = series if known else each.name
                if called in own[place]:  # a line is told from the series of the same name
                    which = (str(level) for level in each.settings.values() if level in FOR_ALL)
                    called = f"{next(which)}: {called}"
                level = each.settings.get(laid.across, "")
                if level in laid.levels:
                    panel.series.setdefault(called, []).append((level, each))
                    continue
                kept = panel.lines.get(called)
                if kept is None or not of[place].items() <= kept.settings.items():
                    panel.lines[called] = each  # of this very number of rows, if there is one
    return [panels[place] for place in sorted(panels, key=lambda place: order[place[0]])]


def _fits(each: Number, of: Settings) -> bool:
    """Whether a number that holds for all levels is about these settings."""
    mine = each.settings
    return all(
        mine.get(name, value) == value or mine[name] in FOR_ALL or not isinstance(value, str)
        for name, value in of.items()
    )


def _draw_panel(axes: "Axes", panel: Panel, *, styles: Mapping[str, Style], laid: Layout) -> None:
    here = {level for each in panel.series.values() for level, _ in each}
    numeric = not any(isinstance(level, str) for level in here)
    ordered = [level for level in laid.levels if level in here] or sorted(here, key=str)
    slots = {level: float(level) if numeric else float(i) for i, level in enumerate(ordered)}
    for name, each in panel.series.items():
        if name in styles:
            shift = 0.0 if numeric else styles[name].shift
            xs = [slots[level] + shift for level, _ in each]
            _marks(axes, xs, [number for _, number in each], style=styles[name], joined=numeric)
    if _wide(n.ours.mean for name in {*styles} & {*panel.series} for _, n in panel.series[name]):
        axes.set_yscale("log")
    low, high = axes.get_ylim()
    for name, number in panel.lines.items():
        if name in styles:
            _line(axes, number, name=name, style=styles[name], within=(low, high))
    if not numeric:
        words = [f"{level}".replace("_", "\n", 1) for level in ordered]
        axes.set_xticks(range(len(words)), words, rotation=30, ha="right")
        axes.set_xlim(-0.55, len(words) - 0.45)
    else:
        axes.set_xlabel(laid.across, fontsize=8)
        if _wide(slots.values()):
            axes.set_xscale("log")
            axes.set_xticks(list(slots.values()), [f"{each:,g}" for each in slots.values()])
            axes.set_xticks([], minor=True)
    axes.set_title(fill(panel.title, TITLE), fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.tick_params(labelsize=7.5)


def _marks(
    axes: "Axes", xs: Sequence[float], each: Sequence[Number], *, style: Style, joined: bool
) -> None:
    look: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 5}
    margins = [0.0 if math.isnan(one.ours.margin) else one.ours.margin for one in each]
    means = [one.ours.mean for one in each]
    dash = style.dash if joined else "none"
    axes.errorbar(xs, means, yerr=margins, linestyle=dash, linewidth=1.1, capsize=2, **look)
    printed = [(x, one.theirs) for x, one in zip(xs, each, strict=True) if one.theirs]
    if printed:
        axes.errorbar(
            [x if joined else x + 0.03 for x, _ in printed],
            [theirs.value for _, theirs in printed],
            yerr=[theirs.margin or 0.0 for _, theirs in printed],
            linestyle="none",
            markerfacecolor="none",
            elinewidth=0.6,
            **{**look, "markersize": 7.5},
        )


def _line(
    axes: "Axes", number: Number, *, name: str, style: Style, within: tuple[float, float]
) -> None:
    """Draw what holds for all levels as a line from side to side, or say that it is far off."""
    low, high = within
    if not 2 * low - high <= number.ours.mean <= 2 * high - low:
        below = number.ours.mean < low
        text, y = f"{name} {number.ours}", 0.02 if below else 0.92
        y += 0.08 * len(axes.texts) * (1 if below else -1)
        axes.text(0.02, y, text, transform=axes.transAxes, fontsize=7.5, color=style.colour)
        return
    axes.axhline(number.ours.mean, color=style.colour, linestyle=style.dash, linewidth=1.2)
    if number.theirs:
        look: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 7.5}
        at = axes.get_yaxis_transform()
        axes.plot([0.985], [number.theirs.value], transform=at, markerfacecolor="none", **look)


def _legend(figure: Figure, panels: Sequence[Panel], *, styles: Mapping[str, Style]) -> None:
    marked = {name for panel in panels for name in panel.series}
    handles = []
    for name, style in styles.items():
        look: dict[str, Any] = {"marker": style.marker, "linestyle": "none"}
        if name not in marked:
            look = {"linestyle": style.dash}
        handles.append(Line2D([], [], color=style.colour, markersize=5, label=name, **look))
    numbers = [n for p in panels for each in p.series.values() for _, n in each]
    if any(n.theirs for n in (*numbers, *(n for p in panels for n in p.lines.values()))):
        hollow: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markersize": 7.5}
        said = "hollow: the paper's"
        handles.append(Line2D([], [], color="#444444", linestyle="none", label=said, **hollow))
    if len(handles) > 1:
        longest = max(len(str(each.get_label())) for each in handles)
        columns = max(1, min(5, LETTERS // (longest + 6)))
        looks: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 8}
        figure.legend(handles=handles, loc="outside upper center", **looks)


def _wide(values: Iterable[float]) -> bool:
    found = [value for value in values if not math.isnan(value)]
    return bool(found) and min(found) > 0 and max(found) / min(found) >= WIDE
