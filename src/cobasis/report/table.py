"""A baseline table for people: as lines, as CSV, and as a page with histograms."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from cobasis.disk.whole import make_folder, write_whole
from cobasis.protocol.baseline import BaselineTable, NumberSummary, Summary, WordSummary
from cobasis.report.pages import template

FEW = 5
"""Registers commonly forbid to publish cells of fewer people."""

FILE = "table.json"
_WORDS = {"": "any other", None: "blank"}


def rows_of(table: BaselineTable) -> Iterator[list[str]]:
    """Yield a table's rows: header, then of each column its figures in every group."""
    yield ["", *table.groups, "difference"]
    yield ["rows", *(f"{each:,}" for each in table.n_rows), ""]
    for each in table.columns:
        apart = "" if each.difference is None else f"{each.difference:.2f}"
        if isinstance(each, NumberSummary):
            yield from _number(each, table.n_rows, apart=apart)
        else:
            yield [each.feature.name, *([""] * len(table.groups)), apart]
            by_level = zip(*each.counts, strict=True)
            for level, counts in zip(each.feature.levels, by_level, strict=True):
                name = _WORDS.get(level, level)
                cells = map(_share, counts, table.n_rows)
                yield [f"  {name}", *cells, ""]


def _number(each: NumberSummary, n_rows: tuple[int, ...], *, apart: str) -> Iterator[list[str]]:
    """Yield mean and deviation, quartiles, and blanks where they are agreed on."""
    feature, places = each.feature, range(len(n_rows))
    name = f"{feature.name}, {feature.unit}" if feature.unit else feature.name
    pairs = zip(each.means, each.deviations, strict=True)
    yield [f"{name}: mean (SD)", *(f"{_figure(one)} ({_figure(two)})" for one, two in pairs), apart]
    quartiles = [[each.quantile(share, group=at) for share in (0.5, 0.25, 0.75)] for at in places]
    told = (f"{_figure(mid)} ({_figure(low)} to {_figure(high)})" for mid, low, high in quartiles)
    yield ["  median (quartiles), about", *told, ""]
    if feature.missing == "fill":
        yield ["  blank", *map(_share, each.blanks, n_rows), ""]


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _share(count: int, n_rows: int) -> str:
    return f"{count:,} ({100 * count / n_rows:.1f} %)" if n_rows else f"{count:,}"


def small_cells(table: BaselineTable) -> int:
    """Count cells of some people, and of fewer than five."""
    counts = [
        count
        for each in table.columns
        for group in (each.bins if isinstance(each, NumberSummary) else each.counts)
        for count in group
    ]
    return sum(0 < count < FEW for count in (*table.n_rows, *counts))


def write_table(table: BaselineTable, folder: Path) -> Path:
    """Write a table as a page, as CSV, and as JSON; return the page's place."""
    make_folder(folder)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows_of(table))
    page = template("table.html").render(
        table=table,
        rows=[*rows_of(table)],
        small=small_cells(table),
        histograms=[_histogram(each) for each in table.columns],
    )
    for name, content in (
        (FILE, table.model_dump_json(indent=1)),
        ("table.csv", text.getvalue()),
        ("table.html", page),
    ):
        write_whole(folder / name, content.encode(), mode=0o644)
    return folder / "table.html"


def _histogram(each: Summary) -> dict[str, object] | None:
    """Return a number's bars, of heights from 0 to 1; None for words."""
    if isinstance(each, WordSummary) or not any(each.bins[0]):
        return None
    feature = each.feature
    most = max(each.bins[0])
    return {
        "name": f"{feature.name}, {feature.unit}" if feature.unit else feature.name,
        "heights": [count / most for count in each.bins[0]],
        "low": f"{feature.low:g}",
        "high": f"{feature.high:g}",
        "most": most,
    }
