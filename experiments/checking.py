"""Repeat 0 measured again, and its digits compared with those that were recorded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch

from experiments.statistics import summary
from experiments.store import RECORDED, Results, versions
from experiments.study import Study, key, load
from experiments.workers import Task


@dataclass(kw_only=True)
class Check:
    """What a second measurement of one study says.

    Attributes
    ----------
    compared : int
        Numbers that both have.
    differ : dict of str to (str, str)
        Recorded and new, as printed, by key.
    left_out : int
        Times, which no second run repeats.
    versions : list of str
        What is installed in another version than when it was recorded.
    """

    compared: int = 0
    differ: dict[str, tuple[str, str]] = field(default_factory=dict)
    left_out: int = 0
    versions: list[str] = field(default_factory=list)


def to_check(name: str) -> list[Task]:
    """List the cells of repeat 0 that are recorded, each with the seconds it took."""
    study, recorded = load(name), Results(name, folder=RECORDED).read().cells
    return [
        Task(
            study=name,
            settings=settings,
            repeat=0,
            expected=recorded[place].seconds,
            shared=study.shared(settings),
        )
        for settings in study.cells
        if (place := key(settings, "0")) in recorded
    ]


def check(name: str, again: Results) -> Check:
    """Compare what was measured again with what is recorded, digit by digit.

    A number counts with as many digits as the documentation prints of it.
    """
    study, recorded = load(name), Results(name, folder=RECORDED).read()
    found = Check(versions=_other_versions(recorded.recorded_with))
    repeats = recorded.values()
    for place, cell in again.cells.items():
        for value_name, value in recorded.cells[place].values.items():
            number = key(cell.settings, value_name)
            if is_time(study, number):
                found.left_out += 1
                continue
            found.compared += 1
            printed = summary(repeats[number]).printed
            there = cell.values.get(value_name)
            new = "nothing" if there is None else printed(there)
            if printed(value) != new:
                found.differ[number] = (printed(value), new)
    return found


def is_time(study: Study, number: str) -> bool:
    """Tell whether a number is a time."""
    return "seconds" in number or any(fnmatch(number, pattern) for pattern in study.times)


def _other_versions(then: Mapping[str, str]) -> list[str]:
    return [
        f"{name} {then[name]} then, {now} here"
        for name, now in versions().items()
        if name in then and then[name] != now
    ]
