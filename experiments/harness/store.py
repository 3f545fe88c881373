"""Results on disk: one JSON file an experiment, whole after every cell."""

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from experiments.harness.study import SEED, Settings, Study, Values, key

HERE = Path(__file__).parents[1]
RECORDED = HERE / "results"  # what the documentation is made from
WORK = HERE.parent / "build" / "experiments"  # where a run writes
PACKAGES = (
    *("cobasis", "numpy", "scipy", "scikit-learn", "rdkit"),
    *("safetensors", "polars", "xgboost-cpu"),  # which are timed only
)


class DamagedResultsError(ValueError):
    """A file of results that cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    settings: Settings
    repeat: int  # which repeat; seeds follow from it
    values: Values  # what was measured
    seconds: float
    commit: str  # the code that measured it
    wall: float = 0.0  # seconds on the clock; 0 where nobody looked

    @property
    def place(self) -> str:
        return key(self.settings, str(self.repeat))


@dataclass
class Results:
    name: str  # the experiment's
    folder: Path = WORK  # where its file is
    cells: dict[str, Cell] = field(default_factory=dict)
    recorded_with: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.json"

    def read(self) -> "Results":
        if not self.path.exists():
            return self
        try:
            whole = json.loads(self.path.read_text(encoding="utf-8"))
            cells = unpacked(whole.get("cells", []))  # a file from before there were cells has none
            self.cells = {cell.place: cell for cell in in_order(cells)}
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            told = f"{self.path} is no result of an experiment ({error})"
            raise DamagedResultsError(f"{told}; move it away or use --fresh") from error
        self.recorded_with = whole.get("versions", {})
        return self

    def write(self, study: Study) -> None:
        """Write all cells, so that the file is whole at any time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        whole = {
            "name": self.name,
            "title": study.title,
            "unit": study.unit,
            "source": study.source,
            "settings": study.settings,
            "seed": SEED,
            "versions": versions(),
        }
        head = json.dumps(whole, indent=1).removesuffix("\n}")
        cells = ",\n".join(map(json.dumps, packed(in_order(self.cells.values()))))
        part = self.path.with_suffix(".part")
        part.write_text(f'{head},\n "cells": [\n{cells}\n ]\n}}\n', encoding="utf-8")
        part.replace(self.path)

    def values(self) -> dict[str, list[float]]:
        """Return all repeats of each number, by its key, in their order."""
        whole = self._laid({cell.repeat for cell in self.cells.values()})
        return {place: there(each) for place, each in whole.items()}

    def complete(self, study: Study) -> dict[str, list[float]]:
        """Return the same of repeats that every cell of a study has; NaN where a number lacks."""
        had: dict[str, set[int]] = {key(settings, ""): set() for settings in study.cells}
        for cell in self.cells.values():
            had.get(key(cell.settings, ""), set()).add(cell.repeat)
        return self._laid(set.intersection(*had.values()) if had else set())

    def _laid(self, whole: set[int]) -> dict[str, list[float]]:
        """Return some repeats of each number; NaN where a cell's repeat has no such number."""
        order = {repeat: index for index, repeat in enumerate(sorted(whole))}
        found: dict[str, list[float]] = {}
        for cell in self.cells.values():
            for name, value in cell.values.items() if cell.repeat in whole else ():
                each = found.setdefault(key(cell.settings, name), [math.nan] * len(order))
                each[order[cell.repeat]] = value
        return found


def there(repeats: Iterable[float]) -> list[float]:
    """Return the repeats that have a number; a method that was refused in one has none (NaN)."""
    return [each for each in repeats if not math.isnan(each)]


def recorded(name: str) -> Results:
    return Results(name, folder=RECORDED).read()


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda cell: (cell.repeat, cell.place))


def packed(cells: Iterable[Cell]) -> list[Mapping[str, Any]]:
    """Return a line for all repeats of a cell; a number that one of them lacks is null."""
    together: dict[str, list[Cell]] = {}
    for cell in cells:
        together.setdefault(key(cell.settings, ""), []).append(cell)
    return [
        {
            "settings": each[0].settings,
            "repeats": [cell.repeat for cell in each],
            "values": {
                name: [cell.values.get(name) for cell in each]
                for name in dict.fromkeys(name for cell in each for name in cell.values)
            },
            "seconds": [cell.seconds for cell in each],
            "wall": [cell.wall for cell in each],
            "commits": [cell.commit for cell in each],
        }
        for each in together.values()
    ]


def unpacked(lines: Iterable[Mapping[str, Any]]) -> Iterator[Cell]:
    for each in lines:
        numbers = each["values"].items()
        for turn, repeat in enumerate(each["repeats"]):
            yield Cell(
                settings=each["settings"],
                repeat=repeat,
                values={name: found[turn] for name, found in numbers if found[turn] is not None},
                seconds=each["seconds"][turn],
                wall=each["wall"][turn],
                commit=each["commits"][turn],
            )


def versions() -> Mapping[str, str]:
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def commit() -> str:
    """Return the commit, with a plus where files other than results were changed since."""
    if "COBASIS_COMMIT" in os.environ:
        return os.environ["COBASIS_COMMIT"]
    where = ["git", "-C", str(HERE), "-c", f"safe.directory={HERE.parent}"]
    try:
        found = subprocess.run([*where, "rev-parse", "--short=10", "HEAD"], check=True, **_QUIET)  # noqa: S603
        changed = subprocess.run([*where, *_CHANGED], check=True, **_QUIET)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return str(found.stdout).strip() + ("+" if changed.stdout else "")


_CHANGED = ("status", "--porcelain", "-uno", "--", ":/", ":(top,exclude)experiments/results")
_QUIET: dict[str, Any] = {"capture_output": True, "text": True}
