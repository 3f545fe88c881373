"""Results on disk: one JSON file an experiment, whole after every cell."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from experiments.study import Settings, Study, Values, key

HERE = Path(__file__).parent
RECORDED = HERE / "results"
"""What the documentation is made from."""

WORK = HERE.parent / "build" / "experiments"
"""Where a run writes."""

PACKAGES = ("cobasis", "numpy", "scipy", "scikit-learn", "rdkit")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measured cell.

    Attributes
    ----------
    settings : Settings
        Which.
    repeat : int
        Which repeat; seeds follow from it.
    values : mapping of str to float
        What was measured.
    seconds : float
        Of one core.
    commit : str
        The code that measured it.
    """

    settings: Settings
    repeat: int
    values: Values
    seconds: float
    commit: str

    @property
    def place(self) -> str:
        """What tells it from all other cells of its study."""
        return key(self.settings, str(self.repeat))


@dataclass
class Results:
    """The cells of one experiment, kept in a file.

    Attributes
    ----------
    name : str
        The experiment's.
    folder : Path
        Where its file is.
    cells : dict of str to Cell
        By place.
    """

    name: str
    folder: Path = WORK
    cells: dict[str, Cell] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The file."""
        return self.folder / f"{self.name}.json"

    def read(self) -> "Results":
        """Read what is there already."""
        if self.path.exists():
            kept = json.loads(self.path.read_text(encoding="utf-8"))["cells"]
            self.cells = {cell.place: cell for cell in (Cell(**each) for each in kept)}
        return self

    def write(self, study: Study) -> None:
        """Write all cells, so that the file is whole at any time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        cells = sorted(self.cells.values(), key=lambda cell: (cell.repeat, cell.place))
        whole = {
            "name": self.name,
            "title": study.title,
            "unit": study.unit,
            "versions": versions(),
            "cells": [vars(cell) for cell in cells],
        }
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
        part.replace(self.path)

    def values(self) -> dict[str, list[float]]:
        """Return all repeats of each number, by its key."""
        found: dict[str, list[float]] = {}
        for cell in self.cells.values():
            for name, value in cell.values.items():
                found.setdefault(key(cell.settings, name), []).append(value)
        return found


def versions() -> Mapping[str, Any]:
    """Return what numbers depend on besides the code."""
    return {name: version(name) for name in PACKAGES} | {
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def commit() -> str:
    """Return the commit, with a plus where files were changed since."""
    if "COBASIS_COMMIT" in os.environ:
        return os.environ["COBASIS_COMMIT"]
    where = ["git", "-C", str(HERE), "-c", f"safe.directory={HERE.parent}"]
    try:
        found = subprocess.run([*where, "rev-parse", "--short=10", "HEAD"], check=True, **_QUIET)  # noqa: S603
        changed = subprocess.run([*where, "status", "--porcelain", "-uno"], check=True, **_QUIET)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return str(found.stdout).strip() + ("+" if changed.stdout else "")


_QUIET: dict[str, Any] = {"capture_output": True, "text": True}
