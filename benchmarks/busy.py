"""What happens to the time when a second process keeps every core busy.

A machine that was not quiet before flatters the ratio, so of the quiet time only those rounds
count in which a control says that no core was taken.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import contenders, goals
from benchmarks.inputs import different
from benchmarks.second_core import in_free_rounds
from benchmarks.timing import Call, seconds, summary
from cobasis import ODC, align

SHAPE = {"a": 1000, "l": 50, "c": 400}
SHAPE_QUICK = {"a": 1000, "l": 50, "c": 200}
ROUNDS, NAIVE_ROUNDS = 7, 3
NAIVE_PARTIES = 20
"""The loop without a cap is timed on these: on a busy machine a party can take a second."""
OURS = "busy machine: ours against its quiet time"
LOAD = """
import hashlib, sys, threading
block = bytes(2**20)
def spin():
    while True:
        hashlib.sha256(block)
for _ in range(int(sys.argv[1])):
    threading.Thread(target=spin, daemon=True).start()
print("busy", flush=True)
sys.stdin.read()
"""
"""Hashes in as many threads as there are cores, until its standard input is closed."""


def measure(*, quick: bool) -> dict[str, Any]:
    """Time ours and the scipy loop, both with their defaults, quiet and then busy."""
    images = different("isometric")(**(SHAPE_QUICK if quick else SHAPE))
    few = dict(list(images.items())[:NAIVE_PARTIES])
    calls: dict[str, Call] = {
        "ours": lambda: align(ODC(), images),
        "scipy loop": lambda: contenders.scipy_loop(few),
    }
    load_average = os.getloadavg()[0]
    found = in_free_rounds(calls, wanted=ROUNDS)
    with load():
        rounds = {"ours": ROUNDS, "scipy loop": 1 if quick else NAIVE_ROUNDS}
        busy = {
            name: summary([seconds(call) for _ in range(rounds[name])])
            for name, call in calls.items()
        }
    quiet = {name: summary(runs) for name, runs in found.runs.items() if found.free == ROUNDS}
    slower = {name: busy[name]["median"] / quiet[name]["median"] for name in quiet}
    return {
        "cores": os.cpu_count(),
        "load_before_quiet": load_average,
        "controls": found.controls,
        "parties": {"ours": len(images), "scipy loop": len(few)},
        "seconds": {"quiet": quiet, "busy": busy},
        "slow-down": slower,
        "goals": judged(slower, where=found.told),
    }


def judged(slower: dict[str, float], *, where: str) -> list[dict[str, Any]]:
    """Judge ours, unless too few rounds of the quiet time were quiet."""
    theirs = "busy machine: scipy loop, default BLAS threads, against its quiet time"
    asked = {OURS: ("ours", 3.0), theirs: ("scipy loop", None)}
    if not slower:
        why = f"not quiet before: {where}, and {ROUNDS} were wanted"
        return [goals.not_measured(what, why=why) for what in asked]
    return [
        goals.goal(what, slower[name], most=most, unit="x", where=where)
        for what, (name, most) in asked.items()
    ]


@contextmanager
def load() -> Iterator[None]:
    """Keep all cores busy from another process."""
    with subprocess.Popen(  # noqa: S603 -- our own words
        [sys.executable, "-c", LOAD, str(os.cpu_count() or 1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        try:
            if other.stdout is not None:
                other.stdout.readline()
            time.sleep(0.2)
            yield
        finally:
            other.kill()
