"""Effects of a treatment for people: as CSV and LaTeX, as a page, and balance as a love plot."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from cobasis.disk.whole import make_folder, write_whole
from cobasis.report.coefficients import latex
from cobasis.report.pages import ALONE, CONSENSUS, GREY, SUMS, TOGETHER, as_svg, template
from cobasis.statistics.effect_table import ALIKE, Balance, Effect, EffectTable

_MARKS = (("x", GREY), ("o", TOGETHER), ("s", CONSENSUS), ("D", ALONE), ("^", SUMS))
_SMALL, _LONGEST = 9, 26


def write_effects(table: EffectTable, folder: Path) -> Path:
    """Write effects and balance as a page, as CSV and LaTeX, with the love plot."""
    make_folder(folder)
    picture, drawn, balance = io.BytesIO(), love_plot(table.balance), table.balance
    drawn.savefig(picture, format="png", dpi=160, metadata={"Software": None})
    page = template("effects.html").render(tables=(table, balance), love=as_svg(drawn))
    effects = [[each.name for each in fields(Effect)], *map(astuple, table.effects)]
    kinds = [f"{each}: {kind}" for kind in ("raw", "standardised") for each in balance.adjusted]
    both = np.vstack([balance.differences, balance.standardised]).T.round(10)
    columns = ((name, *line) for name, line in zip(balance.names, both.tolist(), strict=True))
    for name, content in {
        "effects.csv": as_csv(effects),
        "balance.csv": as_csv([["name", *kinds], *columns]),
        "effects.tex": latex(table) + latex(balance),
        "love.svg": as_svg(drawn),
        "effects.html": page,
    }.items():
        write_whole(folder / name, content.encode(), mode=0o644)
    write_whole(folder / "love.png", picture.getvalue(), mode=0o644)
    return folder / "effects.html"


def as_csv(lines: Iterable[Sequence[object]]) -> str:
    """Write lines to ten digits: so all parties write one and the same file."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(
        [f"{cell:.10g}" if isinstance(cell, float) else cell for cell in line] for line in lines
    )
    return text.getvalue()


def love_plot(balance: Balance) -> Figure:
    """Draw how far apart groups are in each column, before and after; the farthest first."""
    apart = np.abs(balance.standardised)
    order = np.argsort(-apart[0], kind="stable")
    figure = Figure(figsize=(5.6, 1.1 + 0.27 * len(order)), layout="constrained")
    axes, places = figure.add_subplot(), np.arange(len(order))
    axes.axvline(ALIKE, color=GREY, linewidth=1, linestyle="--", zorder=0)
    for line, word, (mark, colour) in zip(apart, balance.adjusted, _MARKS, strict=False):
        axes.plot(
            line[order], places, mark, color=colour, fillstyle="none", label=word, clip_on=False
        )
    shown = ("".join(c if c.isprintable() else "?" for c in each) for each in balance.names)
    names = [each if len(each) <= _LONGEST else f"{each[: _LONGEST - 3]}..." for each in shown]
    axes.set_yticks(places, [names[at].replace("$", r"\$") for at in order], fontsize=_SMALL)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlim(left=0.0)
    axes.grid(axis="y", color=GREY, alpha=0.3, linewidth=0.6)
    axes.set_xlabel("standardised difference of means, without its sign", fontsize=_SMALL)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.legend(
        frameon=False, fontsize=_SMALL, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3
    )
    return figure
