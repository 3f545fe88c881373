"""What many studies say together: how far methods are from pooled data, and of the two goals.

Distances are taken repeat by repeat against pooled rows with the same model, so that what a
repeat's split does to both cancels. Errors count as per cent of the pooled error. No verdict is
typed by hand.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from experiments.data.images import IMAGES
from experiments.data.molecules import TASKS as MOLECULES
from experiments.harness.noise import PAPERS_NOISE
from experiments.harness.statistics import Summary, summary
from experiments.harness.store import Results, there
from experiments.harness.study import CONDITIONS, key, load, table
from experiments.studies import ours_bases, table_09, table_11

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
ADDED = "masked sums, rff"
BASES = {"alike": "ODC, parties alike, by basis", "skewed": "ODC, parties that differ, by basis"}


@dataclass(frozen=True, kw_only=True)
class Distance:
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
    for basis in (*ours_bases.EVERYWHERE, ADDED):
        if basis == ADDED:
            below = {place: each for place, (each, _) in ours_bases.sums_gaps(values).items()}
        else:
            below = ours_bases.gaps(values, basis=basis, model="linear", size=200)
        for place, each in below.items():
            task, dealt = place.split("/")
            panel = BASES["alike" if dealt == ours_bases.ALIKE else "skewed"]
            yield Distance(panel=panel, task=task, method=basis, below=summary(there(each)))


def tables(found: Sequence[Distance]) -> list[str]:
    lines: list[str] = []
    for panel in dict.fromkeys(each.panel for each in found):
        here = {(each.task, each.method): f"{each.below}" for each in found if each.panel == panel}
        tasks, methods = (list(dict.fromkeys(each)) for each in zip(*here, strict=True))
        rows = [[task, *(here.get((task, name), "") for name in methods)] for task in tasks]
        lines += [f"**{panel}**", "", *table(["task", *methods], rows), ""]
    return lines


def missing(kept: Mapping[str, Results]) -> list[str]:
    return [name for name in STUDIES if name not in kept or not kept[name].cells]


PAPERS = ("imakura", "kawakami", "odc", "gopp")
ANCHORS = {  # where methods under given span conditions are measured, and with which anchor
    "table_07_images": "uniform anchor",
    "table_07_tdc": "uniform anchor",
    "ours_spans": "isometric anchor",
}

MET, MISSED, UNMEASURED = "met", "missed", "not measured"
BY_MEANS = "met by the means, but not by every interval"
ENOUGH = 2  # repeats without which there is no interval
SHOWN = 3  # settings of the second goal that are listed
Place = tuple[str, str, str]  # data, condition, and model or metric
Repeats = Mapping[int, float]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One aligner and anchor against the best of the papers' methods."""

    name: str
    behind: Mapping[Place, Summary]  # by how much the best is ahead, repeat by repeat
    places: int  # at how many places there is a best to compare with

    @property
    def below(self) -> list[Place]:
        """Where it is behind by more than the interval, the farthest first."""
        far = [place for place, each in self.behind.items() if each.mean > each.margin]
        return sorted(far, key=lambda place: -self.behind[place].mean)

    @property
    def whole(self) -> bool:
        """Whether it was measured wherever the papers' methods were."""
        return len(self.behind) == self.places


def lines(kept: Mapping[str, Results]) -> list[str]:
    return [*given_spans(kept), "", *free_basis(kept)]


def given_spans(kept: Mapping[str, Results]) -> list[str]:
    found = candidates(kept)
    whole = sorted((each for each in found if each.whole), key=lambda each: len(each.below))
    if not whole:
        verdict, why = UNMEASURED, "no aligner has two repeats wherever the papers' methods have."
    elif not whole[0].below:
        verdict = MET
        why = f"{whole[0].name} is nowhere below the best of the papers' methods by more."
    else:
        verdict = MISSED
        why = f"the nearest is {whole[0].name}, below at {len(whole[0].below)} of the places."
    said = (
        f"**(a) Where the span condition is given: {verdict}.** Asked for is one aligner and "
        "anchor that under none of the four conditions of Table 7, on no data set and with no "
        "model or measure, is below the best of the papers' methods there by more than the 95 % "
        f"interval of the difference, repeat by repeat: {why}"
    )
    if not found:
        return [said]
    found.sort(key=lambda each: (not each.whole, len(each.below), -len(each.behind)))
    head = ["aligner and anchor", "measured at", "below by more", "farthest below"]
    rows = []
    for each in found:
        far = next((f"{' · '.join(p)}: {each.behind[p]}" for p in each.below), "nowhere")
        rows.append([each.name, f"{len(each.behind)} of {each.places}", f"{len(each.below)}", far])
    return [said, "", *table(head, rows)]


def candidates(kept: Mapping[str, Results]) -> list[Candidate]:
    """Compare every aligner and anchor with the best of the papers' methods, place by place."""
    measured: dict[str, dict[Place, Repeats]] = {}
    for study, anchor in ANCHORS.items():
        for method, place, repeats in _read(kept.get(study)):
            measured.setdefault(f"{method}, {anchor}", {})[place] = repeats
    uniform = ANCHORS["table_07_tdc"]
    papers = [measured[f"{m}, {uniform}"] for m in PAPERS if f"{m}, {uniform}" in measured]
    here = {place: [o[place] for o in papers if place in o] for each in papers for place in each}
    best = {place: max(of, key=lambda r: np.mean([*r.values()])) for place, of in here.items()}
    behind = {name: _behind(found, best) for name, found in measured.items()}
    return [Candidate(name=n, behind=b, places=len(best)) for n, b in behind.items() if b]


def _read(results: Results | None) -> Iterator[tuple[str, Place, Repeats]]:
    if results is None:
        return
    for name, repeats in by_repeat(results).items():
        data, condition, method, *rest = name.split("/")
        plain = len(rest) == 1 and "," not in rest[0] and rest[0] != "refused"
        if condition in CONDITIONS and plain and len(repeats) >= ENOUGH:
            yield method, (data, condition, rest[0]), repeats


def _behind(found: Mapping[Place, Repeats], best: Mapping[Place, Repeats]) -> dict[Place, Summary]:
    behind = {}
    for place, top in best.items():
        shared = sorted({*found.get(place, ())} & {*top})
        if len(shared) >= ENOUGH:
            behind[place] = summary([top[r] - found[place][r] for r in shared])
    return behind


def free_basis(kept: Mapping[str, Results]) -> list[str]:
    asked = (
        f"Asked for is one setting for all tasks within {ours_bases.NEAR:g} points of pooled data "
        "with the same model, wherever parties have more rows than l: "
    )
    results = kept.get("ours_bases")
    values = {} if results is None else results.complete(load("ours_bases"))
    tried = ours_bases.judged_settings(values)
    found = [each for each in tried if not each.stopped]
    start = "**(b) Where the basis is free: "
    if not found:
        return [f"{start}{UNMEASURED}.** {asked}no setting has been measured on every task yet."]
    verdict = MET if min(each.reach for each in found) <= ours_bases.NEAR else MISSED
    if verdict == MISSED and found[0].most.mean <= ours_bases.NEAR:
        verdict = BY_MEANS
    if found[0].most.repeats < ENOUGH:
        verdict, asked = UNMEASURED, f"{asked}there is one repeat, which has no interval."
    near = [each for each in found if each.most.mean <= ours_bases.NEAR]
    told = [
        f"{each.name}: at most {each.most} points below ({each.where}), {each.mean:.1f} on "
        f"average; no interval reaches beyond {each.reach:.1f}"
        for each in (near or found)[:SHOWN]
    ]
    return [f"{start}{verdict}.** {asked}", "", *(f"- {each}" for each in told)]
