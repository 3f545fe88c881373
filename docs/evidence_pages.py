"""The pages on evidence, from what `./run.sh experiment` recorded; `conf.py` calls it.

The pages hold ``{{ name }}`` where something goes, and the build puts it there: no number on them
is typed by hand, and a study without a result says so.
"""

# ruff: noqa: INP001 -- imported by conf.py, not a package

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # experiments are no part of the installed package

from experiments.data.sources import MissingDataError  # noqa: E402
from experiments.harness import evidence  # noqa: E402 -- found by the line above
from experiments.harness import page as pages  # noqa: E402
from experiments.harness.comparison import numbers  # noqa: E402
from experiments.harness.figures import draw, svg  # noqa: E402
from experiments.harness.pictures import COMPONENTS, figure  # noqa: E402
from experiments.harness.store import RECORDED, Results  # noqa: E402
from experiments.harness.study import key, load, names  # noqa: E402

PLACE = re.compile(r"\{\{ (\w+) \}\}")
Kept = Mapping[str, Results]


def filled(page: str, *, folder: Path = RECORDED) -> str:
    """Return a page with everything in its place.

    Parameters
    ----------
    page : str
        Markdown with ``{{ name }}`` where something goes.
    folder : Path
        Where results are.

    Returns
    -------
    str
        Markdown.
    """
    kept = {name: Results(name, folder=folder).read() for name in names()}
    return PLACE.sub(lambda found: PARTS[found[1]](kept), page)


def summary(kept: Kept) -> str:
    """Return how many numbers agree, and the open differences."""
    return pages.summarised(kept, kept)


def goals(kept: Kept) -> str:
    """Return what the evidence says of the two goals."""
    return "\n".join(evidence.lines(kept))


def contents(kept: Kept) -> str:
    """Return one line for each study, with what it is and how much of it is there."""
    lines = ["| | of | cells | repeats | minutes of a core for one |", "|---|---|---|---|---|"]
    for name, results in kept.items():
        study = load(name)
        there = Counter(key(cell.settings, "") for cell in results.cells.values())
        repeats = [there[key(settings, "")] for settings in study.cells]
        minutes = sum(cell.seconds for cell in results.cells.values()) / max(1, *repeats) / 60
        row = (
            f"[{study.title}](#study-{name})",
            study.source.replace("|", r"\|"),
            str(len(repeats)),
            "computed" if study.exact else " to ".join(map(str, sorted({*repeats}))),
            "" if study.exact else f"{minutes:.1f}",
        )
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines)


def studies(kept: Kept) -> str:
    """Return the section of each study."""
    lines: list[str] = []
    for name, results in kept.items():
        lines += [f"(study-{name})=", f"## {load(name).title}", ""]
        lines += pages.section(name, results)
    return "\n".join(lines)


def everything(kept: Kept) -> str:
    """Return how far methods are from pooled data on all tasks, and what is not in it."""
    absent = ", ".join(f"[{load(name).title}](#study-{name})" for name in evidence.missing(kept))
    note = [f"Left out, since nothing of it is recorded yet: {absent}."] if absent else []
    return "\n".join([*evidence.tables(evidence.distances(kept)), *note])


def pictures(_: Kept) -> str:
    """Return what leaves and what is rebuilt of it, in pictures that show nobody."""
    lines: list[str] = []
    for data in COMPONENTS:
        title = f"What leaves of {data}, and what is rebuilt of it"
        try:
            lines += ["```{raw} html", svg(figure(data), title=title), "```", ""]
        except MissingDataError as error:
            lines += [f"*Not drawn in this build: {error}*", ""]
    return "\n".join(lines)


def gallery(kept: Kept) -> str:
    """Return the chart of each study that has a result and a chart."""
    lines: list[str] = []
    for name in kept:
        if chart := _chart(name, kept):
            lines += [f"## {load(name).title}", "", *chart]
    return "\n".join(lines) if lines else "*Not measured yet: `./run.sh experiment all` does it.*"


def guarantee(kept: Kept) -> str:
    """Return the chart of what a guarantee costs."""
    return "\n".join(_chart("ours_sums_noise", kept))


def _chart(name: str, kept: Kept) -> list[str]:
    study = load(name)
    figure = draw(study, numbers(study, kept[name]))
    if figure is None:
        return []
    drawn = ["```{raw} html", svg(figure, title=study.title), "```", ""]
    return [*drawn, f"[The numbers](#study-{name}).", ""]


PARTS: Mapping[str, Callable[[Kept], str]] = {
    "summary": summary,
    "goals": goals,
    "contents": contents,
    "studies": studies,
    "everything": everything,
    "pictures": pictures,
    "gallery": gallery,
    "guarantee": guarantee,
}
"""By what stands between the braces."""
