"""The report's charts, each as one SVG element that stands in the page itself."""

import io
from itertools import combinations
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cobasis.linalg.spans import principal_cosines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cobasis.algorithms.images import Images
    from cobasis.linalg.arrays import Matrix
    from cobasis.report.comparison import Comparison

INK, GREY = "#1f2933", "#9aa5b1"
ALONE, TOGETHER, CONSENSUS, POOLED = "#c8553d", "#2a6f97", "#3a9b78", "#1f2933"


def scores_chart(found: "Comparison") -> str:
    """Draw each party's score: alone, together, with a consensus basis; pooled as a line."""
    names = list(found.alone)
    series = [("alone", found.alone, ALONE), ("together", found.together, TOGETHER)]
    if found.consensus is not None:
        series.append(("consensus basis", found.consensus, CONSENSUS))
    figure, axes = empty_figure(width=max(6.0, 0.9 * len(names)))
    width = 0.8 / len(series)
    for index, (label, scores, colour) in enumerate(series):
        offset = (index - (len(series) - 1) / 2) * width
        places = np.arange(len(names)) + offset
        axes.bar(places, [scores[name] for name in names], width, color=colour, label=label)
    axes.axhline(found.pooled, color=POOLED, linewidth=1.5, linestyle="--", label="pooled")
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel(f"{found.metric} on the common test set")
    axes.set_ylim(top=1.0)
    legend_above(axes)
    return as_svg(figure)


def angles_chart(images: "Images") -> str:
    """Draw the mean principal angle between every two parties' spans, in degrees."""
    names = list(images)
    angles = mean_angles(images)
    figure, axes = empty_figure(
        width=1.8 + 0.55 * len(names), height=max(3.0, 1.4 + 0.5 * len(names))
    )
    drawn = axes.imshow(angles, cmap="Blues", vmin=0, vmax=90)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    for row, column in np.ndindex(*angles.shape):
        dark = angles[row, column] > 45  # noqa: PLR2004 -- half of the colour scale
        axes.text(
            column,
            row,
            f"{angles[row, column]:.0f}",
            ha="center",
            va="center",
            color="white" if dark else INK,
            fontsize=8,
        )
    figure.colorbar(drawn, ax=axes, label="degrees", shrink=0.8)
    return as_svg(figure)


def mean_angles(images: "Images") -> "Matrix":
    """Return the mean principal angle of every two parties, in degrees, as a square table."""
    names = list(images)
    angles = np.zeros((len(names), len(names)))
    for one, two in combinations(range(len(names)), 2):
        cosines = principal_cosines(images[names[one]], images[names[two]])
        angles[one, two] = angles[two, one] = np.degrees(np.arccos(cosines)).mean()
    return angles


def empty_figure(*, width: float, height: float = 3.4) -> tuple[Figure, "Axes"]:
    """Return an empty figure in the reports' style."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def legend_above(axes: "Axes") -> None:
    """Put the legend above the chart."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False)


def as_svg(figure: Figure) -> str:
    """Return the figure as an SVG element without prologue, date or outside references."""
    buffer = io.StringIO()
    with mpl.rc_context():
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "cobasis"})
        figure.savefig(
            buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    text = buffer.getvalue()
    return text[text.index("<svg") :]
