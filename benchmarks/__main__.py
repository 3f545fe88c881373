"""Measure everything, print it, and keep it: ``./run.sh bench [--quick] [--only NAME]``."""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.harness.store import commit, versions
from rich.console import Console
from rich.table import Table

from benchmarks import results
from benchmarks.inputs import INPUTS
from benchmarks.machine import in_a_child, machine

WIDE = 150
COLOURS = {
    "met": "green",
    "missed": "red",
    "failed": "bold red",
    "not measured": "yellow",
    "no goal": "dim",
}


@dataclass(frozen=True)
class Section:
    """One part of the benchmark, run in a process of its own."""

    title: str  # what it measures
    work: str  # module and function under ``benchmarks``
    options: Mapping[str, Any] = field(default_factory=dict)
    threads: bool = False  # whether BLAS may use as many threads as it likes


SECTIONS: Mapping[str, Section] = {
    "exactness": Section("the same numbers as plain decompositions", "exactness:measure"),
    **{
        name: Section(f"Table 5's sweeps: {each}", "sweeps:measure", {"name": each})
        for name, each in zip(("papers", "uniform", "isometric", "shared"), INPUTS, strict=True)
    },
    "published": Section("Imakura and Kawakami as published", "published:measure"),
    "gopp": Section("GOPP with momentum and without", "published:momentum"),
    "threads": Section("two threads against one", "cores:two_threads", threads=True),
    "busy": Section("a busy machine", "cores:busy_machine", threads=True),
    "streaming": Section("20,000 and 100,000 parties", "streaming:measure", threads=True),
    "formulas": Section("formulas against measurements", "formulas:measure"),
    "party": Section("a party's table on disk", "party_table:measure", threads=True),
    "sums": Section("a party's table becomes masked sums", "sums_table:measure", threads=True),
    "training": Section("the analyst's training", "analyst_training:measure", threads=True),
    "round": Section("a whole round of 100 parties", "whole_round:measure"),
    "inbox": Section("the HTTPS inbox", "inbox:measure", threads=True),
    "https": Section("a round of 50 parties over HTTPS", "https_round:measure"),
    "start": Section("imports and help", "start:measure"),
    "trees": Section("trees in NumPy", "tree_models:measure"),
}
"""In the order in which they are run; ``--only`` takes these names."""


def main() -> int:
    """Run what was asked for; return 1 where a section failed, not for a missed goal."""
    asked = options()
    on_screen = Console()
    console = on_screen if on_screen.is_terminal else Console(width=WIDE)
    say_where(console)
    found = {}
    for name in asked.only or SECTIONS:
        found[name] = measured(name, console, quick=asked.quick)
        if not asked.quick:
            keep(name, found[name], console)
    show(results.whole(found, quick=asked.quick), console)
    return int(any("failed" in each for each in found.values()))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run.sh bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three minutes; nothing is kept")
    parser.add_argument(
        "--only",
        action="append",
        choices=list(SECTIONS),
        metavar="NAME",
        help=f"one section, of {', '.join(SECTIONS)}; give the flag once for each. "
        "A run that was killed goes on with these",
    )
    return parser.parse_args()


def say_where(console: Console) -> None:
    here = machine()
    console.print(
        f"{here['processor']}, {here['cores']} cores, {here['memory_gib']} GiB; "
        f"{', '.join(here['blas']) or 'BLAS unknown'}; load {os.getloadavg()[0]:.1f}"
    )
    console.print(", ".join(f"{name} {version}" for name, version in versions().items()))
    free = ", ".join(name for name, each in SECTIONS.items() if each.threads)
    console.print(f"BLAS threads are pinned to 1 in all but these, which say what they use: {free}")


def measured(name: str, console: Console, *, quick: bool) -> dict[str, Any]:
    """Run one section in a process of its own; what it raises is its result."""
    section = SECTIONS[name]
    load, started = os.getloadavg()[0], time.perf_counter()
    with console.status(f"{name}: {section.title}"):
        try:
            how = {"quick": quick, **section.options}
            answer = in_a_child(section.work, threads=section.threads, **how)
        except RuntimeError as error:
            console.print(f"[red]{name}: {error}")
            return {"title": section.title, "failed": str(error)}
    took = time.perf_counter() - started
    console.print(f"{name}: {section.title}, {took:.0f} s")
    return {
        "title": section.title,
        "commit": commit(),
        "machine": machine() | {"blas_threads": answer["blas_threads"]},
        "versions": versions(),
        "load_before": load,
        "section_seconds": round(took, 1),
        **answer["result"],
    }


def keep(name: str, found: dict[str, Any], console: Console) -> None:
    """Write a section into the result that is there, but no failure over figures."""
    sections = results.read(results.RESULT).get("sections", {})
    if "failed" in found and "failed" not in sections.get(name, {"failed": ""}):
        console.print(f"{name} failed: its figures of before stay")
        return
    sections[name] = found
    ordered = {name: sections[name] for name in SECTIONS if name in sections}
    results.write(results.RESULT, results.whole(ordered, quick=False))
    console.print(f"written: {results.RESULT}")


def show(result: dict[str, Any], console: Console) -> None:
    shown = Table(title="Goals", title_justify="left")
    headings = ("section", "goal", "asked", "figure", "verdict", "where")
    for heading in headings:
        shown.add_column(heading, overflow="fold")
    for each in result["goals"]:
        told = {**each, "verdict": f"[{COLOURS[each['verdict']]}]{each['verdict']}"}
        shown.add_row(*(told[heading] for heading in headings))
    console.print(shown)
    counts = Counter(each["verdict"] for each in result["goals"])
    said = ", ".join(f"{counts[word]} {word}" for word in COLOURS if counts[word])
    console.print(f"{said}; {result['seconds']:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
