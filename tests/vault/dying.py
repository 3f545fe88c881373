"""Runs in a process of its own: the steps that it is given die at every call and within writes."""

import json
import sys
import tempfile
from pathlib import Path

from faults import WRITES, died, dying_after, dying_half_way
from vault.steps import Trial


def deaths(name):
    """Let a step die at each call; where it did, and how often the new state stood already."""
    points, stood = [], []
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as parent:
        trial = Trial(name, Path(parent))

        def dies(act, number):
            call = died(act, number, lambda: trial.work(trial.folder))
            if call:
                points.append(call)
                stood.append(trial.judge(f"{act.__name__} of call {number} ({call}) of '{name}'"))
                trial.reset()
            return call

        number = 1
        while call := dies(dying_after, number):
            if call in WRITES:
                dies(dying_half_way, number)
            number += 1
    return {"points": points, "new": sum(stood)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps({name: deaths(name) for name in sys.argv[2:]}))
