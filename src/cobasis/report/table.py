"""A baseline table for people: as lines, as CSV, and as a page with histograms and curves."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from cobasis.algorithms.readable import Table
from cobasis.protocol.baseline import BaselineTable, ByWeight, NumberSummary, Summary
from cobasis.protocol.curves import Curves
from cobasis.protocol.totals import n_small
from cobasis.report.estimates import love_plot
from cobasis.report.pages import as_csv, as_svg, empty, plain, template, write_files

FILE = "table.json"
_WORDS = {"": "any other", None: "blank"}
_SMALL, _MARKS = 0.0001, 5


def rows_of(table: BaselineTable) -> Iterator[list[str]]:
    yield ["", *table.groups, "difference"]
    yield ["rows", *(f"{each:,}" for each in table.n_rows), ""]
    if table.weight:
        yield [f"'{table.weight}' above 0", *map(_share, table.n_weighed, table.n_rows), ""]
        sure = (_figure(each) for each in table.effective_rows)
        yield [f"effective rows by '{table.weight}'", *sure, ""]
    for each in table.columns:
        if isinstance(each, NumberSummary):
            yield from _number(each, table.n_rows)
        else:
            blank, weighed = [""] * len(table.groups), each.by_weight
            yield [each.feature.name, *blank, _apart(each)]
            names = [_WORDS.get(level, level) for level in each.feature.levels]
            for name, counts in zip(names, zip(*each.counts, strict=True), strict=True):
                yield [f"  {name}", *map(_share, counts, table.n_rows), ""]
            if weighed is not None:
                yield ["  by weight", *blank, _apart(weighed)]
                for name, told in zip(names, zip(*weighed.means, strict=True), strict=True):
                    shares = ("-" if one is None else f"{100 * one:.1f} %" for one in told)
                    yield [f"    {name}", *shares, ""]
    if table.survival is not None:
        yield from _curves(table.survival)


def _apart(each: Summary | ByWeight) -> str:
    return "" if each.difference is None else f"{each.difference:.2f}"


def _curves(found: Curves) -> Iterator[list[str]]:
    blank = [""] * len(found.groups)
    if not found.times:
        yield [f"had '{found.event}'", *blank, ""]
        yield [f"  fewer than {found.fewest_leavers} left in a group", *blank, ""]
        return
    told = (f"{sum(each.events):,}" for each in found.groups)
    yield [f"had '{found.event}' up to {found.times[-1]:g}", *told, ""]
    told = (
        f"{_figure(x.median, otherwise='not reached')} "
        f"({_figure(x.median_low)} to {_figure(x.median_high)})"
        for x in found.groups
    )
    yield ["  median (95 % interval)", *told, ""]
    for means in zip(*(each.means for each in found.groups), strict=True):
        told = (f"{_figure(each.mean)} ({_figure(each.error)})" for each in means)
        yield [f"  mean up to {means[0].until:g} (error)", *told, ""]
    if (test := found.log_rank) is not None:
        p = f"p = {test.p:.4f}" if test.p >= _SMALL else f"p < {_SMALL}"
        yield ["  log-rank test", f"chi2 {test.chi_squared:.2f}, df {test.degrees}, {p}", *blank]


def _number(each: NumberSummary, n_rows: tuple[int, ...]) -> Iterator[list[str]]:
    feature, places = each.feature, range(len(n_rows))
    name = f"{feature.name}, {feature.unit}" if feature.unit else feature.name
    pairs = zip(each.means, each.deviations, strict=True)
    told = (f"{_figure(mean)} ({_figure(deviation)})" for mean, deviation in pairs)
    yield [f"{name}: mean (SD)", *told, _apart(each)]
    quartiles = [[each.quantile(share, group=at) for share in (0.5, 0.25, 0.75)] for at in places]
    told = (f"{_figure(mid)} ({_figure(low)} to {_figure(high)})" for mid, low, high in quartiles)
    yield ["  median (quartiles), about", *told, ""]
    if each.by_weight is not None:
        means = (_figure(mean) for (mean,) in each.by_weight.means)
        yield ["  mean by weight", *means, _apart(each.by_weight)]
    if feature.missing == "fill":
        yield ["  blank", *map(_share, each.blanks, n_rows), ""]


def _figure(value: float | None, *, otherwise: str = "-") -> str:
    return otherwise if value is None else f"{value:.4g}"


def _share(count: int, n_rows: int) -> str:
    return f"{count:,} ({100 * count / n_rows:.1f} %)" if n_rows else f"{count:,}"


def small_cells(table: BaselineTable) -> int:
    cells = (
        each.bins if isinstance(each, NumberSummary) else each.counts for each in table.columns
    )
    left = np.subtract(table.n_rows[: len(table.n_weighed)], table.n_weighed).tolist()
    return n_small(np.array([*table.n_rows, *table.n_weighed, *left, *chain(*chain(*cells))]))


def write_table(table: BaselineTable, folder: Path) -> Path:
    header, *rows = map(tuple, rows_of(table))
    page = template("table.html").render(
        table=table,
        shown=Table(header=header, rows=rows),
        small=small_cells(table),
        curves=_drawn(table),
        balance=_balance(table),
    )
    files = {FILE: table.model_dump_json(indent=1), "table.csv": as_csv(rows_of(table))}
    if table.survival is not None:
        files["survival.csv"] = as_csv(_counts(table.survival, table.groups))
    return write_files(folder, {**files, "table.html": page})


def _counts(found: Curves, groups: tuple[str, ...]) -> Iterator[Iterable[object]]:
    """Yield the curves' numbers, a row for each group and time; empty where none is known."""
    columns = ("at_risk", "events", "censored", "shares", "low", "high")
    yield ["group", found.time, *columns]
    for name, each in zip(groups, found.groups, strict=True):
        cells = zip(found.times, *(getattr(each, column) for column in columns), strict=True)
        yield from ([name, *row] for row in cells)


def _balance(table: BaselineTable) -> str:
    """Draw how far apart groups are in each column, and how far by weight."""
    found = [
        (each.feature.name, each.difference, each.by_weight.difference)
        for each in table.columns
        if each.by_weight and None not in (each.difference, each.by_weight.difference)
    ]
    if not found:
        return ""
    names, *apart = zip(*found, strict=True)
    return as_svg(love_plot(names, np.array(apart), words=("rows", "rows by weight")))


def _drawn(table: BaselineTable) -> str:
    """Draw the groups' curves with their intervals, or that of all rows, and numbers at risk."""
    found = table.survival
    if found is None or not found.times:
        return ""
    grouped, last = len(table.groups) > 1, found.times[-1]
    named = [*zip(table.groups, found.groups, table.n_rows, strict=True)][grouped:]
    figure, axes = empty(width=5.2, height=3.3 + 0.2 * len(named))
    below, times = axes.get_xaxis_transform(), [0.0, *found.times]
    marks = sorted({bisect_left(times, last * part / _MARKS) for part in range(_MARKS + 1)})
    for at, (name, each, n_rows) in enumerate(named):
        colour, there = f"C{at}", [n_rows, *each.at_risk]
        low, shares, high = (
            [1.0, *(math.nan if x is None else x for x in some)]
            for some in (each.low, each.shares, each.high)
        )
        axes.step(times, shares, where="post", color=colour, label=plain(name))
        axes.fill_between(times, low, high, step="post", color=colour, alpha=0.15, linewidth=0)
        off = (0, -48 - 14 * at)  # in points: as parts of axes that shrink, the last were cut off
        for mark in marks:
            place, told = (times[mark], 0), f"{there[mark]:,}"
            axes.annotate(told, place, off, below, "offset points", color=colour, ha="center")
    axes.set_xticks([times[mark] for mark in marks])
    axes.set(ylim=(0, 1.02), xlim=(0, last), ylabel=plain(f"without '{found.event}'"))
    axes.set_xlabel(f"{plain(found.time)}; below: how many are at risk")
    if grouped:
        axes.legend(frameon=False)
    return as_svg(figure)
