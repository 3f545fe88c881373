"""Every number of a study beside the paper's: what agrees, what differs, and why."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from experiments.statistics import Summary, summary
from experiments.store import Results
from experiments.study import Published, Settings, Study, key

AGREES, EXPLAINED, OPEN, UNJUDGED = "agrees", "explained", "open", "one repeat"

CONDITIONS = ("samespan_orth", "samespan", "diffspan_orth", "diffspan")


@dataclass(frozen=True, kw_only=True)
class Number:
    """One number of ours, and the paper's.

    Attributes
    ----------
    place : str
        Its key.
    settings : Settings
        Of its cell; a span condition that its name begins with is one of them.
    name : str
        In its cell, without that.
    ours : Summary
        Over repeats.
    theirs : Published or None
        As printed.
    reason : str
        Why they differ, where they do and somebody knows.
    """

    place: str
    settings: Settings
    name: str
    ours: Summary
    theirs: Published | None = None
    reason: str = ""

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
    return list(_numbers(study, results))


def _numbers(study: Study, results: Results) -> Iterator[Number]:
    values = results.values()
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
            settings, name = _common(*shown, everywhere)
            yield Number(
                place=place,
                settings=settings,
                name=name,
                ours=ours,
                theirs=study.published.get(place),
                reason=next(starts, ""),
            )


def _common(cell: Settings, name: str, everywhere: Collection[str]) -> tuple[Settings, str]:
    """Move settings that only some cells have from the settings to the beginning of the name."""
    own = {field: value for field, value in cell.items() if field not in everywhere}
    shared = {field: value for field, value in cell.items() if field in everywhere}
    return shared, key(own, name).rstrip("/")


def _condition(name: str) -> str:
    """Return the span condition that a name begins with, if any."""
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
    """Tell whether two numbers are further apart than their two intervals together.

    A printed number without an interval has that of its rounding.
    """
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


def not_measured(study: Study, found: Sequence[Number]) -> list[str]:
    """List the keys of what the paper prints and we have not."""
    have = {each.place for each in found}
    return [place for place in study.published if place not in have]
