"""A goal, the figure that was measured, and whether it was met."""

from typing import Any

_HUNDRED, _MILLION = 100, 1e6


def goal(
    what: str,
    figure: float,
    *,
    most: float | None = None,
    least: float | None = None,
    unit: str = "",
    where: str = "",
) -> dict[str, Any]:
    """Compare one figure with what was asked for."""
    if most is None and least is None:
        verdict = "no goal"
    else:
        met = (most is None or figure <= most) and (least is None or figure >= least)
        verdict = "met" if met else "missed"
    asked = " and ".join(
        f"{word} {written(bound)}{unit}"
        for word, bound in (("<=", most), (">=", least))
        if bound is not None
    )
    return {
        "goal": what,
        "asked": asked,
        "figure": f"{written(figure)}{unit}",
        "value": figure,
        "where": where,
        "verdict": verdict,
    }


def written(figure: float) -> str:
    """Write a figure with three digits, or all before the point: 1,136 and not 1.14e+03."""
    return f"{figure:,.0f}" if _HUNDRED <= abs(figure) < _MILLION else f"{figure:.3g}"


def not_measured(what: str, *, why: str) -> dict[str, Any]:
    """Record a goal that this run says nothing about."""
    return {
        "goal": what,
        "asked": "",
        "figure": "",
        "value": None,
        "where": why,
        "verdict": "not measured",
    }


def worst(
    found: list[tuple[str, float]],
    what: str,
    *,
    most: float | None = None,
    least: float | None = None,
    unit: str = "x",
) -> dict[str, Any]:
    """Judge the worst of several figures, and say where it was found."""
    if not found:
        return not_measured(what, why="no point of this run")
    low, high = min(found, key=_figure), max(found, key=_figure)
    if most is None and least is None:
        told = goal(what, high[1], where=f"{len(found)} points; largest: {high[0]}")
        return told | {"figure": f"{written(low[1])}{unit} to {written(high[1])}{unit}"}
    where, figure = high if most is not None else low
    met = sum(
        (most is None or each <= most) and (least is None or each >= least) for _, each in found
    )
    place = f"{met} of {len(found)} points meet it; worst: {where}"
    return goal(what, figure, most=most, least=least, unit=unit, where=place)


def _figure(each: tuple[str, float]) -> float:
    return each[1]
