"""What every page and file for people is made with; and the model card as a page."""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import jinja2
import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cobasis.algorithms.certificate import CAVEAT
from cobasis.disk.whole import make_folder, write_whole
from cobasis.protocol.card import ModelCard
from cobasis.protocol.enrolment import words_of


def empty(*, width: float, height: float) -> tuple[Figure, Axes]:
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


_PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader("cobasis", "report"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
)
template = _PAGES.get_template
"""Return a page of this package to be filled in; what is filled in is escaped."""


def render_card(card: ModelCard, *, party: str = "") -> str:
    words = words_of(bytes.fromhex(card.agreement))
    return template("card.html").render(card=card, party=party, words=words, caveat=CAVEAT)
