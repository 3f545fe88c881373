"""Tables of the pages on speed and training, from what `./run.sh bench` wrote; `conf.py` calls it.

The page holds ``{{ name }}`` where a figure goes, and the build puts it there: no number on it is
typed by hand, and a repository without a result says so.
"""

# ruff: noqa: INP001 -- imported by conf.py, not a package

import json
import re
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parents[1] / "experiments" / "results" / "bench.json"
ABSENT = "*Not measured yet: `./run.sh bench` writes this.*"
PLACE = re.compile(r"\{\{ (\w+) \}\}")

_CHARTS = runpy.run_path(str(Path(__file__).with_name("speed_charts.py")))
AXES, BASE, NAMES = (_CHARTS[name] for name in ("AXES", "BASE", "NAMES"))
_MACHINES = runpy.run_path(str(Path(__file__).with_name("speed_machines.py")))
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
    for name, (slope, low, high, r2) in found["paper"]["slopes"].items():
        cells = [_exponent(*found["paper"]["exponents"][free][name]) for free in AXES]
        line = [_milliseconds(slope, low, high), f"{r2:.2f}", ""]
        rows.append([f"*{name}, in the paper*", *cells, *line])
    names = dict.fromkeys(name for each in found["exponents"].values() for name in each)
    for name in names:
        fits = [found["exponents"][free].get(name) for free in AXES]
        cells = [_exponent(each["exponent"], each["r2"]) if each else "" for each in fits]
        fitted, line = found["slopes"].get(name), ["", "", ""]
        if fitted:
            line = [
                _milliseconds(fitted["slope"], fitted["low"], fitted["high"]),
                f"{fitted['r2']:.2f}",
                f"{1000 * fitted['start']:,.1f}",
            ]
        rows.append([NAMES.get(name, name), *cells, *line])
    headings = ["", "in l", "in a", "in c", "b1, ms a party (95 %)", "R2", "b0, ms"]
    return table(headings, rows)


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
    section = result["sections"].get("published", {})
    rows = [
        [name, *(str(point[letter]) for letter in AXES), _gigabytes(each["bytes"]), _time(each)]
        for point in section.get("points", [])
        for name, each in point["does not fit"].items()
    ]
    if not rows:
        return "*None in this result.*"
    limits = section["limits"]
    told = (
        f"Published forms that need more than {_gigabytes(limits['bytes'])}, or more than "
        f"{limits['seconds']:.0f} seconds a run by their estimate, which is up to twice too long, "
        "were not run, and a ratio is told of those sizes alone where they were:"
    )
    headings = ["not run", "l", "a", "c", "would hold", "would take"]
    return "\n".join([told, "", table(headings, rows)])


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


def consensus(result: Result) -> str:
    """Return GOPP with momentum beside the papers' alternation."""
    rows = [
        [
            f"different, {each['anchor']} anchor, {_size(each)}",
            *(str(count) for count in each["iterations"].values()),
            "{median:.2f}x ({low:.2f} to {high:.2f})".format(**each["alternation / momentum"]),
            f"{each['objective, momentum / alternation'] - 1:+.1e}",
        ]
        for each in result["sections"].get("gopp", {}).get("inputs", [])
    ]
    headings = ["input", "iterations", "the papers'", "faster", "objective above theirs"]
    return table(headings, rows) if rows else ABSENT


def memory(result: Result) -> str:
    """Return peak memory beside the paper's counts."""
    rows = [
        [
            each["method"],
            each["size"],
            *map(_megabytes, (each["eq."], each["bytes"]["paper's code"], each["bytes"]["ours"])),
        ]
        for each in result["sections"].get("formulas", {}).get("memory", [])
    ]
    headings = ["", "size", "eqs. 41-84", "the paper's algorithm", "ours"]
    return table(headings, rows) if rows else ABSENT


def work(result: Result) -> str:
    """Return counted operations beside measured time, of the paper's algorithms as written."""
    rows = [
        [
            method,
            each["size"],
            f"{each['operations'][method]:.3g}",
            f"{each['seconds'][method]:.3g} s",
            *(f"{each[key][method]:.1f}" for key in ("work in ODCs", "seconds in ODCs")),
        ]
        for each in result["sections"].get("formulas", {}).get("work", [])
        for method in each["operations"]
    ]
    headings = ["", "size", "operations", "measured", "in ODCs, counted", "in ODCs, measured"]
    return table(headings, rows) if rows else ABSENT


def _exponent(value: float, r2: float) -> str:
    return f"{value:.2f} (R2 {r2:.2f})"


def _milliseconds(slope: float, low: float, high: float) -> str:
    return f"{1000 * slope:.3g} ({1000 * low:.3g} to {1000 * high:.3g})"


def _gigabytes(value: float) -> str:
    return f"{value / 1e9:.1f} GB"


def _size(shape: Mapping[str, int]) -> str:
    return f"l = {shape['l']}, a = {shape['a']:,}, c = {shape['c']:,}"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.0f} MB"


def _time(found: Mapping[str, float]) -> str:
    return f"{found['seconds']:.0f} s a run"


STEPS = {
    "ridge": "ridge",
    "logistic": "logistic regression",
    "mlp": "perceptron, 256 hidden units, one pass, with its tuning",
    "xgboost": "20 boosted trees of depth 6",
}


def training(result: Result) -> str:
    """Return what training on more rows than one block took."""
    found = result["sections"].get("training")
    if not found:
        return ABSENT
    rows = [
        [STEPS[name], f"{each['peak_bytes'] / 1e9:.2f} GB", f"{each['seconds']:.0f}"]
        for name, each in found["steps"].items()
        if name in STEPS
    ]
    size = (
        f"{found['n_rows']:,} rows of {found['n_components']} components from 20 parties, float32, "
        "two classes; each step in a process of its own. "
        "`./run.sh bench --only training` measures it again.\n\n"
    )
    return size + table(["step", "peak memory", "seconds"], rows)


FIGURES: Mapping[str, Callable[[Result], str]] = {
    "machines": _MACHINES["machines"],
    "goals": goals,
    "verdicts": verdicts,
    "exponents": exponents,
    "attainable": attainable,
    "comparisons": comparisons,
    "consensus": consensus,
    "left_out": left_out,
    "memory": memory,
    "work": work,
    "training": training,
    "sweeps": _CHARTS["sweeps"],
    "ratios": _CHARTS["ratios"],
}
"""By what stands between the braces."""
