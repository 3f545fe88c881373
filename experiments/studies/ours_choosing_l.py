"""Choosing l: what a party can compute alone, against what it costs.

Parties, rows and test sets as in the study of bases; ODC, basis svd, isometric anchor; 1,000 random
Fourier features with ridge. *Energy kept*: of a party's own rows by their top l directions.
*Overlap of halves*: mean squared cosine between the top l directions of one half of a party's rows
and those of the other; directions that a half has not count as none. Both are medians over four
parties, in per cent. A rule takes one l from those tried and not stopped by an undetermined fit;
what it loses is the best score of all of them less the score of its own.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from cobasis import ODC
from cobasis.errors import UndeterminedFitError
from experiments.harness.models import Table
from experiments.harness.statistics import summary
from experiments.harness.study import Study, Values, table
from experiments.harness.systems import generator, judged, prefixed, top_directions
from experiments.harness.uploads import uploads
from experiments.studies._ours import JUDGES, TASKS, deal, rff

DEALS = ("alike", "by label")
ASKED = 4  # parties that compute something alone: the first ones
ENERGIES = (0.8, 0.9, 0.95)
OVERLAPS = (0.5, 0.7)
FIXED = (50, 100)


def grid(task: str) -> tuple[int, ...]:
    return (5, 10, 25, 50) if task == "adult" else (10, 50, 100, 200)


def run(*, data: str, parties: str, repeat: int) -> Values:
    dealt = deal(data, repeat=repeat, skewed=parties == "by label")
    scores: dict[int, float] = {}
    told: Values = {}
    for size in grid(data):
        try:
            sent = uploads(dealt, n_components=size, judges=JUDGES)
            seen = sent.aligned(ODC())
        except UndeterminedFitError:
            continue  # an l that nobody can take
        found = judged(seen, make=rff)
        scores[size] = found[""]
        told |= prefixed(found, f"score, l={size}")
    tables = [rows for rows, _ in list(dealt.parties.values())[:ASKED]]
    energy, overlap = signs(tables, list(scores), repeat=repeat)
    lost = {
        f"lost by {name}": max(scores.values()) - scores[size]
        for name, size in rules(energy, overlap).items()
    }
    return (
        told
        | {f"energy kept, l={size}": 100 * share for size, share in energy.items()}
        | {f"overlap of halves, l={size}": 100 * share for size, share in overlap.items()}
        | lost
    )


def signs(
    tables: Sequence[Table], sizes: Sequence[int], *, repeat: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Return what parties see alone for each l, as the median over them."""
    most = max(sizes)
    energy: dict[int, list[float]] = {size: [] for size in sizes}
    overlap: dict[int, list[float]] = {size: [] for size in sizes}
    for number, rows in enumerate(tables):
        kept = np.sum((rows @ top_directions(rows, most)) ** 2, axis=0) / np.sum(rows**2)
        order = generator(repeat, 3, number).permutation(len(rows))
        one, two = (top_directions(rows[half], most) for half in np.array_split(order, 2))
        squares = (one.T @ two) ** 2
        for size in sizes:
            energy[size].append(float(kept[:size].sum()))
            overlap[size].append(float(squares[:size, :size].sum()) / size)
    return (
        {size: float(np.median(each)) for size, each in energy.items()},
        {size: float(np.median(each)) for size, each in overlap.items()},
    )


def rules(energy: Mapping[int, float], overlap: Mapping[int, float]) -> dict[str, int]:
    """Return the l that each rule takes.

    Energy: the smallest l that keeps so much, else the largest. Overlap: the largest l at which
    halves agree so far, else the smallest. Fixed: that l, or the largest below it.
    """
    sizes = sorted(energy)
    found = {}
    for share in ENERGIES:
        enough = [size for size in sizes if energy[size] >= share]
        found[f"energy {share:.0%}"] = min(enough, default=sizes[-1])
    for share in OVERLAPS:
        steady = [size for size in sizes if overlap[size] >= share]
        found[f"overlap {share:.0%}"] = max(steady, default=sizes[0])
    for size in FIXED:
        found[f"l = {size}"] = max((each for each in sizes if each <= size), default=sizes[0])
    found["largest l"] = sizes[-1]
    return found


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    lost: dict[str, dict[str, Sequence[float]]] = {}
    for key, each in values.items():
        place, _, rule = key.partition("/lost by ")
        if rule:
            lost.setdefault(rule, {})[place] = each
    lines, most = [], {}
    for rule, places in lost.items():
        means = {place: float(np.mean(each)) for place, each in places.items()}
        worst = max(means, key=means.__getitem__)
        mean = float(np.mean([*means.values()]))
        lines.append([rule, f"{summary(places[worst])}", worst, f"{mean:.1f}"])
        most[rule] = means[worst]
    best = min(most, key=most.__getitem__)
    seen = (
        "what a party sees of its own rows helps"
        if best.startswith(SEEN)
        else "no rule on what a party sees of its own rows does as well"
    )
    rows = table(["rule", "at most", "where", "mean"], lines)
    told = ["Points below the best l of the same task and deal:", "", *rows, ""]
    return [*told, f"The smallest of the greatest losses is that of **{best}**: {seen}."]


SEEN = ("energy", "overlap")  # how rules begin that look at a party's own rows
STUDY = Study(
    source="ours",
    unit="%",
    cells=[{"data": task, "parties": dealt} for task, dealt in product(TASKS, DEALS)],
    charted=("score, *",),
)
