"""Results on disk: one JSON file, whole after every section, with the fits of Figure 6 again."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import goals
from benchmarks.inputs import SEED, Shape
from benchmarks.machine import ROOT
from cobasis.disk.whole import write_whole

RESULT = ROOT / "experiments" / "results" / "bench.json"
FORMAT = "cobasis/bench/1"

PAPER_EXPONENTS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "l": {"Imakura": (1.26, 0.97), "Kawakami": (1.75, 0.99), "ODC": (2.05, 0.99)},
    "a": {"Imakura": (0.79, 0.99), "Kawakami": (0.92, 0.998), "ODC": (0.56, 0.87)},
    "c": {"Imakura": (0.95, 0.99), "Kawakami": (0.92, 0.98), "ODC": (0.84, 0.94)},
}
"""Exponent and R2 from equations 87, 88 and 89 and the text beside them."""

PAPER_SLOPES: Mapping[str, tuple[float, float, float, float]] = {
    "Imakura": (8.99e-2, 0.084, 0.096, 0.98),
    "Kawakami": (4.76e-2, 0.041, 0.054, 0.94),
    "ODC": (8.67e-4, 0.00066, 0.00107, 0.83),
}
"""Seconds a party, its 95 % interval and R2, from equation 91; another machine than ours."""

FEWEST = 3  # points without which a line through them says nothing
Series = tuple[list[float], list[float]]


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(path: Path, found: Mapping[str, Any]) -> None:
    """Write a file under another name first, so that none is half written."""
    path.parent.mkdir(exist_ok=True)
    write_whole(path, f"{json.dumps(found, indent=1)}\n".encode(), mode=0o644)


def whole(sections: Mapping[str, Any], *, quick: bool) -> dict[str, Any]:
    """Return everything that one run has to say; a section that failed has no time."""
    seconds = float(sum(each.get("section_seconds", 0) for each in sections.values()))
    return {
        "format": FORMAT,
        "quick": quick,
        "seed": SEED,
        "seconds": round(seconds, 1),
        "goals": goals_of(sections),
        "fig_6": again(sections),
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


def again(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Fit the power laws and the straight line to what was measured on the papers' input."""
    points = [*points_of(sections, "papers"), *points_of(sections, "published")]
    series = {free: by_contender(points, free) for free in "lac"}
    return {
        "exponents": {
            free: {name: power_law(*each) for name, each in found.items()}
            for free, found in series.items()
        },
        "slopes": {name: straight_line(*each) for name, each in series["c"].items()},
        "speed-ups": speed_ups(sections),
        "paper": {"exponents": PAPER_EXPONENTS, "slopes": PAPER_SLOPES},
    }


def points_of(sections: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sections.get(name, {}).get("points", [])
    return found


def by_contender(points: list[dict[str, Any]], free: str) -> dict[str, Series]:
    """Return sizes and seconds of one sweep by contender, each size once, where they are enough."""
    fixed = {name: value for name, value in Shape()._asdict().items() if name != free}
    found: dict[str, dict[float, float]] = {}
    for point in points:
        if all(point[name] == value for name, value in fixed.items()):
            for name, seconds in point["seconds"].items():
                found.setdefault(name, {})[point[free]] = seconds
    return {
        name: (sorted(each), [each[size] for size in sorted(each)])
        for name, each in found.items()
        if len(each) >= FEWEST
    }


def power_law(sizes: list[float], seconds: list[float]) -> dict[str, float]:
    """Fit ``log10(time) = kappa + alpha log10(size)`` (eq. 86)."""
    fitted = stats.linregress(np.log10(sizes), np.log10(seconds))
    found = {"exponent": float(fitted.slope), "r2": float(fitted.rvalue**2)}
    return {**found, "n_points": len(sizes)}


def straight_line(sizes: list[float], seconds: list[float]) -> dict[str, float]:
    """Fit ``T(c) = b0 + b1 c`` with a 95 % interval of b1 (eqs. 90 and 91)."""
    fitted = stats.linregress(sizes, seconds)
    half = float(stats.t.ppf(0.975, len(sizes) - 2) * fitted.stderr)
    return {
        "start": float(fitted.intercept),
        "slope": float(fitted.slope),
        "low": float(fitted.slope) - half,
        "high": float(fitted.slope) + half,
        "r2": float(fitted.rvalue**2),
        "n_points": len(sizes),
    }


def speed_ups(sections: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Compare ODC with the baselines as the paper does, and with both written well."""
    loops = {_at(each): each["seconds"] for each in points_of(sections, "papers")}
    found = []
    for each in points_of(sections, "published"):
        odc, seconds = loops.get(_at(each), {}), each["seconds"]
        for method, published in (
            ("Imakura", "Imakura, randomised SVD + pinv"),
            ("Kawakami", "Kawakami, randomised SVD"),
        ):
            row: dict[str, Any] = {"method": method, "a": each["a"], "l": each["l"], "c": each["c"]}
            if published in seconds and "svd loop" in odc:
                row["as the paper compares"] = seconds[published] / odc["svd loop"]
            if f"{method}, ours" in seconds and "ours" in odc:
                row["both written well"] = seconds[f"{method}, ours"] / odc["ours"]
            found.append(row)
    return found


def _at(point: Mapping[str, Any]) -> Shape:
    return Shape(point["a"], point["l"], point["c"])
