"""What a run prints: every goal with its figure, then Figure 6 again."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

COLOURS = {
    "met": "green",
    "missed": "red",
    "failed": "bold red",
    "not measured": "yellow",
    "no goal": "dim",
}


def goals_table(goals: list[dict[str, Any]]) -> Table:
    """Return every goal, met or missed, with its figure."""
    table = Table(title="Goals", title_justify="left")
    headings = ("section", "goal", "asked", "figure", "verdict", "where")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for each in goals:
        shown = {**each, "verdict": f"[{COLOURS[each['verdict']]}]{each['verdict']}"}
        table.add_row(*(shown[heading] for heading in headings))
    return table


def fig6_table(found: Mapping[str, Any]) -> Table:
    """Return fitted exponents by contender, the paper's in the first lines."""
    headings = ("contender", "l", "a", "c", "ms a party (95 %)")
    table = Table(*headings, title="Figure 6 again: exponent (R2)", title_justify="left")
    paper = found["paper"]
    for name, (slope, low, high, _) in paper["slopes"].items():
        cells = [_exponent(*paper["exponents"][free][name]) for free in ("l", "a", "c")]
        table.add_row(f"{name}, in the paper", *cells, _interval(slope, low, high), style="dim")
    names = dict.fromkeys(name for each in found["exponents"].values() for name in each)
    for name in names:
        cells = []
        for free in ("l", "a", "c"):
            fitted = found["exponents"][free].get(name)
            cells.append(_exponent(fitted["exponent"], fitted["r2"]) if fitted else "")
        line = found["slopes"].get(name)
        last = _interval(line["slope"], line["low"], line["high"]) if line else ""
        table.add_row(name, *cells, last)
    return table


def left_out_table(points: list[dict[str, Any]]) -> Table:
    """Return what was not run, and what it would have taken."""
    title = "Published forms that do not fit (estimates)"
    table = Table("form", "l", "a", "c", "GB", "seconds a run", title=title, title_justify="left")
    for point in points:
        for name, each in point["does not fit"].items():
            sizes = (str(point[letter]) for letter in ("l", "a", "c"))
            table.add_row(name, *sizes, f"{each['bytes'] / 1e9:.1f}", f"{each['seconds']:.0f}")
    return table


def verdicts(goals: list[dict[str, Any]]) -> str:
    """Return how many goals were met, in one line."""
    counts = {word: sum(each["verdict"] == word for each in goals) for word in COLOURS}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _exponent(value: float, r2: float) -> str:
    return f"{value:.2f} ({r2:.2f})"


def _interval(slope: float, low: float, high: float) -> str:
    return f"{1000 * slope:.3g} ({1000 * low:.3g} to {1000 * high:.3g})"
