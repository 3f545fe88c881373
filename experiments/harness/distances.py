"""How far every method is from pooled data, over all tasks: one chart from many studies.

Distances are taken repeat by repeat against pooled rows with the same model, so that what a
repeat's split does to both cancels. Errors count as per cent of the pooled error.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from experiments.data.molecules import TASKS as MOLECULES
from experiments.harness.figures import Style, looks
from experiments.harness.noise import PAPERS_NOISE
from experiments.harness.statistics import Summary, summary
from experiments.harness.store import Results, there
from experiments.harness.study import CONDITIONS, key, load
from experiments.studies import ours_bases, table_09, table_11
from experiments.studies._ours import IMAGES

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

HIDING, WEIGHTED = "whitened, isometric anchor", "kawakami, weighted"
"""What other studies measure with the rows and bases of Table 7."""

METHODS = (
    *("imakura", "kawakami", "odc", "gopp", "whitened"),
    *(HIDING, WEIGHTED, "imakura, rescaled", "kawakami, rescaled"),
)
NOISE = f"{PAPERS_NOISE}, epsilon 2"
HONEST = f"{table_09.HONEST}, epsilon 2/odc"
WITHOUT = ("alone", "fedavg", NOISE, HONEST)  # what stands outside the span conditions
OUTSIDE = "no basis, or noise"
OWN_SPANS = "diffspan_orth, isometric anchor"
BASES = {"alike": "ODC, parties alike, by basis", "skewed": "ODC, parties that differ, by basis"}
PANELS = (
    *(f"{condition}, uniform anchor" for condition in CONDITIONS),
    *(OWN_SPANS, OUTSIDE, *BASES.values()),
)

COLUMNS = 2
NEAR = 2.0  # up to so many points the axis is linear
TICKS = (-2, 0, 2, 5, 10, 20, 50)


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far one method is from pooled data on one task."""

    panel: str  # where it stands
    task: str
    method: str
    below: Summary  # points, or per cent of the pooled error


@dataclass(frozen=True)
class Source:
    """How a study's numbers are named: ``{cell}{method}{model}``, and its ceiling."""

    task: str  # what the chart calls it
    cell: str  # beginning of the keys, with ``{}`` for a span condition where it has several
    model: str  # end of the keys
    ceilings: Sequence[str]  # keys of pooled data; the better one counts, repeat by repeat
    error: bool = False  # whether smaller is better


def _spans() -> Iterator[tuple[str, Source]]:
    for data in IMAGES:
        yield "table_07_images", Source(data, f"{data}/{{}}/", "/mlp", [f"{data}/any/central/mlp"])
    for data in MOLECULES:
        yield "table_07_tdc", Source(data, f"{data}/{{}}/", "/roc", [f"{data}/any/central/roc"])
    yield "table_08", Source("adult", "{}/", "", ["any/central"])
    top = ["any/central/mlp", "any/central/mlp on its top 300 directions"]
    yield "table_09", Source("faces", f"{table_09.FITS}/one round/{{}}/", "", top)
    for data in table_11.SETUPS:
        yield "table_11", Source(data, f"{data}/{{}}/", "", [f"{data}/any/central"], error=True)


def _without() -> Iterator[tuple[str, Source]]:
    for name, source in _spans():
        if name == "table_09":
            yield name, replace(source, cell="any/", model="/mlp")
            yield name, replace(source, cell=f"{table_09.FITS}/", model="/mlp")
            yield name, replace(source, cell=source.cell.removesuffix("{}/"))
        else:
            yield name, replace(source, cell=source.cell.format("any"))


STUDIES = (  # what the chart is made from
    *dict.fromkeys(name for name, _ in _spans()),
    *("ours_spans", "ours_weighting", "ours_anchors", "ours_bases"),
)


def distances(kept: Mapping[str, Results]) -> list[Distance]:
    """Return every distance that is recorded."""
    values = {name: by_repeat(kept[name]) for name in STUDIES if name in kept}
    spans, anchors = values.get("ours_spans", {}), values.get("ours_anchors", {})
    hiding = {name.replace("/whitened/", f"/{HIDING}/"): each for name, each in spans.items()}
    more = hiding | values.get("ours_weighting", {})
    for name in ("table_07_images", "table_07_tdc"):
        values[name] = more | values.get(name, {})
    found: list[Distance] = []
    for (name, source), condition in product(_spans(), CONDITIONS):
        panel = f"{condition}, uniform anchor"
        found += _of(source, values.get(name, {}), panel=panel, cell=source.cell.format(condition))
    for data in (*MOLECULES, *IMAGES):
        top = [f"{data}/none: pooled/logistic"]
        source = Source(data, f"{data}/isometric/", "/logistic", top)
        found += _of(source, anchors, panel=OWN_SPANS, cell=source.cell)
    for name, source in _without():
        found += _of(source, values.get(name, {}), panel=OUTSIDE, cell=source.cell)
    if "ours_bases" in kept:
        found += _of_bases(kept["ours_bases"])
    return found


def by_repeat(results: Results) -> dict[str, dict[int, float]]:
    """Return each number's value by repeat, by its key."""
    found: dict[str, dict[int, float]] = {}
    for cell in results.cells.values():
        for name, value in cell.values.items():
            place = key(cell.settings, name)
            start, _, condition = place.partition("/gopp/")
            if condition in CONDITIONS:  # GOPP has cells of its own
                place = f"{start}/{condition}/gopp"
            found.setdefault(place, {})[cell.repeat] = value
    return found


def _of(
    source: Source, values: Mapping[str, Mapping[int, float]], *, panel: str, cell: str
) -> Iterator[Distance]:
    best: dict[int, float] = {}
    for ceiling in source.ceilings:
        for repeat, value in values.get(ceiling, {}).items():
            better = min if source.error else max
            best[repeat] = better(value, best.get(repeat, value))
    for method in (*METHODS, *WITHOUT):
        ours = values.get(f"{cell}{method}{source.model}", {})
        shared = sorted({*ours} & {*best})
        if shared:
            below = [best[repeat] - ours[repeat] for repeat in shared]
            if source.error:
                below = [100 * (ours[repeat] / best[repeat] - 1) for repeat in shared]
            yield Distance(panel=panel, task=source.task, method=method, below=summary(below))


def _of_bases(results: Results) -> Iterator[Distance]:
    values = results.complete(load("ours_bases"))
    for basis in ours_bases.EVERYWHERE:
        below = ours_bases.gaps(values, basis=basis, model="linear", size=200)
        for place, each in below.items():
            task, dealt = place.split("/")
            panel = BASES["alike" if dealt == ours_bases.ALIKE else "skewed"]
            yield Distance(panel=panel, task=task, method=basis, below=summary(there(each)))


def overview(found: Sequence[Distance]) -> Figure | None:
    """Draw all distances in one chart: a row is a task, a shape and colour a method."""
    if not found:
        return None
    styles = looks(dict.fromkeys(each.method for each in found))
    panels = [panel for panel in PANELS if any(each.panel == panel for each in found)]
    groups = [panels[i : i + COLUMNS] for i in range(0, len(panels), COLUMNS)]
    tasks = [list(dict.fromkeys(d.task for d in found if d.panel in group)) for group in groups]
    heights = [0.9 + 0.44 * len(each) for each in tasks]
    figure = Figure(figsize=(9.5, 0.8 + sum(heights)), layout="constrained")
    grid = figure.subplots(len(groups), COLUMNS, squeeze=False, sharex=True, height_ratios=heights)
    for row, group, named in zip(grid, groups, tasks, strict=True):
        for axes, panel in zip(row, group, strict=False):
            inside = [each for each in found if each.panel == panel]
            _draw(axes, inside, named, styles=styles)
            axes.set_title(panel, fontsize=9)
        for axes in row[len(group) :]:
            axes.set_visible(False)
    said = "points below pooled data (days: % more error; by basis: points of R2)"
    figure.supxlabel(said, fontsize=9)
    handles: dict[str, Artist] = {}
    for axes in grid.flat:
        drawn, names = axes.get_legend_handles_labels()
        handles |= dict(zip(names, drawn, strict=True))
    drawn = [handles[name] for name in styles]
    figure.legend(handles=drawn, loc="outside upper center", ncols=5, frameon=False, fontsize=8)
    return figure


def _draw(
    axes: "Axes", found: Sequence[Distance], tasks: Sequence[str], *, styles: Mapping[str, Style]
) -> None:
    here = [name for name in styles if any(each.method == name for each in found)]
    for turn, name in enumerate(here):
        mine = [each for each in found if each.method == name]
        shift = (turn - (len(here) - 1) / 2) * 0.7 / len(here)
        style = styles[name]
        look: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 5}
        margins = [0.0 if each.below.repeats == 1 else each.below.margin for each in mine]
        means = [each.below.mean for each in mine]
        at = [tasks.index(each.task) + shift for each in mine]
        look |= {"xerr": margins, "linestyle": "none", "elinewidth": 0.8, "label": name}
        axes.errorbar(means, at, **look)
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.set_xscale("symlog", linthresh=NEAR)
    axes.set_xticks(TICKS, [str(tick) for tick in TICKS])
    axes.tick_params(labelsize=7.5, labelbottom=True)
    axes.set_yticks(range(len(tasks)), tasks)
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def missing(kept: Mapping[str, Results]) -> list[str]:
    """Return the studies that have nothing to show in it."""
    return [name for name in STUDIES if name not in kept or not kept[name].cells]
