"""Masked sums: how near is their model to the best that pooled rows give?

Tasks, parties and test parts as in the study of bases, and heart disease at four hospitals; sums
have the very model of the pooled rows, so how rows are dealt does not matter; of molecules a party
has 600 rows at most. *columns*: each from its lowest to its highest value. *rff*: 1,000 random
Fourier features of three bandwidths. *mixed*: 500 waves of three columns each on normal scores,
three bandwidths, beside each column in 32 pieces. Knots and ranges are those of all rows, as a
table of counts by masked sums would give. Penalty, bandwidth and, for *by evidence*, the map are
taken by the evidence. Pooled: boosted trees, the library's network, and a support vector machine
with an RBF kernel (days: its regression), tuned by cross-validation. ROC-AUC; days: R2. n/D: rows
for each feature.
"""  # noqa: D400

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cobasis import Columns, Mixed, NumericFeature, RandomFourier, simulate, train
from experiments.data.molecules import TASKS as MOLECULES
from experiments.harness.models import Table
from experiments.harness.statistics import summary
from experiments.harness.study import Study, Values, table
from experiments.harness.systems import Dealt, generator
from experiments.studies._ours import DAYS, Judged, deal, metric
from experiments.studies.ours_local_fit import SITES
from experiments.studies.table_11 import wards

HEART = "heart disease"
TASKS = ("adult", HEART, *DAYS, *MOLECULES)
MOST_ROWS = 600  # a molecule party's, as in the study of bases
MAPS = ("columns", "rff", "mixed", "by evidence")
POOLED: tuple[Any, ...] = ("boosted_trees", "mlp", "svm")
NEAR = 2.0  # points below the best pooled family that are asked for


def run(*, data: str, repeat: int) -> Values:
    dealt = dealt_of(data, repeat)
    rows, labels = dealt.pooled()
    numbers = data in DAYS
    how: dict[str, Any] = {"task": "regression" if numbers else "classification"}
    judge = metric("eicu demo" if numbers else "adult")
    found, surprise = Values(), dict[str, float]()

    def score(model: Any) -> float:
        return judge.judge(dealt.test_labels, judge.predict(Judged(model), dealt.test_rows))

    for name, maps in _maps(rows).items():
        options = {"features": _features(rows), "maps": maps, **how}
        done = simulate(dealt.parties, rng=generator(repeat, 5), release="sums", **options).result
        found[f"sums, {name}"] = score(done.model)
        found[f"n/D, {name}"] = done.rows_per_feature
        surprise[name] = done.found[done.chosen].surprise
    found["sums, by evidence"] = found[f"sums, {min(surprise, key=surprise.__getitem__)}"]
    how |= {"seed": repeat, "allow_row_carrying": True, "aligned": False}
    return found | {
        f"pooled, {family}": score(train(rows, labels, model=family, **how)) for family in POOLED
    }


def _features(rows: Table) -> list[NumericFeature]:
    low, high = rows.min(axis=0), rows.max(axis=0)
    ends = zip(low, np.where(high > low, high, low + 1), strict=True)
    return [
        NumericFeature(name=f"x{at}", low=float(a), high=float(b)) for at, (a, b) in enumerate(ends)
    ]


def _maps(rows: Table) -> dict[str, list[Any]]:
    """Return what sums are made of; a list is of bandwidths."""
    scale, knots = float(np.sqrt(rows.var(axis=0).sum() / 2)), Mixed.from_public_rows(rows).knots
    return {
        "columns": [Columns()],
        "rff": [RandomFourier(bandwidth=share * scale) for share in (0.5, 1.0, 2.0)],
        "mixed": [Mixed(knots=knots, bandwidth=width) for width in (0.75, 1.5, 3.0)],
    }


def dealt_of(task: str, repeat: int) -> Dealt:
    """Deal a task's rows; sums do not depend on how."""
    if task != HEART:
        return deal(task, repeat=repeat, skewed=False, most=MOST_ROWS)
    setup = SITES[HEART]
    return wards(setup.load(), setup=setup, repeat=repeat)


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    lines, near = [], []
    for task in TASKS:
        of = {
            key.removeprefix(f"{task}/"): np.asarray(each)
            for key, each in values.items()
            if key.startswith(f"{task}/")
        }
        if not of:
            continue
        best = max(POOLED, key=lambda family: float(np.mean(of[f"pooled, {family}"])))
        gaps = {name: summary(of[f"pooled, {best}"] - of[f"sums, {name}"]) for name in MAPS}
        lines.append([task, best, *(f"{each}" for each in gaps.values())])
        near += [task] if gaps["by evidence"].mean <= NEAR else []
    head = ["task", "best pooled family", *(f"{name}, below it" for name in MAPS)]
    return [
        "Points below the pooled family that is best on average, by map (less is better):",
        "",
        *table(head, lines),
        "",
        f"Within {NEAR:g} points with the map that evidence takes: {', '.join(near) or 'none'}.",
    ]


STUDY = Study(
    source="ours",
    unit="ROC-AUC or R2, %",
    cells=[{"data": task} for task in TASKS],
    charted=("sums, *", "pooled, *"),
)
