"""What the evidence says of the two goals, with figures; no verdict is typed by hand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from experiments.harness.distances import by_repeat
from experiments.harness.statistics import Summary, summary
from experiments.harness.store import Results
from experiments.harness.study import CONDITIONS, load, table
from experiments.studies import ours_bases

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
    """Return both verdicts, as Markdown."""
    return [*given_spans(kept), "", *free_basis(kept)]


def given_spans(kept: Mapping[str, Results]) -> list[str]:
    """Say what there is of the first goal."""
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
    """Say what there is of the second goal."""
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
