"""What each raw column adds to a prediction, and a line that stands for all predictions.

Shapley values by kernel SHAP (Lundberg and Lee 2017). A coalition is the set of columns that keep
the row's own values; the others come from reference rows. Up to 12 columns all coalitions, which
is exact; of more a sample from the seed, the same at every party.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cobasis.algorithms.readable import MOST_ROWS, Readable, Table
from cobasis.errors import ShapeError
from cobasis.features.contract import Feature
from cobasis.features.encoder import encoded_columns
from cobasis.linalg.arrays import Mask, Matrix, Places
from cobasis.linalg.rng import KeyStream
from cobasis.progress import Report, silent

_MOST_WHOLE, _PAIRS = 12, 2**11
_CELLS_AT_ONCE = 2**20
_FEWEST, _FOLDS = 20, 5  # rows that a line takes, and folds that it is judged by


@dataclass(frozen=True, kw_only=True, eq=False)
class Attributions(Readable):
    """How much each raw column adds to each prediction; as private as the rows."""

    explained: str  # in words, as log-odds of a class
    names: tuple[str, ...]  # of raw columns; all levels of a category are one
    values: Matrix = field(repr=False)  # a row's sum is what is explained, minus the base
    base: float  # mean over the reference

    def table(self) -> Table:
        sizes = np.abs(self.values).mean(axis=0)
        order = np.argsort(-sizes, kind="stable")[:MOST_ROWS]
        return Table(
            title=f"What columns add to the {self.explained}: {len(self.values):,} rows",
            header=("largest first", "mean size"),
            rows=[(self.names[at], f"{sizes[at]:.4g}") for at in order],
            notes=(f"Beside reference rows, whose mean is {self.base:.4g}.",),
        )


def attributions(
    predict: Callable[[Matrix], Matrix],
    rows: Matrix,
    *,
    background: Matrix,
    groups: Places,  # for each encoded column, its feature's index
    seed: bytes,
    report: Report = silent,
) -> tuple[Matrix, float]:
    """Return Shapley values of each row and feature, and the background's mean prediction."""
    base = float(predict(background).mean())
    gained, n_features = predict(rows) - base, int(groups.max()) + 1
    inside, weights = _coalitions(n_features, KeyStream(seed, "attributions"))
    known, step = inside[:, groups], max(1, _CELLS_AT_ONCE // background.size)

    def worth(row: Matrix) -> Matrix:
        parts = []
        for at in range(0, len(known), step):
            mixed = np.where(known[at : at + step, np.newaxis], row, background)
            given = predict(mixed.reshape(-1, len(row)))
            parts.append(given.reshape(-1, len(background)).mean(axis=1) - base)
        return np.concatenate(parts)

    # A row's values add up to what it gained, by Lagrange's multiplier. The left side is the same
    # for all rows, so that no row's values depend on which others are asked.
    weighted = inside.T * weights
    inverse = np.linalg.inv(weighted @ inside)
    values = np.empty((len(rows), n_features))
    for at, row in enumerate(rows):
        free = inverse @ (weighted @ worth(row))
        values[at] = free + inverse.sum(axis=1) / inverse.sum() * (gained[at] - free.sum())
        report("explaining", at + 1, len(rows))
    return values, base


def _coalitions(count: int, stream: KeyStream) -> tuple[Mask, Matrix]:
    """Return who is in each coalition, and its weight: all, or pairs of one and its complement."""
    if count == 1:  # there is none but the whole, and its worth is given
        return np.ones((1, 1), dtype=np.bool_), np.ones(1)
    if count <= _MOST_WHOLE:
        inside = np.arange(1, 2**count - 1)[:, np.newaxis] >> np.arange(count) & 1 > 0
        sizes = inside.sum(axis=1)
        return inside, 1 / (np.bincount(sizes)[sizes] * sizes * (count - sizes))
    sizes = np.arange(1, count)
    shares = np.cumsum(1 / (sizes * (count - sizes)))
    n_pairs = _PAIRS + count
    drawn = 1 + np.searchsorted(shares / shares[-1], stream.uniform((n_pairs,)), side="right")
    ranks = stream.uniform((n_pairs, count)).argsort(axis=1).argsort(axis=1)
    inside = ranks < drawn[:, np.newaxis]
    return np.vstack([inside, ~inside]), np.ones(2 * n_pairs)


@dataclass(frozen=True, kw_only=True, eq=False)
class Surrogate(Readable):
    """What stands for a model in raw columns, and how near it is where it was not fitted."""

    explained: str  # in words, as log-odds of a class
    # slopes by a raw unit, largest standardised first
    lines: tuple[tuple[str, float], ...] = field(repr=False)
    n_rows: int
    fidelity: float  # R2

    def table(self) -> Table:
        near = f"On rows that it was not fitted to it meets the model with R2 {self.fidelity:.3f}."
        return Table(
            title=f"A line that stands for the {self.explained}: {self.n_rows:,} rows",
            header=("largest first", "a unit"),
            rows=[(name, f"{value:.4g}") for name, value in self.lines[:MOST_ROWS]],
            notes=(near,),
        )


def surrogate(
    given: Matrix, table: Matrix, *, features: Sequence[Feature], explained: str
) -> Surrogate:
    """Fit a line to what a model gives of encoded rows: interpretable DC."""
    from sklearn.linear_model import RidgeCV
    from sklearn.metrics import r2_score
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(table) < _FEWEST:
        raise ShapeError(f"a surrogate takes {_FEWEST} rows or more, not {len(table)}. Give more.")
    columns = encoded_columns(features)
    raw = table * [each.scale for each in columns] + [each.centre for each in columns]
    for at, each in enumerate(columns):
        if each.of:  # a product of raw columns, and not of centred ones
            raw[:, at] = raw[:, each.of].prod(axis=1)
    line = make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(-9, 3, 13)))
    folds = KFold(_FOLDS, shuffle=True, random_state=0)
    told = cross_val_predict(line, raw, given, cv=folds)
    scaler, ridge = line.fit(raw, given)
    slopes, order = ridge.coef_ / scaler.scale_, np.argsort(-np.abs(ridge.coef_))
    return Surrogate(
        explained=explained,
        lines=tuple((columns[at].name, float(slopes[at])) for at in order),
        n_rows=len(table),
        fidelity=float(r2_score(given, told)),
    )
