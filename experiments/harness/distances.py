"""How far every method is from pooled data, over all tasks, from many studies.

Distances are taken repeat by repeat against pooled rows with the same model, so that what a
repeat's split does to both cancels. Errors count as per cent of the pooled error.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from experiments.data.molecules import TASKS as MOLECULES
from experiments.harness.noise import PAPERS_NOISE
from experiments.harness.statistics import Summary, summary
from experiments.harness.store import Results, there
from experiments.harness.study import CONDITIONS, key, load, table
from experiments.studies import ours_bases, table_09, table_11
from experiments.studies._ours import IMAGES

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


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far one method is from pooled data on one task."""

    panel: str  # in which table it stands
    task: str
    method: str
    below: Summary  # points, or per cent of the pooled error


@dataclass(frozen=True)
class Source:
    """How a study's numbers are named: ``{cell}{method}{model}``, and its ceiling."""

    task: str  # what it is called
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


STUDIES = (
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
    for name, source in _spans():
        outside = [(source.cell.format("any"), source.model)]
        if name == "table_09":
            outside = [("any/", "/mlp"), (f"{table_09.FITS}/", "/mlp"), (source.cell[:-3], "")]
        for cell, model in outside:
            alone = replace(source, model=model)
            found += _of(alone, values.get(name, {}), panel=OUTSIDE, cell=cell)
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


def tables(found: Sequence[Distance]) -> list[str]:
    """Return all distances as Markdown: a row is a task, a column a method."""
    lines: list[str] = []
    for panel in dict.fromkeys(each.panel for each in found):
        here = {(each.task, each.method): f"{each.below}" for each in found if each.panel == panel}
        tasks, methods = (list(dict.fromkeys(each)) for each in zip(*here, strict=True))
        rows = [[task, *(here.get((task, name), "") for name in methods)] for task in tasks]
        lines += [f"**{panel}**", "", *table(["task", *methods], rows), ""]
    return lines


def missing(kept: Mapping[str, Results]) -> list[str]:
    """Return the studies that have nothing to show in it."""
    return [name for name in STUDIES if name not in kept or not kept[name].cells]
