"""HTML pages that refer to nothing outside themselves, and the demo's comparison as one."""

import csv
import io
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cobasis.algorithms.certificate import CAVEAT
from cobasis.disk.whole import make_folder, write_whole
from cobasis.protocol.enrolment import words_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cobasis.protocol.card import ModelCard
    from cobasis.report.comparison import Comparison

LEGEND: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 5}
INK, GREY = "#1f2933", "#9aa5b1"
ALONE, TOGETHER, CONSENSUS = "#c8553d", "#2a6f97", "#3a9b78"
SUMS = "#8a5aa8"


def empty(*, width: float, height: float = 3.4) -> tuple[Figure, "Axes"]:
    """Return a figure with axes below and on the left alone."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def plain(text: str) -> str:
    """Return what somebody wrote as a figure shows it: matplotlib reads $...$ as a formula."""
    return "".join(each if each.isprintable() else "?" for each in text).replace("$", r"\$")


def as_svg(figure: Figure) -> str:
    """Return the figure as an SVG element without prologue, date or outside references."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cobasis"}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def as_csv(lines: Iterable[Iterable[object]]) -> str:
    """Write lines to ten digits: so all parties write one and the same file."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([*map(_cell, line)] for line in lines)
    return text.getvalue()


def _cell(cell: object) -> object:
    """Return what stands in a file for a cell: no spreadsheet is to take a name for a formula."""
    if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@")):
        return f"'{cell}"
    return f"{cell:.10g}" if isinstance(cell, float) else cell


def write_files(folder: Path, files: Mapping[str, str | Figure]) -> Path:
    """Write texts, and figures as SVG and PNG, into a folder; return the last one's place."""
    make_folder(folder)
    for name, content in files.items():
        path = folder / name
        if isinstance(content, Figure):
            picture = io.BytesIO()
            content.savefig(picture, format="png", dpi=160, metadata={"Software": None})
            write_whole(path.with_suffix(".png"), picture.getvalue(), mode=0o644)
        text = as_svg(content) if isinstance(content, Figure) else content
        write_whole(path, text.encode(), mode=0o644)
    return path


@cache
def template(name: str) -> jinja2.Template:
    """Return a page of this package to be filled in; what is filled in is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cobasis", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["lower_first"] = lambda text: text[:1].lower() + text[1:]
    return environment.get_template(name)


def render_card(card: "ModelCard", *, party: str = "") -> str:
    words = words_of(bytes.fromhex(card.agreement))
    return template("card.html").render(card=card, party=party, words=words, caveat=CAVEAT)


def render_comparison(found: "Comparison") -> str:
    return template("page.html").render(
        found=found,
        n_rows=sum(len(rows) for rows, _ in found.data.rows.values()),
        certificate=found.round.analyst.certificate,
        means=means(found),
        conclusion=conclusion(found),
        about_sums=about_sums(found),
    )


def means(found: "Comparison") -> dict[str, float]:
    return {way: float(np.mean([*scores.values()])) for way, scores in found.scores.items()}


def conclusion(found: "Comparison") -> str:
    alone, *others = means(found).values()
    points = found.metric == "accuracy"
    together, consensus, sums, pooled = (
        f"{100 * (each - alone):+.1f} points" if points else f"{each - alone:+.3f} of R2"
        for each in others
    )
    return (
        f"Against being alone, taking part brings the average party {together}, with a consensus "
        f"basis {consensus}, with masked sums {sums}; pooling all rows would bring {pooled}."
    )


def about_sums(found: "Comparison") -> str:
    told = found.sums.result
    size = told.total.layout.n_words * 8 / 1e6
    return f"Sums: {told.aggregate} Each party sends {size:.1f} MB."


def as_json(found: "Comparison") -> dict[str, Any]:
    figures = found.round.analyst.certificate.parties
    return {
        "data": found.data.name,
        "metric": found.metric,
        **means(found),
        "conclusion": conclusion(found),
        "sums_told": about_sums(found),
        "parties": len(figures),
        "n_components": found.round.agreement.n_components,
        "seed": found.seed,
        "split": found.data.split,
        "per_party": {
            name: {
                **{way: scores[name] for way, scores in found.scores.items()},
                "residual": figures[name].residual,
                "correlation": figures[name].correlation,
                "evidence": figures[name].evidence,
                "bytes_up": traffic.up,
                "bytes_down": traffic.down,
            }
            for name, traffic in found.round.traffic.items()
        },
    }
