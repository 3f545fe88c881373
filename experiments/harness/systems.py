"""The systems side by side: alone, pooled, and every aligner, judged in one way.

Each party predicts the whole test set with its own ``F_i G_i``; the figure is the mean over
parties. Parties whose aligned test rows are the same, as concordance makes them, are judged once.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from cobasis import GOPP, ODC, Imakura, Kawakami, PrivacyWarning, Round, Whitened, simulate
from cobasis.errors import UndeterminedFitError
from experiments.harness.models import ACCURACY, Labels, Make, Metric, Table, fitted, mlp
from experiments.harness.study import SEED, Values

PAPERS: Mapping[str, Any] = {  # the papers' aligners as the papers have them
    "imakura": Imakura(scale="paper"),
    "kawakami": Kawakami(scale="paper"),
    "odc": ODC(),
    "gopp": GOPP(),
}

OURS: Mapping[str, Any] = {
    "imakura, rescaled": Imakura(),
    "kawakami, rescaled": Kawakami(),
    "whitened": Whitened(),
}
"""With the one global scalar that makes sizes comparable, and whitened ODC."""

Found = TypeVar("Found")

SAME = 1e-9  # aligned rows that differ by less than this, relative, are the same
ACCURATE: Mapping[str, Metric] = {"": ACCURACY}
DEALT = "test rows dealt out"
"""Each test row predicted by one party only, and all predictions judged together."""

JUDGES = 5  # parties that predict, at most, where all their predictions differ: the first ones


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What a model is trained on, and the test rows as the parties see them."""

    rows: Table  # aligned, of all parties
    labels: Labels
    tests: Sequence[tuple[Table, int]]  # what differs, and how many see it so
    test_labels: Labels


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

    def shared(self, turn: Table | None = None) -> Shared:
        """Return pooled rows to train on, raw or turned."""
        rows, labels = self.pooled()
        test = self.test_rows
        if turn is not None:
            rows, test = rows @ turn, test @ turn
        return Shared(rows=rows, labels=labels, tests=[(test, 1)], test_labels=self.test_labels)


def generator(repeat: int, *also: int) -> np.random.Generator:
    """Return the generator of one repeat; `also` tells what it is for."""
    return np.random.default_rng([SEED, repeat, *also])


def basis_turn(condition: str, size: int, *, rng: np.random.Generator) -> Table:
    """Draw E_i: Haar, or with entries from U[0, 1] where a condition is not orthonormal."""
    if condition in {"samespan", "diffspan"}:
        return rng.random((size, size))
    factor, triangle = np.linalg.qr(rng.standard_normal((size, size)))
    turn: Table = factor * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    return turn


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


def a_round(parties: Mapping[str, tuple[Table, Labels]], *, repeat: int, **options: Any) -> Round:
    """Simulate a round that ends with aligned rows; the papers' anchors warn, and are meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        made: Round = simulate(parties, rng=generator(repeat, 1), task="representation", **options)
        return made


def without_refused(
    attempt: Callable[[frozenset[str]], Found], *, n_parties: int
) -> tuple[Found | None, frozenset[str]]:
    """Call ``attempt(left_out)`` until nobody is refused, or most are and nothing is found."""
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
    shared: Shared, *, repeat: int, make: Make = mlp, metrics: Mapping[str, Metric] = ACCURATE
) -> Values:
    """Train once on aligned rows and return each metric's mean over parties.

    Where parties differ, the figure with test rows dealt out stands beside it: scores of
    several parties in one ranking show how far they are calibrated alike.
    """
    model = fitted(make(repeat), shared.rows, shared.labels)
    counts = [count for _, count in shared.tests]
    turns = np.arange(len(shared.test_labels)) % len(counts)
    found: Values = {}
    for name, metric in metrics.items():
        predicted = [metric.predict(model, rows) for rows, _ in shared.tests]
        each = [metric.judge(shared.test_labels, one) for one in predicted]
        found[name] = float(np.dot(each, counts)) / sum(counts)
        if len(predicted) > 1:
            dealt = metric.judge(shared.test_labels, np.choose(turns, predicted))
            found[f"{name}, {DEALT}" if name else DEALT] = dealt
    return found


def central(
    dealt: Dealt, *, n_components: int | None, metrics: Mapping[str, Metric] = ACCURATE, **how: Any
) -> Values:
    """Return the ceiling: pooled rows, raw or on their own top directions, whichever is better."""
    raw = judged(dealt.shared(), metrics=metrics, **how)
    top = raw
    if n_components is not None:
        turn = top_directions(dealt.pooled()[0], n_components)
        top = judged(dealt.shared(turn), metrics=metrics, **how)
    best = {name: max(raw[name], top[name]) for name in metrics}
    return best | {f"{name}, raw": raw[name] for name in metrics}


def alone(dealt: Dealt, *, judges: int = JUDGES, **how: Any) -> Values:
    """Return the mean over parties of what each does with its own raw rows."""
    found = [
        judged(replace(dealt, parties={name: dealt.parties[name]}).shared(), **how)
        for name in list(dealt.parties)[:judges]
    ]
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


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
