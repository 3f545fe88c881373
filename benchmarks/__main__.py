"""Measure everything, print it, and keep it: ``./run.sh bench [--quick] [--only NAME]``."""

import argparse
import os
import sys
import time
from typing import Any

from rich.console import Console

from benchmarks import results, tables
from benchmarks.children import in_a_child
from benchmarks.machine import commit, machine, versions
from benchmarks.sections import SECTIONS

WIDE = 150


def main() -> int:
    """Run what was asked for; return 1 where a section failed, not for a missed goal."""
    asked = options()
    on_screen = Console()
    console = on_screen if on_screen.is_terminal else Console(width=WIDE)
    names = asked.only or [name for name, each in SECTIONS.items() if each.exists]
    say_where(console)
    partial = results.Partial(quick=asked.quick)
    if asked.afresh:
        partial.clear()
    found = {}
    for name in names:
        found[name] = partial.read(name) or measured(name, console, quick=asked.quick)
        if "failed" not in found[name]:
            partial.write(name, found[name])
    result = results.whole(found, quick=asked.quick, seconds=results.seconds_of(found))
    if not asked.quick:
        keep(result, console, only=bool(asked.only))
    show(result, console)
    failed = [name for name, each in found.items() if "failed" in each]
    if not failed:
        partial.clear()
    return 1 if failed else 0


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="./run.sh bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three minutes; nothing is kept")
    parser.add_argument(
        "--only",
        action="append",
        choices=list(SECTIONS),
        help="one section; may be given again. Without --quick the kept result gets it anew",
    )
    parser.add_argument(
        "--afresh", action="store_true", help="measure again what a killed run had finished"
    )
    return parser.parse_args()


def say_where(console: Console) -> None:
    """Print what a reader has to know to compare figures."""
    here = machine()
    console.print(
        f"{here['processor']}, {here['cores']} cores, {here['memory_gib']} GiB; "
        f"{', '.join(here['blas']) or 'BLAS unknown'}; load {os.getloadavg()[0]:.1f}"
    )
    console.print(", ".join(f"{name} {version}" for name, version in versions().items()))
    console.print(
        "BLAS threads are pinned to 1 in every section but threads, busy, streaming, party, "
        "training and gpu, which say what they use."
    )


def measured(name: str, console: Console, *, quick: bool) -> dict[str, Any]:
    """Run one section in a process of its own; what it raises is its result."""
    section = SECTIONS[name]
    load = os.getloadavg()[0]
    started = time.perf_counter()
    with console.status(f"{name}: {section.title}"):
        try:
            answer = in_a_child(
                f"{section.module}:measure",
                threads=section.threads,
                quick=quick,
                **section.options,
            )
        except RuntimeError as error:
            console.print(f"[red]{name}: {error}")
            return {"title": section.title, "failed": str(error)}
    took = time.perf_counter() - started
    found = answer["result"]
    console.print(f"{name}: {section.title}, {took:.0f} s")
    return {
        "title": section.title,
        "commit": commit(),
        "machine": machine() | {"blas_threads": answer["blas_threads"]},
        "versions": versions(),
        "load_before": load,
        "section_seconds": round(took, 1),
        **found,
    }


def keep(result: dict[str, Any], console: Console, *, only: bool) -> None:
    """Write the result; with ``--only`` into the one that is there, but no failure over figures."""
    committed = results.read_committed() if only else {}
    if committed:
        good = {name for name, each in committed["sections"].items() if "failed" not in each}
        lost = [
            name for name in good & set(result["sections"]) if "failed" in result["sections"][name]
        ]
        new = {name: each for name, each in result["sections"].items() if name not in lost}
        sections = {**committed["sections"], **new}
        ordered = {name: sections[name] for name in SECTIONS if name in sections}
        result = results.whole(ordered, quick=False, seconds=results.seconds_of(ordered))
        for name in lost:
            console.print(f"{name} failed: its figures of before stay")
    results.commit_to_disk(result)
    console.print(f"written: {results.RESULT}")


def show(result: dict[str, Any], console: Console) -> None:
    """Print the tables."""
    console.print(tables.goals_table(result["goals"]))
    if any(result["fig_6"]["exponents"].values()):
        console.print(tables.fig6_table(result["fig_6"]))
    published = result["sections"].get("published", {}).get("points", [])
    if any(point["does not fit"] for point in published):
        console.print(tables.left_out_table(published))
    console.print(f"{tables.verdicts(result['goals'])}; {result['seconds']:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
