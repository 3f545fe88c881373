"""Regressions and effects for people: as CSV and LaTeX, as pages, and as plots."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from cobasis.algorithms.readable import Table
from cobasis.features.encoder import EncodedColumn
from cobasis.linalg.arrays import Matrix
from cobasis.report.pages import as_csv, as_svg, empty, plain, template, write_files
from cobasis.statistics.coefficients import CoefficientTable
from cobasis.statistics.effect_table import ALIKE, Effect, EffectTable

_OWN = ("name", "estimate", "standard_error", "statistic", "p", "low", "high")
_RATIO = ("ratio", "ratio_low", "ratio_high")
_ACROSS = ("mean", "standard_error", "tau_squared", "i_squared")
_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_TEX |= {"<": "$<$", ">": "$>$"}
_GREY, _BLUE, _RED = "#9aa5b1", "#2a6f97", "#c8553d"
_MARKS = (("x", _GREY), ("o", _BLUE), ("s", "#3a9b78"), ("D", _RED), ("^", "#8a5aa8"))
_LONGEST, _SMALL, _FAR, _WIDE = 26, 9, 3.0, 3.0


Drawn = dict[str, tuple[str, str, Figure]]
"""By file: a figure's title, what is to be said of it, and itself."""


def write_coefficients(table: CoefficientTable, folder: Path) -> Path:
    about = "Of a number per agreed scale, so that all fit one axis; in the table per unit of its "
    about += "column. Of a word against the word that has no column."
    drawn: Drawn = {"forest.svg": ("Effects and their intervals", about, forest(table))}
    if table.shares:
        about = f"At the agreed times, of {table.reference}."
        drawn["survival.svg"] = ("Share without event", about, survival_plot({"": table.shares}))
    files = {"coefficients.csv": as_csv(_records(table)), "coefficients.tex": latex(table.table())}
    return _write(folder, files, [table.table()], drawn, page="coefficients.html")


def write_effects(table: EffectTable, folder: Path) -> Path:
    balance, tables = table.balance, [table.table(), table.balance.table()]
    plot = love_plot(balance.names, balance.standardised, words=balance.adjusted)
    drawn: Drawn = {"love.svg": ("Balance before and after", "", plot)}
    if shares := table.shares:
        about = "At the agreed times, by Kaplan-Meier curves of weighted rows."
        drawn["survival.svg"] = ("Share without event", about, survival_plot(shares))
    effects = [[each.name for each in fields(Effect)], *map(astuple, table.effects)]
    kinds = [f"{each}: {kind}" for kind in ("raw", "standardised") for each in balance.adjusted]
    told, raw = balance.standardised.round(10), np.abs(balance.differences).max(axis=0)
    units = raw / np.maximum(np.abs(balance.standardised).max(axis=0), np.finfo(float).tiny)
    both = np.vstack([told * units, told]).T
    columns = ((name, *line) for name, line in zip(balance.names, both.tolist(), strict=True))
    files = {"effects.csv": as_csv(effects), "balance.csv": as_csv([["name", *kinds], *columns])}
    files |= {"effects.tex": "".join(map(latex, tables))}
    return _write(folder, files, tables, drawn, page="effects.html")


def _write(
    folder: Path, files: Mapping[str, str], tables: Sequence[Table], drawn: Drawn, *, page: str
) -> Path:
    pictures = [(title, about, as_svg(figure)) for title, about, figure in drawn.values()]
    shown = template("estimates.html").render(tables=tables, pictures=pictures)
    plots = {file: figure for file, (_, _, figure) in drawn.items()}
    return write_files(folder, {**files, **plots, page: shown})


def _records(table: CoefficientTable) -> Iterator[list[object]]:
    ratio, across = table.model != "ols", _ACROSS if table.lines[-1].across else ()
    yield [*_OWN, *(_RATIO if ratio else ()), *(f"across_{name}" for name in across)]
    for each in table.lines:
        told = [getattr(each, name) for name in _OWN]
        yield [*told, *(each.ratio if ratio else ()), *(getattr(each.across, x) for x in across)]


def latex(table: Table) -> str:
    header, *rows = (" & ".join(map(_tex, row)) + r" \\" for row in table.lines)
    columns = "l" + "r" * (len(table.header) - 1)
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
    figure, axes = empty(width=5.6, height=0.9 + 0.27 * len(lines))
    axes.axvline(float(drawn(0.0)), color=_GREY, linewidth=1, zorder=0)
    ends = drawn(np.maximum(low, left)), drawn(np.minimum(high, right))
    axes.hlines(places, *ends, color=_BLUE, linewidth=1.6)
    axes.plot(drawn(middle), places, "s", color=_BLUE, markersize=5)
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
    axes.set_xlabel(f"{table.effect}, 95 % interval", fontsize=_SMALL)
    return figure


def survival_plot(curves: Mapping[str, Mapping[float, float]]) -> Figure:
    figure, axes = empty(width=5.6, height=3.3)
    for at, (name, shares) in enumerate(curves.items()):
        colour, line = (_BLUE, _RED)[at % 2], ("-", "--")[at // 2]
        times, left = [0.0, *shares], [1.0, *shares.values()]
        axes.plot(times, left, f"o{line}", color=colour, label=name, markersize=4, linewidth=1.2)
    axes.set(ylim=(0, 1.02), xlabel="time", ylabel="share without event")
    axes.set_xlim(left=0.0)
    if len(curves) > 1:
        axes.legend(frameon=False, fontsize=_SMALL)
    return figure


def _scaled(column: EncodedColumn) -> tuple[str, float]:
    """Return a column's name in the forest, and per how much of it an effect is drawn."""
    name = _label(column.name)
    if column.level is not None:
        return name, 1.0
    unit = plain(getattr(column.feature, "unit", ""))
    return f"{name}, per {column.scale:g} {unit}".rstrip(), column.scale


def _label(name: str) -> str:
    return plain(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}...")


def love_plot(names: Sequence[str], differences: Matrix, *, words: Sequence[str]) -> Figure:
    """Draw how far apart groups are in each column, before and after; the farthest first."""
    apart = np.abs(differences)
    order = np.argsort(-apart[0], kind="stable")
    figure, axes = empty(width=5.6, height=1.1 + 0.27 * len(order))
    places = np.arange(len(order))
    axes.axvline(ALIKE, color=_GREY, linewidth=1, linestyle="--", zorder=0)
    for line, word, (mark, colour) in zip(apart, words, _MARKS, strict=False):
        how: Any = {"color": colour, "fillstyle": "none", "label": word, "clip_on": False}
        axes.plot(line[order], places, mark, **how)
    axes.set_yticks(places, [_label(names[at]) for at in order], fontsize=_SMALL)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(left=0.0)
    axes.grid(axis="y", color=_GREY, alpha=0.3, linewidth=0.6)
    axes.set_xlabel("standardised difference of means, without its sign", fontsize=_SMALL)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    above: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
    axes.legend(frameon=False, fontsize=_SMALL, **above)
    return figure
