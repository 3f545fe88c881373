"""The systems side by side: alone, pooled, and every aligner, judged in one way.

Each party predicts the whole test set with its own ``F_i G_i``; the figure is the mean over
parties. Parties whose aligned test rows are the same, as concordance makes them, are judged once.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from cobasis import GOPP, ODC, Imakura, Kawakami, PrivacyWarning, Round, Whitened, simulate
from cobasis.errors import UndeterminedFitError
from experiments.harness.models import Labels, Make, Metric, Table, fitted
from experiments.harness.study import SEED, Values

PAPERS: Mapping[str, Any] = {
    "imakura": Imakura(scale="paper"),
    "kawakami": Kawakami(scale="paper"),
    "odc": ODC(),
    "gopp": GOPP(),
}
"""The papers' aligners as the papers have them."""

OURS: Mapping[str, Any] = {
    "imakura, rescaled": Imakura(),
    "kawakami, rescaled": Kawakami(),
    "whitened": Whitened(),
}
"""With the one global scalar that makes sizes comparable, and whitened ODC."""

Found = TypeVar("Found")

SAME = 1e-9
"""Aligned rows that differ by less than this, relative, are the same."""

DEALT = "test rows dealt out"
"""Each test row predicted by one party only, and all predictions judged together."""

JUDGES = 5
"""Parties that predict, at most, where all their predictions differ: the first ones."""


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """Rows as parties hold them, and a test set that every party predicts whole."""

    parties: Mapping[str, tuple[Table, Labels]]  # of shapes (n_i, m) and (n_i,)
    test_rows: Table  # of shapes (n, m) and (n,)
    test_labels: Labels

    def pooled(self) -> tuple[Table, Labels]:
        """Return everybody's rows in one table."""
        tables, labels = zip(*self.parties.values(), strict=True)
        return np.vstack(tables), np.concatenate(labels)


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What a model is trained on, and the test rows as the parties see them."""

    rows: Table  # aligned, of all parties
    labels: Labels
    tests: Sequence[tuple[Table, int]]


def generator(repeat: int, *also: int) -> np.random.Generator:
    """Return the generator of one repeat; `also` tells what it is for."""
    return np.random.default_rng([SEED, repeat, *also])


def aligned(dealt: Dealt, *, repeat: int, judges: int = JUDGES, **options: Any) -> Shared:
    """Run one round for the representation alone; options are those of `cobasis.simulate`.

    The same repeat gives the same secrets, so that aligners and conditions differ in nothing else.
    """
    parties = a_round(dealt.parties, repeat=repeat, **options).parties
    judging = list(parties.values())[:judges]
    return Shared(
        rows=np.vstack([each.transform(dealt.parties[name][0]) for name, each in parties.items()]),
        labels=dealt.pooled()[1],
        tests=told_apart(party.transform(dealt.test_rows) for party in judging),
    )


def told_apart(tables: Iterable[Table]) -> list[tuple[Table, int]]:
    """Return what differs among test rows as parties see them, and how many see it so."""
    found: list[tuple[Table, int]] = []
    for seen in tables:
        for index, (known, count) in enumerate(found):
            if np.linalg.norm(seen - known) <= SAME * np.linalg.norm(known):
                found[index] = (known, count + 1)
                break
        else:
            found.append((seen, 1))
    return found


def a_round(
    parties: Mapping[str, tuple[Table, Labels]],
    *,
    repeat: int,
    **options: Any,
) -> Round:
    """Simulate a round that ends with aligned rows; the papers' anchors warn, and are meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return simulate(parties, rng=generator(repeat, 1), task="representation", **options)


def without_refused(
    attempt: Callable[[frozenset[str]], Found], *, n_parties: int
) -> tuple[Found | None, frozenset[str]]:
    """Call ``attempt(left_out)`` until nobody is refused; return its result, and who was left out.

    Where bases are not orthonormal a fit is now and then one that rounding would decide. Where
    that is so of more than half of the parties, nothing is found.
    """
    left_out: frozenset[str] = frozenset()
    while len(left_out) <= n_parties // 2:
        try:
            return attempt(left_out), left_out
        except UndeterminedFitError as error:
            if left_out.issuperset(error.parties):
                raise
            left_out |= {*error.parties}
    return None, left_out


def judged(
    shared: Shared,
    test_labels: Labels,
    *,
    make: Make,
    metrics: Mapping[str, Metric],
    repeat: int,
) -> Values:
    """Train once on aligned rows and return each metric's mean over parties.

    Where parties differ, the figure with test rows dealt out stands beside it: scores of
    several parties in one ranking show how far they are calibrated alike.
    """
    model = fitted(make(repeat), shared.rows, shared.labels)
    total = sum(count for _, count in shared.tests)
    turns = np.arange(len(test_labels)) % len(shared.tests)
    found: Values = {}
    for name, metric in metrics.items():
        predicted = [metric.predict(model, rows) for rows, _ in shared.tests]
        each = [metric.judge(test_labels, one) for one in predicted]
        counts = [count for _, count in shared.tests]
        found[name] = float(np.dot(each, counts)) / total
        if len(predicted) > 1:
            dealt = np.choose(turns, predicted)
            found[f"{name}, {DEALT}" if name else DEALT] = metric.judge(test_labels, dealt)
    return found


def central(
    dealt: Dealt,
    *,
    n_components: int | None,
    make: Make,
    metrics: Mapping[str, Metric],
    repeat: int,
) -> Values:
    """Return the ceiling: pooled rows, raw or on their own top directions, whichever is better."""
    rows, labels = dealt.pooled()
    turns = [None] if n_components is None else [None, top_directions(rows, n_components)]
    found: list[Values] = []
    for turn in turns:
        seen, test = (
            (rows, dealt.test_rows) if turn is None else (rows @ turn, dealt.test_rows @ turn)
        )
        shared = Shared(rows=seen, labels=labels, tests=[(test, 1)])
        found.append(judged(shared, dealt.test_labels, make=make, metrics=metrics, repeat=repeat))
    best = {name: max(each[name] for each in found) for name in metrics}
    raw = {f"{name}, raw": found[0][name] for name in metrics}
    return best | raw


def alone(
    dealt: Dealt,
    *,
    make: Make,
    metrics: Mapping[str, Metric],
    repeat: int,
    judges: int = JUDGES,
) -> Values:
    """Return the mean over parties of what each does with its own raw rows."""
    found: dict[str, list[float]] = {name: [] for name in metrics}
    for rows, labels in list(dealt.parties.values())[:judges]:
        shared = Shared(rows=rows, labels=labels, tests=[(dealt.test_rows, 1)])
        values = judged(shared, dealt.test_labels, make=make, metrics=metrics, repeat=repeat)
        for name, value in values.items():
            found[name].append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def top_directions(rows: Table, count: int) -> Table:
    """Return the leading right singular vectors of pooled rows, as columns."""
    if rows.shape[0] < rows.shape[1]:
        left = np.linalg.eigh(rows @ rows.T)[1][:, ::-1][:, :count]
        found: Table = np.linalg.qr(rows.T @ left)[0]
        return found
    turn: Table = np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :count]
    return turn


def prefixed(values: Values, *parts: str) -> Values:
    """Return values with a longer name: ``odc/mlp`` and a metric's, if there are several."""
    start = "/".join(parts)
    return {f"{start}/{name}" if name else start: value for name, value in values.items()}
