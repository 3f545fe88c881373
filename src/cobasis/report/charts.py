"""Charts of reports, audits and plans, each as one SVG element that stands in the page."""

import io
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cobasis.linalg.arrays import principal_cosines
from cobasis.privacy.audit.policy import per_cent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cobasis.algorithms.images import Images
    from cobasis.privacy.audit.what_if import Distance, Effect
    from cobasis.report.comparison import Comparison

_LEGEND: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 4}
INK, GREY = "#1f2933", "#9aa5b1"
ALONE, TOGETHER, CONSENSUS, POOLED = "#c8553d", "#2a6f97", "#3a9b78", "#1f2933"


def scores_chart(found: "Comparison") -> str:
    """Draw each party's score: alone, together, with a consensus basis; pooled as a line."""
    names = list(found.alone)
    series = [("alone", found.alone, ALONE), ("together", found.together, TOGETHER)]
    if found.consensus is not None:
        series.append(("consensus basis", found.consensus, CONSENSUS))
    figure, axes = _empty(width=max(6.0, 0.9 * len(names)))
    width = 0.8 / len(series)
    for index, (label, scores, colour) in enumerate(series):
        offset = (index - (len(series) - 1) / 2) * width
        places = np.arange(len(names)) + offset
        axes.bar(places, [scores[name] for name in names], width, color=colour, label=label)
    axes.axhline(found.pooled, color=POOLED, linewidth=1.5, linestyle="--", label="pooled")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(f"{found.metric} on the common test set")
    axes.set_ylim(top=1.0)
    axes.legend(frameon=False, **_LEGEND)
    return _as_svg(figure)


def angles_chart(images: "Images") -> str:
    """Draw the mean principal angle between every two parties' spans, in degrees."""
    names = list(images)
    angles = np.zeros((len(names), len(names)))
    for one, two in combinations(range(len(names)), 2):
        cosines = principal_cosines(images[names[one]], images[names[two]])
        angles[one, two] = angles[two, one] = np.degrees(np.arccos(cosines)).mean()
    figure, axes = _empty(width=1.8 + 0.55 * len(names), height=max(3.0, 1.4 + 0.5 * len(names)))
    drawn = axes.imshow(angles, cmap="Blues", vmin=0, vmax=90)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    for (row, column), angle in np.ndenumerate(angles):
        shade = "white" if angle > 45 else INK  # noqa: PLR2004 -- half of the colour scale
        axes.text(column, row, f"{angle:.0f}", ha="center", va="center", color=shade, fontsize=8)
    figure.colorbar(drawn, ax=axes, label="degrees", shrink=0.8)
    return _as_svg(figure)


def _empty(*, width: float, height: float = 3.4) -> tuple[Figure, "Axes"]:
    """Return an empty figure in the reports' style."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _as_svg(figure: Figure) -> str:
    """Return the figure as an SVG element without prologue, date or outside references."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cobasis"}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


_PALE = "#cfd8df"
_SMALL = 8


def effects_chart(effects: "Sequence[Effect]", *, task: str) -> str:
    """Draw what each setting comes to: content, linkage twice, and what it is worth."""
    worth = "R2 of a\nsimple model" if task == "regression" else "Right answers of\na simple model"
    panels: dict[str, list[float | None]] = {
        "Information rebuilt,\nif one partner helps": [each.content for each in effects],
        "Right person picked\nby an analyst alone": [each.alone for each in effects],
        "Right person picked,\nif the basis leaks": [each.leaked for each in effects],
        worth: [each.accuracy for each in effects],
    }
    shown = {title: each for title, each in panels.items() if set(each) != {None}}
    figure = Figure(figsize=(8.2, 0.75 + 0.27 * len(effects)), layout="constrained")
    axes = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, (title, values) in zip(axes, shown.items(), strict=True):
        _draw_bars(panel, title, values)
    axes[0].set_yticks(range(len(effects)), [each.name for each in effects], fontsize=_SMALL)
    axes[0].invert_yaxis()
    return _as_svg(figure)


def _draw_bars(axes: "Axes", title: str, values: Sequence[float | None]) -> None:
    """Draw one figure of all settings, with the value beside each bar."""
    lengths = [0.0 if each is None else min(max(each, 0.0), 1.0) for each in values]
    colours = [INK, *[_PALE] * (len(values) - 1)]
    bars = axes.barh(range(len(values)), lengths, 0.62, color=colours, edgecolor=INK, linewidth=0.6)
    told = ["not measured" if each is None else per_cent(each) for each in values]
    axes.bar_label(bars, told, padding=2, fontsize=_SMALL - 1, color=INK)
    axes.set_xlim(0, 1.4)  # a figure stands behind the longest bar, too
    axes.set_xticks([0, 0.5, 1], ["0", "50", "100 %"], fontsize=_SMALL - 1, color=GREY)
    axes.set_title(title, fontsize=_SMALL + 0.5, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def distances_chart(distances: "Sequence[Distance]") -> str:
    """Draw how far records are from what is rebuilt, by basis and number of components."""
    figure, axes = _empty(width=6.6, height=2.2)
    ordered = sorted(distances, key=lambda each: each.n_components)
    kinds = dict.fromkeys(each.basis for each in distances)
    shades = [INK, TOGETHER, GREY, INK, TOGETHER]
    for kind, mark, shade in zip(kinds, "osD^v", shades, strict=False):
        chosen = [each for each in ordered if each.basis == kind]
        sizes = [each.n_components for each in chosen]
        style: dict[str, Any] = {"marker": mark, "markersize": 4, "color": shade}
        axes.plot(sizes, [each.mean for each in chosen], label=kind, **style)
        axes.plot(sizes, [each.worst for each in chosen], linestyle=":", **style)
    axes.set_xlabel("components", fontsize=_SMALL)
    axes.set_ylabel("distance to the truth", fontsize=_SMALL)
    axes.tick_params(labelsize=_SMALL)
    axes.set_ylim(bottom=0)
    sizes = sorted({each.n_components for each in distances})
    if len(sizes) > 1:
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.set_xticks([], minor=True)
    axes.legend(frameon=False, **_LEGEND)
    return _as_svg(figure)
