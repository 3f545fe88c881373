"""Results on disk: one JSON file, whole after every section."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import fig6, goals
from benchmarks.inputs import SEED
from benchmarks.machine import ROOT

RESULT = ROOT / "experiments" / "results" / "bench.json"
FORMAT = "cobasis/bench/1"


def read(path: Path) -> dict[str, Any]:
    """Return what a file holds, or nothing where there is none."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write a file under another name first, so that none is half written."""
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    part.rename(path)


def whole(sections: Mapping[str, Any], *, quick: bool) -> dict[str, Any]:
    """Return everything that one run has to say; a section that failed has no time."""
    seconds = float(sum(each.get("section_seconds", 0) for each in sections.values()))
    return {
        "format": FORMAT,
        "quick": quick,
        "seed": SEED,
        "seconds": round(seconds, 1),
        "goals": goals_of(sections),
        "fig_6": fig6.again(sections),
        "sections": dict(sections),
    }


def goals_of(sections: Mapping[str, Any]) -> list[goals.Judged]:
    """Return all goals, each with its section's name; a section that failed has one to say so."""
    found = []
    for name, each in sections.items():
        own = each.get("goals", [])
        if "failed" in each:
            own = [goals.not_measured(name, why=each["failed"], verdict="failed")]
        found += [{**judged, "section": name} for judged in own]
    return found
