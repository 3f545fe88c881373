"""Results on disk: section by section while a run lasts, and one JSON file at its end."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import fig6
from benchmarks.inputs import SEED
from benchmarks.machine import ROOT

RESULT = ROOT / "experiments" / "results" / "bench.json"
FORMAT = "cobasis/bench/1"


class Partial:
    """The sections that a run has finished, so that one that was killed goes on from there."""

    def __init__(self, *, quick: bool) -> None:
        kind = "quick" if quick else "whole"
        self._folder = Path(tempfile.gettempdir(), f"cobasis-bench-{kind}-{code_digest()}")

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a section's result, where there is one."""
        path = self._folder / f"{name}.json"
        if not path.exists():
            return None
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    def write(self, name: str, found: Mapping[str, Any]) -> None:
        """Keep a section's result: under another name first, so that none is half written."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        part = self._folder / f"{name}.part"
        part.write_text(json.dumps(found), encoding="utf-8")
        part.rename(self._folder / f"{name}.json")

    def clear(self) -> None:
        """Forget them all."""
        shutil.rmtree(self._folder, ignore_errors=True)


def code_digest() -> str:
    """Return a short hash of all code that is timed or times."""
    found = hashlib.sha256()
    for folder in ("src", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def whole(sections: Mapping[str, Any], *, quick: bool, seconds: float) -> dict[str, Any]:
    """Return everything that one run has to say."""
    return {
        "format": FORMAT,
        "quick": quick,
        "seed": SEED,
        "seconds": round(seconds, 1),
        "goals": goals_of(sections),
        "fig_6": fig6.again(sections),
        "sections": dict(sections),
    }


def seconds_of(sections: Mapping[str, Any]) -> float:
    """Return how long all sections took together; one that failed has no time."""
    return float(sum(each.get("section_seconds", 0) for each in sections.values()))


def goals_of(sections: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return all goals, each with its section's name; a section that failed has one to say so."""
    found = []
    for name, each in sections.items():
        if "failed" in each:
            lost = {"goal": name, "asked": "", "figure": "", "value": None}
            found.append({**lost, "where": each["failed"], "verdict": "failed", "section": name})
        found += [{**judged, "section": name} for judged in each.get("goals", [])]
    return found


def read_committed() -> dict[str, Any]:
    """Return the result that is in the repository, or nothing."""
    if not RESULT.exists():
        return {}
    found: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    return found


def commit_to_disk(result: Mapping[str, Any]) -> None:
    """Write the result where the documentation finds it."""
    RESULT.parent.mkdir(exist_ok=True)
    part = RESULT.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    part.rename(RESULT)
