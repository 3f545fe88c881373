"""The charts of the page on speed; `speed_figures.py` puts them there."""

# ruff: noqa: INP001 -- run by speed_figures.py, not a package

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "ours": "#2a6f97",
    "scipy loop": "#c8553d",
    "svd loop": "#e0a458",
    "floor": "#9aa5b1",
    "Imakura, randomised SVD + pinv": "#c39bd3",
    "Kawakami, randomised SVD": "#9ad0b5",
    "Imakura, ours": "#7b2d8b",
    "Kawakami, ours": "#2e8b57",
}
NAMES = {"ours": "ODC, ours", "scipy loop": "ODC, scipy loop", "svd loop": "ODC, the papers' loop"}
AXES = {"l": "components l", "a": "anchor rows a", "c": "parties c"}
BASE = {"a": 1000, "l": 50, "c": 50}

Result = Mapping[str, Any]


def sweeps(result: Result) -> str:
    """Draw the three sweeps on the papers' input."""
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    points = [
        each
        for name in ("papers", "published")
        for each in result["sections"].get(name, {}).get("points", [])
    ]
    for free, each in zip(AXES, axes, strict=True):
        _sweep(each, free, points=points)
    axes[0].set_ylabel("seconds")
    handles = {
        label: line
        for each in axes
        for line, label in zip(*each.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=3, frameon=False
    )
    return _svg(figure)


def _sweep(axes: "Axes", free: str, *, points: list[Result]) -> None:
    """Draw one sweep."""
    fixed = {name: value for name, value in BASE.items() if name != free}
    for name, colour in COLOURS.items():
        found = {
            each[free]: each["seconds"][name]
            for each in points
            if name in each["seconds"] and all(each[key] == value for key, value in fixed.items())
        }
        sizes = sorted(found)
        values = [found[size] for size in sizes]
        axes.loglog(sizes, values, color=colour, marker=".", label=NAMES.get(name, name))
    axes.set_xlabel(AXES[free])
    axes.spines[["top", "right"]].set_visible(False)


def ratios(result: Result) -> str:
    """Draw how many times faster than the scipy loop, over components, for every input."""
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for name, section in result["sections"].items():
        points = section.get("points", [])
        if not points or "scipy loop / ours" not in points[0]:
            continue
        for free, each in zip(AXES, axes, strict=True):
            fixed = {key: value for key, value in BASE.items() if key != free}
            found = {
                point[free]: point["scipy loop / ours"]["median"]
                for point in points
                if all(point[key] == value for key, value in fixed.items())
            }
            sizes = sorted(found)
            label = section.get("input", name)
            each.semilogx(sizes, [found[size] for size in sizes], marker=".", label=label)
            each.set_xlabel(AXES[free])
    for each in axes:
        each.axhline(1, color="#1f2933", linewidth=1)
        each.set_ylim(bottom=0)
        each.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("scipy loop / ours")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False
    )
    return _svg(figure)


def _svg(figure: Figure) -> str:
    """Return the figure as an SVG element in the page itself, without date or references."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cobasis"}):
        named = ("Date", "Creator", "Format", "Type")
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(named))
    text = buffer.getvalue().replace("<svg", '<svg style="max-width: 100%; height: auto"', 1)
    return "```{raw} html\n" + text[text.index("<svg") :] + "\n```"
