"""DC-SHAP: do parties find the same reasons for one prediction?

{N_TEST} test rows that nobody holds, explained by each of {N_PARTIES} parties, the first
{N_COLUMNS} columns; Shapley values of the log-odds, exact over all coalitions. *Common reference*:
the common model beside rows made of the anchor (`predict --explain`). *Own rows*: the same model
beside {N_OWN} rows of the party, as KernelSHAP is used without an agreement. *Models alone*: each
party's own model beside its own rows. How far two parties' values are apart, over all pairs, rows
and columns: *absolute*, the mean difference in per cent of their mean size; *squares*, the root
mean square in per cent of theirs; *angle*, one less the cosine between two explanations of a row,
in per cent. DC-SHAP (arXiv:2212.03373) is known here by its abstract, which has a factor and no
measure, hence three; where a span is common all three are rounding. Rows *alike* are dealt at
random, *unlike* by the first column with noise.
"""  # noqa: D400

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.special import comb
from sklearn.datasets import load_breast_cancer, load_wine

from cobasis import simulate, train
from experiments.harness.models import Labels, Table
from experiments.harness.statistics import summary
from experiments.harness.study import Study, Values, crossed, table
from experiments.harness.systems import generator

N_PARTIES, N_COLUMNS, N_TEST, N_OWN = 3, 6, 5, 50
BASES: Mapping[str, dict[str, Any]] = {
    "haar, l = 6": {"basis": "haar", "n_components": 6},
    "svd, l = 4": {"basis": "svd", "n_components": 4},
}
DATA = {"breast cancer": load_breast_cancer, "wine": load_wine}
NAMES = ("common reference", "own rows", "models alone")
MEASURES = ("absolute", "squares", "angle")


def run(*, data: str, model: Any, rows: str, basis: str, repeat: int) -> Values:
    rng = generator(repeat, 35)
    parties, test = _dealt(data, alike=rows == "alike", rng=rng)
    done = simulate(parties, rng=rng, model=model, **BASES[basis])
    found: dict[str, list[Table]] = {name: [] for name in NAMES}
    for name, (held, labels) in parties.items():
        party, own = done.parties[name], held[rng.permutation(len(held))[:N_OWN]]
        alone = train(held, labels, model=model, task="classification", seed=repeat, n_classes=2)
        found["common reference"].append(party.attributions(test).values)
        found["own rows"].append(_by_own(party.model, party.transform, test=test, own=own))
        found["models alone"].append(_by_own(alone, np.asarray, test=test, own=own))
    apart = {name: _apart(told) for name, told in found.items()}
    values = {
        f"{measure}, {name}": each for name, told in apart.items() for measure, each in told.items()
    }
    if basis == "haar, l = 6":  # common reasons are equal to rounding
        return values
    common = apart["common reference"]
    return values | {
        f"{measure}, times smaller than {name}": apart[name][measure] / common[measure]
        for measure in MEASURES
        for name in NAMES[1:]
    }


def _dealt(
    data: str, *, alike: bool, rng: np.random.Generator
) -> tuple[dict[str, tuple[Table, Labels]], Table]:
    """Return parties' rows on one scale, and test rows of nobody."""
    rows, classes = DATA[data](return_X_y=True)
    rows, labels = rows[:, :N_COLUMNS], (classes == 1).astype(int)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    order = rng.permutation(len(rows))
    test, rest = order[:N_TEST], order[N_TEST:]
    if not alike:  # a party has rows of small values of the first column, another of large ones
        rest = rest[np.argsort(rows[rest, 0] + 0.7 * rng.normal(size=len(rest)))]
        parts = np.array_split(rest, N_PARTIES)
    else:
        parts = [rest[at::N_PARTIES] for at in range(N_PARTIES)]
    return {f"party-{at}": (rows[each], labels[each]) for at, each in enumerate(parts)}, rows[test]


def _by_own(model: Any, aligned: Callable[[Table], Table], *, test: Table, own: Table) -> Table:
    """Return Shapley values of a model's log-odds of test rows beside a party's own, as defined."""
    every = np.arange(2**N_COLUMNS)
    inside = every[:, np.newaxis] >> np.arange(N_COLUMNS) & 1 > 0
    share = 1 / (N_COLUMNS * comb(N_COLUMNS - 1, inside.sum(axis=1).clip(1) - 1))
    values = np.empty(test.shape)
    for at, row in enumerate(test):
        mixed = np.where(inside[:, np.newaxis], row, own).reshape(-1, N_COLUMNS)
        odds = np.diff(model.outputs(aligned(mixed)), axis=1)
        worth = odds.reshape(-1, len(own)).mean(axis=1)
        for column in range(N_COLUMNS):
            known = every[inside[:, column]]
            values[at, column] = share[known] @ (worth[known] - worth[known ^ 1 << column])
    return values


def _apart(told: Sequence[Table]) -> dict[str, float]:
    """Return how far parties' values are apart, by each measure, in per cent."""
    size, pairs = np.concatenate(told), [*combinations(told, 2)]
    off = np.concatenate([one - two for one, two in pairs])
    length = [np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1) for one, two in pairs]
    cosines = [np.sum(one * two, axis=1) for one, two in pairs]
    return {
        "absolute": 100 * float(np.abs(off).mean() / np.abs(size).mean()),
        "squares": 100 * float(np.sqrt(np.mean(off**2) / np.mean(size**2))),
        "angle": 100 * float(1 - np.mean(np.divide(cosines, length))),
    }


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    head = ["data", "model", "rows", "basis", "measure", *NAMES]
    head += [f"{name} / common" for name in NAMES[1:]]
    lines = []
    for start, measure in product(("/".join(map(str, each.values())) for each in CELLS), MEASURES):
        names = (*NAMES, *(f"times smaller than {name}" for name in NAMES[1:]))
        told = [values.get(f"{start}/{measure}, {name}") for name in names]
        if told[0]:
            found = (f"{summary(each)}" if each else "equal" for each in told)
            lines.append([*start.split("/"), measure, *found])
    return [*table(head, lines), "", "The paper: discrepancies fall by a factor of at least 1.75."]


CELLS = crossed(data=DATA, model=("logistic", "rff"), rows=("alike", "unlike"), basis=BASES)
STUDY = Study(
    source="ours",
    unit="%",
    cells=CELLS,
    repeats=20,
    charted=("absolute, [!t]*",),
)
