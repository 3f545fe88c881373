"""The systems side by side: alone, pooled, and every aligner, judged in one way.

Each party predicts the whole test set with its own ``F_i G_i``; the figure is the mean over
parties. Parties whose aligned test rows are the same, as concordance makes them, are judged once.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

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
DEALT = "test rows dealt out"
"""Each test row predicted by one party only, and all predictions judged together."""

JUDGES = 5  # parties that predict, at most, where all their predictions differ: the first ones


@dataclass(frozen=True, kw_only=True)
class Shared:
    """What a model is trained on, and the test rows as the parties see them."""

    rows: Table  # aligned, of all parties
    labels: Labels
    tests: Sequence[tuple[Table, int]]  # what differs, and how many see it so
    dealt: "Dealt"  # whose test labels and metrics judge a model, and whose repeat is its seed


@dataclass(frozen=True, kw_only=True)
class Dealt:
    """Rows as parties hold them, and a test set that every party predicts whole."""

    parties: Mapping[str, tuple[Table, Labels]]  # of shapes (n_i, m) and (n_i,)
    test_rows: Table  # of shapes (n, m) and (n,)
    test_labels: Labels
    repeat: int  # which one it is; whatever is made of the rows has its seed
    metrics: Mapping[str, Metric] = field(default_factory=lambda: {"": ACCURACY})

    @classmethod
    def of(
        cls,
        rows: Callable[[Any], Table],
        labels: Labels,
        *,
        held: Mapping[str, Any],
        test: Any,
        **more: Any,
    ) -> Self:
        """Deal rows and labels out by the places that each party holds, and those of the test."""
        parties = {name: (rows(at), labels[at]) for name, at in held.items()}
        return cls(parties=parties, test_rows=rows(test), test_labels=labels[test], **more)

    @property
    def labels(self) -> Labels:
        return np.concatenate([labels for _, labels in self.parties.values()])

    def pooled(self) -> tuple[Table, Labels]:
        return np.vstack([rows for rows, _ in self.parties.values()]), self.labels

    def shared(self, turn: Table | None = None) -> Shared:
        rows, labels = self.pooled()
        test = self.test_rows
        if turn is not None:
            rows, test = rows @ turn, test @ turn
        return Shared(rows=rows, labels=labels, tests=[(test, 1)], dealt=self)


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


def judged(shared: Shared, *, make: Make = mlp) -> Values:
    """Train once on aligned rows and return each metric's mean over parties.

    Where parties differ, the figure with test rows dealt out stands beside it: scores of
    several parties in one ranking show how far they are calibrated alike.
    """
    dealt = shared.dealt
    model = fitted(make(dealt.repeat), shared.rows, shared.labels)
    counts = [count for _, count in shared.tests]
    turns = np.arange(len(dealt.test_labels)) % len(counts)
    found: Values = {}
    for name, metric in dealt.metrics.items():
        predicted = [metric.predict(model, rows) for rows, _ in shared.tests]
        each = [metric.judge(dealt.test_labels, one) for one in predicted]
        found[name] = float(np.dot(each, counts)) / sum(counts)
        if len(predicted) > 1:
            mixed = metric.judge(dealt.test_labels, np.choose(turns, predicted))
            found[f"{name}, {DEALT}" if name else DEALT] = mixed
    return found


def central(dealt: Dealt, *, n_components: int | None, **how: Any) -> Values:
    """Return the ceiling: pooled rows, raw or on their own top directions, whichever is better."""
    raw = judged(dealt.shared(), **how)
    top = raw
    if n_components is not None:
        turn = top_directions(dealt.pooled()[0], n_components)
        top = judged(dealt.shared(turn), **how)
    best = {name: max(raw[name], top[name]) for name in raw}
    return best | {f"{name}, raw": raw[name] for name in raw}


def alone(dealt: Dealt, *, judges: int = JUDGES, **how: Any) -> Values:
    """Return the mean over parties of what each does with its own raw rows."""
    found = [
        judged(replace(dealt, parties={name: dealt.parties[name]}).shared(), **how)
        for name in list(dealt.parties)[:judges]
    ]
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


def top_directions(rows: Table, count: int) -> Table:
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
