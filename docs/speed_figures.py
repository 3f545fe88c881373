"""Tables and charts of the page on speed, from what `./run.sh bench` wrote; `conf.py` calls it.

The page holds ``{{ name }}`` where a figure goes, and the build puts it there: no number on it is
typed by hand, and a repository without a result says so.
"""

# ruff: noqa: INP001 -- imported by conf.py, not a package

import io
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESULT = Path(__file__).parents[1] / "experiments" / "results" / "bench.json"
ABSENT = "*Not measured yet: `./run.sh bench` writes this.*"
PLACE = re.compile(r"\{\{ (\w+) \}\}")
COLOURS = {
    "ours": "#2a6f97",
    "scipy loop": "#c8553d",
    "svd loop": "#e0a458",
    "floor": "#9aa5b1",
    "Imakura, randomised SVD + pinv": "#c39bd3",
    "Kawakami, randomised SVD": "#9ad0b5",
    "Imakura, ours": "#7b2d8b",
    "Kawakami, ours": "#2e8b57",
}
NAMES = {"ours": "ODC, ours", "scipy loop": "ODC, scipy loop", "svd loop": "ODC, the papers' loop"}
AXES = {"l": "components l", "a": "anchor rows a", "c": "parties c"}
BASE = {"a": 1000, "l": 50, "c": 50}
ATTAINABLE_AT = (1000, 4000, 10_000, 20_000)

Result = Mapping[str, Any]


def filled(page: str, *, path: Path = RESULT) -> str:
    """Return the page with every figure in its place.

    Parameters
    ----------
    page : str
        Markdown with ``{{ name }}`` where figures go.
    path : Path
        The result; where there is none the page says so.

    Returns
    -------
    str
        Markdown.
    """
    if not path.exists():
        return PLACE.sub(ABSENT, page)
    result = json.loads(path.read_text(encoding="utf-8"))
    return PLACE.sub(lambda found: FIGURES[found[1]](result), page)


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; bars in cells are escaped."""
    lines = [headings, ["---"] * len(headings), *rows]
    clean = [[str(cell).replace("|", r"\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in clean)


def machine(result: Result) -> str:
    """Return where, when and on what it was measured."""
    here, used = result["machine"], result["versions"]
    versions = ", ".join(f"{name} {version}" for name, version in used.items())
    return (
        f"{here['processor']}, {here['cores']} cores, {here['memory_gib']} GiB; "
        f"{', '.join(here['blas'])}, one BLAS thread unless a line says otherwise; {versions}. "
        f"Commit `{result['commit'][:12]}`, seed {result['seed']}, "
        f"{result['seconds'] / 60:.0f} minutes in all."
    )


def goals(result: Result) -> str:
    """Return every goal with its figure."""
    rows = [
        [each["goal"], each["asked"], each["figure"], f"**{each['verdict']}**", each["where"]]
        for each in result["goals"]
    ]
    return table(["goal", "asked", "figure", "", "where"], rows)


def verdicts(result: Result) -> str:
    """Return which goals were missed, which failed and which this result says nothing about."""
    lines = []
    for word, said in (
        ("missed", "Missed"),
        ("failed", "Failed"),
        ("not measured", "Not measured"),
    ):
        found = [each for each in result["goals"] if each["verdict"] == word]
        told = "; ".join(f"{each['goal']} ({each['figure'] or each['section']})" for each in found)
        lines.append(f"- {said}: {len(found)}" + (f": {told}." if told else "."))
    met = sum(each["verdict"] == "met" for each in result["goals"])
    return "\n".join([f"- Met: {met}.", *lines]).replace("|", r"\|")


def exponents(result: Result) -> str:
    """Return fitted exponents, the paper's first."""
    found = result["fig_6"]
    rows = []
    for name, (slope, low, high, _) in found["paper"]["slopes"].items():
        cells = [_exponent(*found["paper"]["exponents"][free][name]) for free in AXES]
        rows.append([f"*{name}, in the paper*", *cells, _milliseconds(slope, low, high)])
    names = dict.fromkeys(name for each in found["exponents"].values() for name in each)
    for name in names:
        fits = [found["exponents"][free].get(name) for free in AXES]
        cells = [_exponent(each["exponent"], each["r2"]) if each else "" for each in fits]
        line = found["slopes"].get(name)
        last = _milliseconds(line["slope"], line["low"], line["high"]) if line else ""
        rows.append([NAMES.get(name, name), *cells, last])
    return table(["", "in l", "in a", "in c", "ms a party (95 %)"], rows)


def comparisons(result: Result) -> str:
    """Return what the comparison of the methods looks like in both ways."""
    rows = []
    for each in result["fig_6"]["speed-ups"]:
        cells = [
            f"{each[key]:.1f}x" if key in each else "does not fit"
            for key in ("as the paper compares", "both written well")
        ]
        rows.append([each["method"], *(str(each[letter]) for letter in AXES), *cells])
    return table(["against ODC", "l", "a", "c", "as the paper compares", "both written well"], rows)


def left_out(result: Result) -> str:
    """Return which published forms were not run at which sizes, and their estimates."""
    rows = [
        [name, *(str(point[letter]) for letter in AXES), _gigabytes(each["bytes"]), _time(each)]
        for point in result["sections"].get("published", {}).get("points", [])
        for name, each in point["does not fit"].items()
    ]
    headings = ["not run", "l", "a", "c", "would hold", "would take"]
    return table(headings, rows) if rows else "*None in this result.*"


def attainable(result: Result) -> str:
    """Return what was gained over the scipy loop, and what the floor would gain."""
    rows = []
    for name in ("uniform", "isometric", "shared"):
        section = result["sections"].get(name, {})
        for each in section.get("points", []):
            took = each["seconds"]
            if "floor" in took and (each["l"], each["c"]) == (BASE["l"], BASE["c"]):
                gained = each["scipy loop / ours"]["median"]
                most = took["scipy loop"] / took["floor"]
                rows.append([section["input"], each["a"], f"{gained:.2f}x", f"{most:.2f}x"])
    chosen = [row for row in rows if row[1] in ATTAINABLE_AT]
    return table(["input", "a", "ours gains", "the floor would gain"], chosen) if rows else ABSENT


def memory(result: Result) -> str:
    """Return peak memory beside the counts."""
    rows = [
        [
            each["method"],
            each["size"],
            *(_megabytes(value) for value in (each["eq."], each["bytes"]["paper's code"])),
            *(_megabytes(value) for value in (each["own count"], each["bytes"]["ours"])),
        ]
        for each in result["sections"].get("formulas", {}).get("memory", [])
    ]
    headings = ["", "size", "eqs. 41-84", "the paper's algorithm", "our count", "ours"]
    return table(headings, rows) if rows else ABSENT


def prediction(result: Result) -> str:
    """Return predicted and measured seconds."""
    rows = [
        [method, each["size"], f"{found['predicted']:.3g} s", f"{found['seconds']:.3g} s"]
        for each in result["sections"].get("formulas", {}).get("prediction", [])
        for method, found in each["methods"].items()
    ]
    return table(["", "size", "predicted", "measured"], rows) if rows else ABSENT


def sweeps_chart(result: Result) -> str:
    """Draw the three sweeps on the papers' input."""
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    points = [
        each
        for name in ("papers", "published")
        for each in result["sections"].get(name, {}).get("points", [])
    ]
    for free, each in zip(AXES, axes, strict=True):
        _sweep(each, free, points=points)
    axes[0].set_ylabel("seconds")
    handles = {
        label: line
        for each in axes
        for line, label in zip(*each.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper center", ncols=3, frameon=False
    )
    return _svg(figure)


def _sweep(axes: "Axes", free: str, *, points: list[Result]) -> None:
    """Draw one sweep."""
    fixed = {name: value for name, value in BASE.items() if name != free}
    for name, colour in COLOURS.items():
        found = {
            each[free]: each["seconds"][name]
            for each in points
            if name in each["seconds"] and all(each[key] == value for key, value in fixed.items())
        }
        sizes = sorted(found)
        values = [found[size] for size in sizes]
        axes.loglog(sizes, values, color=colour, marker=".", label=NAMES.get(name, name))
    axes.set_xlabel(AXES[free])
    axes.spines[["top", "right"]].set_visible(False)


def ratios_chart(result: Result) -> str:
    """Draw how many times faster than the scipy loop, over components, for every input."""
    figure = Figure(figsize=(9.5, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for name, section in result["sections"].items():
        points = section.get("points", [])
        if not points or "scipy loop / ours" not in points[0]:
            continue
        for free, each in zip(AXES, axes, strict=True):
            fixed = {key: value for key, value in BASE.items() if key != free}
            found = {
                point[free]: point["scipy loop / ours"]["median"]
                for point in points
                if all(point[key] == value for key, value in fixed.items())
            }
            sizes = sorted(found)
            label = section.get("input", name)
            each.semilogx(sizes, [found[size] for size in sizes], marker=".", label=label)
            each.set_xlabel(AXES[free])
    for each in axes:
        each.axhline(1, color="#1f2933", linewidth=1)
        each.set_ylim(bottom=0)
        each.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("scipy loop / ours")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False
    )
    return _svg(figure)


def _exponent(value: float, r2: float) -> str:
    return f"{value:.2f} (R2 {r2:.2f})"


def _milliseconds(slope: float, low: float, high: float) -> str:
    return f"{1000 * slope:.3g} ({1000 * low:.3g} to {1000 * high:.3g})"


def _gigabytes(value: float) -> str:
    return f"{value / 1e9:.1f} GB"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.0f} MB"


def _time(found: Mapping[str, float]) -> str:
    return f"{found['seconds']:.0f} s a run"


def _svg(figure: Figure) -> str:
    """Return the figure as an SVG element in the page itself, without date or references."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cobasis"}):
        named = ("Date", "Creator", "Format", "Type")
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(named))
    text = buffer.getvalue().replace("<svg", '<svg style="max-width: 100%; height: auto"', 1)
    return "```{raw} html\n" + text[text.index("<svg") :] + "\n```"


FIGURES: Mapping[str, Callable[[Result], str]] = {
    "machine": machine,
    "goals": goals,
    "verdicts": verdicts,
    "exponents": exponents,
    "attainable": attainable,
    "comparisons": comparisons,
    "left_out": left_out,
    "memory": memory,
    "prediction": prediction,
    "sweeps": sweeps_chart,
    "ratios": ratios_chart,
}
"""By what stands between the braces."""
