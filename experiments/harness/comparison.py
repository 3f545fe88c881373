"""Every number of a study beside the paper's, and how they are laid out: across, down, apart."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.harness.statistics import Summary, summary
from experiments.harness.store import Results
from experiments.harness.study import CONDITIONS, Published, Settings, Study, key

AGREES, EXPLAINED, OPEN, UNJUDGED = "agrees", "explained", "open", "one repeat"


@dataclass(frozen=True, kw_only=True)
class Number:
    place: str
    settings: Settings  # of its cell; a span condition that its name begins with is one of them
    name: str  # in its cell, without that
    ours: Summary  # over repeats
    theirs: Published | None = None
    reason: str = ""  # why they differ, where they do and somebody knows

    @property
    def verdict(self) -> str:
        """One of the four words above, or nothing where the paper prints no such number."""
        if self.theirs is None:
            return ""
        if math.isnan(self.ours.margin):
            return UNJUDGED
        if not differ(self.ours, self.theirs):
            return AGREES
        return EXPLAINED if self.reason else OPEN


def numbers(study: Study, results: Results) -> list[Number]:
    """Return what was measured, in the order of the cells, then of the values in them."""
    found, values = [], results.values()
    named: dict[str, dict[str, None]] = {}
    for cell in results.cells.values():
        named.setdefault(key(cell.settings, ""), {}).update(dict.fromkeys(cell.values))
    carriers = [s for s in study.cells if any(map(_condition, named.get(key(s, ""), ())))]
    varied = {field for each in carriers for field in each if each[field] != carriers[0].get(field)}
    everywhere = {"condition"}.union(set(study.cells[0]).intersection(*study.cells))
    for own in study.cells:
        for value in named.get(key(own, ""), ()):
            place = key(own, value)
            ours = summary(values[place])
            if study.exact:
                ours = Summary(mean=ours.mean, margin=0.0, repeats=ours.repeats)
            starts = (why for start, why in study.explained.items() if place.startswith(start))
            shown = _unfolded(own, value, varied) if carriers else (own, value)
            at, name = shown
            alone = {field: at[field] for field in at if field not in everywhere}
            number = Number(  # a setting that only some cells have begins the name instead
                place=place,
                settings={field: at[field] for field in at if field in everywhere},
                name=key(alone, name).rstrip("/"),
                ours=ours,
                theirs=study.published.get(place),
                reason=next(starts, ""),
            )
            found.append(number)
    return found


def _condition(name: str) -> str:
    start = name.partition("/")[0]
    return start if start in CONDITIONS else ""


def _unfolded(settings: Settings, name: str, varied: Collection[str]) -> tuple[Settings, str]:
    """Move a span condition from the name to the settings, where a cell measures all of them.

    What else such a study measures holds for all; settings that do not vary among the cells with
    conditions then tell what it is.
    """
    kept = {field: value for field, value in settings.items() if field in varied}
    condition = _condition(name)
    if condition:
        return {**kept, "condition": condition}, name.partition("/")[2]
    rest = {field: value for field, value in settings.items() if field not in varied}
    return {**kept, "condition": "any"}, key(rest, name)


def differ(ours: Summary, theirs: Published | None) -> bool:
    """Tell whether two numbers are further apart than their intervals, or rounding, together."""
    if theirs is None or math.isnan(ours.margin):
        return False
    margin = rounding(theirs.value) if theirs.margin is None else theirs.margin
    slack = 1e-9 * max(abs(ours.mean), abs(theirs.value))
    return abs(ours.mean - theirs.value) > ours.margin + margin + slack


def rounding(value: float) -> float:
    """Return half a unit of the last digit that was printed."""
    text = f"{value:.12g}"
    if "e" in text:
        return 0.0
    decimals = len(text.partition(".")[2])
    return 0.5 * 10.0**-decimals


FOR_ALL = ("any", "none", "all", "pooled", "none: pooled")
"""Levels that say that a setting does not matter for a cell."""

CURVE = 3  # so many levels make a curve
ACROSS = 16  # levels that still fit side by side: most tables have a part of them


@dataclass(frozen=True, kw_only=True)
class Layout:
    apart: tuple[str, ...]
    across: str
    levels: tuple[str | int | float, ...]  # of the latter, in the order of the cells

    def heading(self, settings: Settings) -> str:
        return ", ".join(said(name, settings) for name in self.apart if name in settings)


def levels(cells: Iterable[Settings]) -> dict[str, tuple[str | int | float, ...]]:
    found: dict[str, dict[str | int | float, None]] = {}
    for settings in cells:
        for name, value in settings.items():
            found.setdefault(name, {})[value] = None
    return {name: tuple(values) for name, values in found.items() if len(values) > 1}


def layout(cells: Iterable[Settings]) -> Layout:
    """Lay cells out in tables: the last setting that varies over few enough levels goes across."""
    varied = levels(cells)
    return _layout(varied, [name for name in varied if len(varied[name]) <= ACROSS])


def charted(cells: Sequence[Settings]) -> Layout:
    """Lay cells out in a chart: numbers that vary are an axis before words are."""
    varied = levels(each for each in cells if not holds_for_all(each))
    varied = varied or levels(cells)
    numeric = [
        name
        for name, values in varied.items()
        if len(values) >= CURVE and not any(isinstance(value, str) for value in values)
    ]
    return _layout(varied, [*varied, *numeric])


def _layout(varied: Mapping[str, tuple[str | int | float, ...]], fitting: Sequence[str]) -> Layout:
    across = fitting[-1] if fitting else ""
    apart = tuple(name for name in varied if name != across)
    return Layout(apart=apart, across=across, levels=varied.get(across, ()))


def holds_for_all(settings: Settings) -> bool:
    """Tell whether a cell is beside the others, as pooled rows are under any span condition."""
    return any(value in FOR_ALL for value in settings.values())


def parts(found: Sequence[Number], laid: Layout) -> dict[str, list[Number]]:
    apart: dict[str, list[Number]] = {}
    for each in found:
        apart.setdefault(laid.heading(each.settings), []).append(each)
    return apart


def said(name: str, settings: Settings) -> str:
    """Return a setting: words stand for themselves, numbers need to be told what they are."""
    value = settings[name]
    return value if isinstance(value, str) else f"{name} = {value:,}"
