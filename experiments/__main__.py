"""The papers' tables and figures, run again: ``./run.sh experiment NAME [--repeats N]``."""

import argparse
import re
import sys
import time

from rich.console import Console

from experiments import running
from experiments.data.sources import MissingDataError
from experiments.page import write_page
from experiments.store import RECORDED, WORK, Results
from experiments.study import names

MINUTES = {"m": 60.0, "h": 3600.0, "s": 1.0}


def main() -> int:
    """Measure what is missing; return 1 where a cell failed, 2 where the call is wrong."""
    console = Console(stderr=True)
    asked = options()
    studies = names() if asked.name == "all" else [asked.name]
    kept = {name: Results(name, folder=RECORDED if asked.record else WORK) for name in studies}
    if not asked.fresh:
        for results in kept.values():
            results.read()
    tasks = running.waiting(studies, asked.repeats, kept)
    try:
        failed = running.run(
            tasks,
            kept,
            console=console,
            until=time.monotonic() + asked.budget,
            workers=asked.workers,
        )
    except MissingDataError as error:
        console.print(f"{error}", markup=False)
        return 2
    left = len(running.waiting(studies, asked.repeats, kept))
    page = write_page(studies, kept, WORK)
    console.print(f"{len(tasks) - left} of {len(tasks)} cells measured; tables in {page}")
    if left and not failed:
        console.print("The time was up before the rest; the same command goes on with it.")
    return 1 if failed else 0


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="./run.sh experiment", description=__doc__)
    known = [*names(), "all"]
    parser.add_argument("name", choices=known, metavar="NAME", help=", ".join(known))
    parser.add_argument(
        "--repeats", type=int, help="how many of each cell (default: as many as the study says)"
    )
    parser.add_argument(
        "--budget", type=seconds, default=float("inf"), help="stop after 90m, 2h or 300s"
    )
    parser.add_argument("--workers", type=int, default=2, help="cells at a time (default 2)")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    parser.add_argument(
        "--record", action="store_true", help=f"write to {RECORDED.name}/, which the docs show"
    )
    return parser.parse_args()


def seconds(text: str) -> float:
    """Read a time such as 90m."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if found is None:
        msg = f"'{text}' is no time; write 90m, 2h or 300s"
        raise argparse.ArgumentTypeError(msg)
    return float(found[1]) * MINUTES[found[2]]


if __name__ == "__main__":
    sys.exit(main())
