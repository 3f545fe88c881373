"""The page that sets our numbers beside the papers', made from results alone."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from experiments.statistics import Summary, summary
from experiments.store import Results
from experiments.study import Published, Study, load

EXPLAINED, OPEN = "differs, see below", "**differs, open**"


def write_page(studies: Iterable[str], kept: Mapping[str, Results], folder: Path) -> Path:
    """Write one Markdown page with a table for each experiment that has results."""
    parts = ["# The papers' tables and figures, run again", ""]
    for name in studies:
        parts += section(load(name), kept[name].values(), name=name)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "evidence.md"
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return path


def section(study: Study, values: Mapping[str, list[float]], *, name: str) -> list[str]:
    """Return the lines of one experiment: ours, the paper's, and whether they agree."""
    lines = [f"## {study.title}", "", f"`./run.sh experiment {name}` · {study.source}", ""]
    lines += [study.settings, ""]
    if not values:
        return [*lines, "*Not measured yet.*", ""]
    lines += [f"| {study.unit} | ours | the paper's | |", "|---|---|---|---|"]
    reasons: dict[str, str] = {}
    for place, repeats in values.items():
        ours, theirs = summary(repeats), study.published.get(place)
        said = ""
        if differ(ours, theirs):
            reason = next(
                (why for start, why in study.explained.items() if place.startswith(start)), ""
            )
            reasons |= {reason: place} if reason else {}
            said = EXPLAINED if reason else OPEN
        lines.append(f"| {place} | {ours} | {_printed(theirs)} | {said} |")
    counts = sorted({len(repeats) for repeats in values.values()})
    lines += ["", f"Repeats: {', '.join(map(str, counts))}; margins are 95 % intervals.", ""]
    return [*lines, *(f"- {why}" for why in reasons), ""]


def differ(ours: Summary, theirs: Published | None) -> bool:
    """Tell whether two numbers are further apart than their two intervals together."""
    if theirs is None or math.isnan(ours.margin):
        return False
    return abs(ours.mean - theirs.value) > ours.margin + (theirs.margin or 0.0)


def _printed(theirs: Published | None) -> str:
    if theirs is None:
        return ""
    return f"{theirs.value:g}" + (f" ± {theirs.margin:g}" if theirs.margin is not None else "")
