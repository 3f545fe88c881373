"""A goal, the figure that was measured, and whether it was met."""

from math import inf, isfinite
from operator import itemgetter
from typing import Any

Judged = dict[str, Any]


def goal(
    what: str,
    figure: float,
    *,
    most: float = inf,
    least: float = -inf,
    unit: str = "",
    where: str = "",
) -> Judged:
    """Compare one figure with what was asked for; without a bound there is no goal."""
    bounds = {"<=": most, ">=": least}.items()
    asked = [f"{word} {written(bound)}{unit}" for word, bound in bounds if isfinite(bound)]
    met = "met" if least <= figure <= most else "missed"
    return {
        "goal": what,
        "asked": " and ".join(asked),
        "figure": f"{written(figure)}{unit}",
        "value": figure,
        "where": where,
        "verdict": met if asked else "no goal",
    }


def written(figure: float) -> str:
    """Write a figure with three digits, or all before the point: 1,136 and not 1.14e+03."""
    return f"{figure:,.0f}" if 100 <= abs(figure) < 1e6 else f"{figure:.3g}"


def not_measured(what: str, *, why: str, verdict: str = "not measured") -> Judged:
    blank = {"asked": "", "figure": "", "value": None}
    return {"goal": what, **blank, "where": why, "verdict": verdict}


def worst(
    found: list[tuple[str, float]],
    what: str,
    *,
    most: float = inf,
    least: float = -inf,
    unit: str = "x",
) -> Judged:
    """Judge the worst of several figures, and say where it was found."""
    if not found:
        return not_measured(what, why="no point of this run")
    low, high = min(found, key=itemgetter(1)), max(found, key=itemgetter(1))
    if not isfinite(most) and not isfinite(least):
        told = goal(what, high[1], where=f"{len(found)} points; largest: {high[0]}")
        return told | {"figure": f"{written(low[1])}{unit} to {written(high[1])}{unit}"}
    where, figure = high if isfinite(most) else low
    met = sum(least <= each <= most for _, each in found)
    place = f"{met} of {len(found)} points meet it; worst: {where}"
    return goal(what, figure, most=most, least=least, unit=unit, where=place)
