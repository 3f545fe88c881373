"""What came of a round, in words and in files: worth, tables, coefficients, clusters."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cobasis.cli.words import listed, wrapped
from cobasis.disk.whole import write_whole
from cobasis.protocol.baseline import BaselineTable
from cobasis.protocol.card import ModelCard
from cobasis.report.estimates import write_coefficients, write_effects
from cobasis.report.pages import as_csv, render_card, write_files
from cobasis.report.table import median_of, rows_of, small_cells, write_table
from cobasis.statistics.coefficients import CoefficientTable
from cobasis.statistics.effect_table import EffectTable


def write_card(card: ModelCard, page: Path, *, party: str = "") -> None:
    """Write a model card as a page, as all see it or as a party got it."""
    write_whole(page, render_card(card, party=party).encode())


def clusters_in_words(lines: Sequence[Sequence[str | float]], *, to: Path) -> Iterator[str]:
    """Write clusters into a folder, and yield them as lines."""
    place = write_files(to, {"clusters.csv": as_csv(lines)})
    for name, *cells in lines:
        told = (f"{each:>10.10}" if isinstance(each, str) else f"{each:>10.4g}" for each in cells)
        yield f"  {name:24.24}{''.join(told)}"
    if not lines[2:]:
        yield from wrapped("Fewer components than encoded columns tell no centre by raw columns.")
    yield from wrapped(f"The clusters: {place}.")


def coefficients_in_words(coefficients: CoefficientTable, *, to: Path) -> Iterator[str]:
    """Write a regression's table into a folder, and yield it as lines."""
    page = write_coefficients(coefficients, to)
    yield from coefficients.summary().splitlines()
    yield from wrapped(f"The table and its forest plot: {page}, with CSV and LaTeX beside it.")


def effects_in_words(effects: EffectTable, *, to: Path) -> Iterator[str]:
    """Write effects into a folder, and yield them as lines."""
    page = write_effects(effects, to)
    yield from effects.summary().splitlines()
    yield from wrapped(f"Effects, balance and love plot: {page}, with CSV and LaTeX beside it.")


def worth_in_words(scores: Mapping[str, float]) -> str:
    """Say what the common model is worth on all parties' held-back rows."""
    if not scores["rows"]:
        return "No party held back enough rows, so nothing is known of the model's worth."
    told = [f"{word} {scores[name]:.3g}" for name, word in _CALLED.items() if name in scores]
    if "accuracy" in scores:
        told[0] += f" ({scores['accuracy_low']:.3f} to {scores['accuracy_high']:.3f})"
    return f"On {scores['rows']:,.0f} rows that all parties held back: {', '.join(told)}."


def importance_in_words(card: ModelCard) -> Iterator[str]:
    """Yield what each column is to the common model, the largest first; nothing where not asked."""
    if card.importance:
        figure = "accuracy" if card.classes else "R2"
        yield f"By how much {figure} falls where a column is shuffled, and the standard error:"
    told = sorted(card.importance.items(), key=lambda each: -each[1][0])
    for name, (falls, error) in told[:_MOST_COLUMNS]:
        yield f"  {name:40.40}{falls:>10.4f}{error:>10.4f}"
    if len(told) > _MOST_COLUMNS:
        yield f"  and {len(told) - _MOST_COLUMNS} columns more, on the card's page"


_MOST_COLUMNS = 20
"""Columns whose importance is shown on a terminal."""

_CALLED = {"accuracy": "accuracy", "auc": "AUC", "log_loss": "log loss", "r2": "R2", "mae": "MAE"}
"""What is said of scores; R2 and MAE are of predictions cut at the agreed range."""


def table_in_words(table: BaselineTable, *, to: Path) -> Iterator[str]:
    """Write a baseline table into a folder; yield its column of all rows as lines."""
    page = write_table(table, to)
    for name, told, *_ in rows_of(table):
        yield f"  {name:40.40}{told:>36}"
    if few := small_cells(table):
        yield from wrapped(f"{few:,} cells or bins have fewer than five people.")
    if (found := table.survival) is not None and found.times:
        for group, curve in zip(table.groups[1:], found.groups[1:], strict=True):
            yield f"  {f'median {found.time} of {group}':40.40}{median_of(curve):>36}"
    groups = f", by {listed(table.groups[1:])}" if table.groups[1:] else ""
    yield from wrapped(f"The table{groups}: {page}, with CSV and JSON beside it.")
