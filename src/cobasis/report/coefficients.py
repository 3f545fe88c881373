"""A regression table for people: as CSV, JSON and LaTeX, as a page, and as a forest plot."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from cobasis.disk.whole import make_folder, write_whole
from cobasis.features.encoder import EncodedColumn
from cobasis.models.regressions import Figures
from cobasis.report.pages import GREY, INK, TOGETHER, as_svg, template
from cobasis.statistics.coefficients import CoefficientTable
from cobasis.statistics.effect_table import Balance, EffectTable

_OWN = ("name", "estimate", "standard_error", "statistic", "p", "low", "high")
_RATIO = ("ratio", "ratio_low", "ratio_high")
_ACROSS = ("mean", "standard_error", "tau_squared", "i_squared")
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_TEX |= {"<": "$<$", ">": "$>$"}
_LONGEST, _SMALL, _FAR, _WIDE = 26, 9, 3.0, 3.0


def write_coefficients(table: CoefficientTable, folder: Path) -> Path:
    """Write a table as a page, as CSV, JSON and LaTeX, with its forest; return the page's place."""
    make_folder(folder)
    text, picture, figure = io.StringIO(newline=""), io.BytesIO(), forest(table)
    csv.writer(text, lineterminator="\n").writerows(_records(table))
    figure.savefig(picture, format="png", dpi=160, metadata={"Software": None})
    drawn = as_svg(figure)
    page = template("coefficients.html").render(table=table, forest=drawn)
    told = {each.name: getattr(table, each.name) for each in fields(Figures)}
    told |= {"effect": table.effect, "level": table.level, "lines": [*map(asdict, table.lines)]}
    told |= {"covariance": table.covariance.tolist()}
    for name, content in {
        "coefficients.csv": text.getvalue().encode(),
        "coefficients.json": json.dumps(told, indent=1).encode(),
        "coefficients.tex": latex(table).encode(),
        "forest.svg": drawn.encode(),
        "forest.png": picture.getvalue(),
        "coefficients.html": page.encode(),
    }.items():
        write_whole(folder / name, content, mode=0o644)
    return folder / "coefficients.html"


def _records(table: CoefficientTable) -> Iterator[list[object]]:
    """Yield header and lines, to ten digits: so all parties write one and the same file."""
    ratio, compared = table.model != "ols", any(each.across for each in table.lines)
    across = [f"across_{name}" for name in _ACROSS]
    yield [*_OWN, *(_RATIO if ratio else ()), *(across if compared else ())]
    for each in table.lines:
        told = [getattr(each, name) for name in _OWN]
        told += each.ratio if ratio else ()
        told += [getattr(each.across, name, "") for name in _ACROSS] if compared else ()
        yield [f"{cell:.10g}" if isinstance(cell, float) else cell for cell in told]


def latex(table: CoefficientTable | EffectTable | Balance) -> str:
    """Write a table with the rules of booktabs."""
    header, *rows = (" & ".join(map(_tex, row)) + r" \\" for row in table.cells)
    columns = "l" + "r" * (len(table.cells[0]) - 1)
    notes = (f"% {' '.join(each.split())}" for each in (table.title, *table.notes))
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    rules = (r"\toprule", header, r"\midrule", *rows, r"\bottomrule")
    return "\n".join((*notes, begin, *rules, end, ""))


def _tex(text: str) -> str:
    plain = " ".join(text.split())
    return re.sub(r"[\\~^<>&%$#_{}]", lambda one: _TEX.get(one[0], f"\\{one[0]}"), plain)


def forest(table: CoefficientTable) -> Figure:
    """Draw each column's effect and its interval: of a number per agreed scale, to fit one axis."""
    lines = table.lines[-len(table.columns) :]
    names, told = zip(*map(_scaled, table.columns), strict=True)
    scales, places = np.array(told), np.arange(len(lines))
    middle, low, high = scales * np.array([(one.estimate, one.low, one.high) for one in lines]).T
    # An interval that is far longer than the others leaves the picture, so that these stay visible.
    reach = _FAR * float(np.median(high - low))
    left, right = max(low.min(), middle.min() - reach), min(high.max(), middle.max() + reach)
    left, right = min(left, 0.0), max(right, 0.0)
    left, right = left - 0.04 * (right - left), right + 0.04 * (right - left)
    drawn = np.exp if table.model != "ols" else np.positive
    figure = Figure(figsize=(5.6, 0.9 + 0.27 * len(lines)), layout="constrained")
    axes = figure.add_subplot()
    axes.axvline(float(drawn(0.0)), color=GREY, linewidth=1, zorder=0)
    ends = drawn(np.maximum(low, left)), drawn(np.minimum(high, right))
    axes.hlines(places, *ends, color=TOGETHER, linewidth=1.6)
    axes.plot(drawn(middle), places, "s", color=TOGETHER, markersize=5)
    for place, each, scale in zip(places, lines, scales, strict=True):
        own = np.array([one for one, _ in each.across.estimates.values()] if each.across else [])
        axes.plot(drawn(own * scale), own * 0 + place + 0.3, "|", color=INK, markersize=4)
    wide = table.model != "ols" and right - left > _WIDE
    axes.set_xscale("linear" if table.model == "ols" else "log")
    axes.xaxis.set_major_locator(LogLocator(numticks=6) if wide else MaxNLocator(5))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlim(float(drawn(left)), float(drawn(right)))
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_yticks(places, names, fontsize=_SMALL)
    figures = zip(*map(drawn, (middle, low, high)), strict=True)
    beside = axes.secondary_yaxis("right")
    written = ["{:.3g} ({:.3g} to {:.3g})".format(*each) for each in figures]
    beside.set_yticks(places, written, fontsize=_SMALL)
    for side in (axes, beside):
        side.tick_params(axis="y", length=0)
        side.spines[["top", "left", "right"] if side is axes else ["right"]].set_visible(False)
    axes.set_xlabel(f"{table.effect}, {100 * table.level:g} % interval", fontsize=_SMALL)
    return figure


def _scaled(column: EncodedColumn) -> tuple[str, float]:
    """Return a column's name in the forest, and per how much of it an effect is drawn."""
    name = "".join(each if each.isprintable() else "?" for each in column.name)
    name = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
    name = name.replace("$", r"\$")  # else matplotlib reads a formula
    if column.level is not None:
        return name, 1.0
    unit = getattr(column.feature, "unit", "")
    return f"{name}, per {column.scale:g} {unit}".rstrip(), column.scale
