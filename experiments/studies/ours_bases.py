"""Bases: is one setting near pooled data on every task?

ODC, isometric anchor (a = m). Molecules: four parties of at most 600 rows, at random or of one
label; the given test part. Images, faces and Adult: ten parties of 250 rows, at random, or of two
labels each (faces, Adult: one); 2,000 test rows (faces: 900). Faces are Table 9's at 32 x 32 x 3,
where an anchor can be isometric. Days in hospital as in Table 11 (25 features): the eICU demo's
four regions, Diabetes 130-US's 50 sites, or the same stays dealt to as many parties at random. 500
public rows (PubChem, or what nobody holds: 361 faces, 200 stays in hospitals without a region). l =
50, 100, 200; Adult 50, since parties have not a hundred of its 108 features together; days 10, 20,
and on a basis that all share 24, since one party has not all 25. *linear* is logistic regression (C
= 1; days: ridge), *rff* 1,000 random Fourier features with ridge, and the papers' MLP stands at the
largest l; *whitened* puts a PCA that whitens before the model, for aligned and for pooled rows
alike. The basis `pooled`: everybody's rows on their own top l directions; `raw`: without
projection. Accuracy for images and faces, ROC-AUC for molecules and Adult, and for days R2, the
share of their variance that is explained: two points are about 1 % of the error in days. Cut for
time: rows of molecule parties (Table 7 has all); pca and lpp run on images and Adult only; they,
public and haar at the largest l, and without the MLP; pooled raw molecules are fitted in single
precision; three parties predict. *undetermined*: a fit was refused. Masked sums have no basis and
no l: 1,000 random Fourier features of three bandwidths, as by default.
"""  # noqa: D400

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from cobasis import ODC
from cobasis.errors import UndeterminedFitError
from experiments.data.images import IMAGES
from experiments.data.molecules import TASKS as MOLECULES
from experiments.harness.models import Make, mlp, mlp_regressor
from experiments.harness.statistics import Summary, summary
from experiments.harness.store import there
from experiments.harness.study import Study, Values, table
from experiments.harness.systems import Dealt, judged, prefixed, top_directions
from experiments.harness.uploads import uploads
from experiments.studies import _ours
from experiments.studies._ours import TASKS as CLASSES
from experiments.studies.table_07_tdc import in_single_precision

TASKS = (*CLASSES, *_ours.DAYS)
ALIKE = "alike"
EVERYWHERE = ("svd", "consensus", "weighted_consensus", "public", "haar")
CHEAP: Mapping[str, tuple[str, ...]] = dict.fromkeys((*IMAGES, "adult"), ("pca", "lpp"))
"""Bases that run on a few tasks only."""

PLAIN = ("linear", "rff")
MODELS = tuple(f"{name}{how}" for name in PLAIN for how in ("", ", whitened"))
NETWORK = ("svd", "consensus", "weighted_consensus")
"""Bases that the papers' network is trained on as well, at the largest l, unwhitened."""

AT_LARGEST = ("haar", "public", "pca", "lpp")
"""Bases that are measured at the largest l only, where they are at their best."""

MOST_ROWS = 600  # a molecule party's rows, at most: more than the largest l, and cheaper than all
PUBLIC_ROWS = 500
NEAR = 2.0  # points from the ceiling that the issue allows


def run(*, data: str, parties: str, basis: str, repeat: int) -> Values:
    dealt = _ours.deal(data, repeat=repeat, skewed=parties != ALIKE, most=MOST_ROWS)
    if basis == "pooled":
        return _pooled(dealt, data)
    if basis == _ours.SUMS:
        return _ours.added_up(dealt, data)
    found: Values = {}
    options: dict[str, Any] = {"basis": basis, "judges": _ours.JUDGES}
    if basis == "public":
        options["public_rows"] = _ours.public(data, repeat=repeat, count=PUBLIC_ROWS)
    for size in tried(data, basis):
        try:
            seen = uploads(dealt, n_components=size, **options).aligned(ODC())
        except UndeterminedFitError:
            found[f"undetermined, l={size}"] = 1.0
            continue
        for name, make in _models(data, basis, size).items():
            found |= prefixed(judged(seen, make=make), f"{name}, l={size}")
    return found


def tried(task: str, basis: str) -> tuple[int, ...]:
    return _ours.sizes(task, basis)[-1:] if basis in AT_LARGEST else _ours.sizes(task, basis)


SKEWED = {"eicu demo": "by region", "diabetes130": "by site"}  # and else by label
PLACES = [(task, dealt) for task in TASKS for dealt in (ALIKE, SKEWED.get(task, "by label"))]


def raw_models(task: str) -> dict[str, Make]:
    if task in _ours.DAYS:
        return {"linear": _ours.ridge, "rff": _ours.rff_ridge, "mlp": mlp_regressor}
    return {"linear": _ours.logistic, "rff": _ours.rff, "mlp": mlp}


def _models(task: str, basis: str, size: int) -> dict[str, Make]:
    found = raw_models(task)
    network = found.pop("mlp")
    found |= {f"{name}, whitened": _ours.whitened(make) for name, make in found.items()}
    compared = NETWORK if basis == "pooled" else {*NETWORK} & {basis}
    trained = size in {tried(task, each)[-1] for each in compared}
    return found | ({"mlp": network} if trained else {})


def _pooled(dealt: Dealt, task: str) -> Values:
    """Measure pooled rows: raw, and on their own top directions with the same pipelines.

    The ceiling is the better of the two. Raw rows are not whitened: fingerprints and borders of
    images have columns of no variance.
    """
    found: Values = {}
    raw = (in_single_precision(dealt) if task in MOLECULES else dealt).shared()
    for name, make in raw_models(task).items():
        found |= prefixed(judged(raw, make=make), f"{name}, raw")
    turn = top_directions(dealt.pooled()[0], _ours.sizes(task)[-1])
    for size in _ours.sizes(task):
        seen = dealt.shared(turn[:, :size])
        for name, make in _models(task, "pooled", size).items():
            found |= prefixed(judged(seen, make=make), f"{name}, l={size}")
    return found


def gaps(
    values: Mapping[str, Sequence[float]], *, basis: str, model: str, size: int
) -> dict[str, np.ndarray[Any, Any]]:
    """Return points below the ceiling by task and deal; NaN of repeats that were stopped."""
    found = {}
    for task, dealt in PLACES:
        fitting = [each for each in _ours.sizes(task, basis) if each <= size]
        place = f"{task}/{dealt}"
        name = f"{model}, l={max(fitting)}"
        raw = f"{place}/pooled/{model.removesuffix(', whitened')}, raw"
        needed = (f"{place}/{basis}/{name}", f"{place}/pooled/{name}", raw)
        if values.keys() >= set(needed):
            ours, top, untouched = (np.asarray(values[each]) for each in needed)
            found[place] = np.maximum(top, untouched) - ours
    return found


def settings_of(values: Mapping[str, Sequence[float]]) -> Iterator[tuple[str, str, int]]:
    """Name all settings that ran on every task and deal; a basis has the l that it was tried at."""
    for basis, model, size in product(EVERYWHERE, (*MODELS, "mlp"), (50, 100, 200)):
        if basis in AT_LARGEST and size != max(tried(TASKS[0], basis)):
            continue
        if len(gaps(values, basis=basis, model=model, size=size)) == len(PLACES):
            yield basis, model, size


@dataclass(frozen=True, kw_only=True)
class Setting:
    name: str  # of all three
    most: Summary  # points below the ceiling where that is most
    where: str  # the task and deal of that
    reach: float  # the farthest that any task's interval reaches; not a number with one repeat
    mean: float  # points below, over all tasks and deals
    stopped: int  # repeats whose round was stopped, on the task where that was most often

    def __str__(self) -> str:
        return f"{self.name} ({self.stopped} stopped)" if self.stopped else self.name


def judged_settings(values: Mapping[str, Sequence[float]]) -> list[Setting]:
    """Return every setting that mostly ran everywhere, the one that is nearest first."""
    found = []
    for basis, model, size in settings_of(values):
        everywhere = gaps(values, basis=basis, model=model, size=size)
        below = {place: there(each) for place, each in everywhere.items()}
        if any(2 * len(each) <= len(everywhere[place]) for place, each in below.items()):
            continue
        stopped = max(len(everywhere[place]) - len(each) for place, each in below.items())
        summaries = {place: summary(each) for place, each in below.items()}
        worst = max(summaries, key=lambda place: summaries[place].mean)
        setting = Setting(
            name=f"{basis}, {model}, l = {size}",
            most=summaries[worst],
            where=worst,
            reach=max(each.mean + each.margin for each in summaries.values()),
            mean=float(np.mean([each.mean for each in summaries.values()])),
            stopped=stopped,
        )
        found.append(setting)
    return sorted(found, key=lambda each: each.most.mean)


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    found = judged_settings(values)
    lines = [
        [f"{each}", f"{each.most}", each.where, f"{each.reach:.1f}", f"{each.mean:.1f}"]
        for each in found
    ]
    head = ["basis, model, l", "at most", "where", "no interval beyond", "mean"]
    ran = [each for each in found if not each.stopped]
    near = "; ".join(each.name for each in ran if each.most.mean <= NEAR) or "none"
    sure = "; ".join(each.name for each in ran if each.reach <= NEAR) or "none"
    told = ""
    for basis in EVERYWHERE:
        below = gaps(values, basis=basis, model="linear", size=200)
        gap = {place: below.get(place, ()) for place in map("/".join, PLACES)}
        places = [place for place, each in gap.items() if 2 * len(there(each)) <= len(each)]
        told += f"Mostly stopped: {basis} ({', '.join(places)}). " if places else ""
    if len(ran) < len(found):
        told += "*Stopped*: rounds of one task, at most, which its figures leave out."
    return [
        "Points below pooled data (on its own top l directions with the same model, or raw):",
        "",
        *table(head, lines),
        "",
        told,
        "",
        f"Within {NEAR:g} points of the ceiling on every task and deal, by the means: {near}.",
        f"With every interval: {sure}.",
        *_of_sums(values),
    ]


def sums_gaps(
    values: Mapping[str, Sequence[float]],
) -> dict[str, tuple[np.ndarray[Any, Any], float]]:
    """Return points of masked sums below raw pooled rows of the same family, and n/D, by place."""
    found = {}
    for place in map("/".join, PLACES):
        names = f"{place}/{_ours.SUMS}/rff", f"{place}/pooled/rff, raw", f"{place}/{_ours.SUMS}/n/D"
        if values.keys() >= {*names}:
            ours, top, share = (np.asarray(values[name]) for name in names)
            found[place] = top[: len(ours)] - ours, float(share[0])
    return found


def _of_sums(values: Mapping[str, Sequence[float]]) -> list[str]:
    """Say how far masked sums are from the raw pooled rows under the same family."""
    found = sums_gaps(values)
    below = {place: summary(there(each)) for place, (each, _) in found.items()}
    shares = [share for _, share in found.values()]
    if not below:
        return []
    worst = max(below, key=lambda place: below[place].mean)
    mean = float(np.mean([each.mean for each in below.values()]))
    told = f"{mean:.1f} on average, {below[worst]} at most ({worst})"
    rows = f"{min(shares):.2g} to {max(shares):.2g} rows for each feature"
    return ["", f"Masked sums, below random features and ridge on raw pooled rows: {told}; {rows}."]


STUDY = Study(
    source="ours",
    unit="ROC-AUC, accuracy or R2, %",
    cells=[
        {"data": task, "parties": dealt, "basis": basis}
        for task, dealt in PLACES
        for basis in ("pooled", _ours.SUMS, *EVERYWHERE, *CHEAP.get(task, ()))
    ],
    charted=("rff, l=50", "rff, l=?00", "rff, raw"),
)
