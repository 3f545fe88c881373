"""A line in raw columns that stands for what a model gives: interpretable DC."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cobasis.algorithms.readable import MOST_ROWS, Readable, Table
from cobasis.errors import ShapeError
from cobasis.features.contract import Feature
from cobasis.features.encoder import encoded_columns
from cobasis.linalg.arrays import Matrix

_FEWEST, _FOLDS = 20, 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Surrogate(Readable):
    """What stands for a model in raw columns, and how near it is where it was not fitted."""

    explained: str  # in words, as log-odds of a class
    lines: tuple[tuple[str, float], ...] = field(
        repr=False
    )  # slopes by a unit, of most weight first
    n_rows: int
    fidelity: float  # R2
    agreement: float | None  # how often on the same side of 0; None of what is no class

    def table(self) -> Table:
        near = f"On rows that it was not fitted to it meets the model with R2 {self.fidelity:.3f}"
        if self.agreement is not None:
            near += f", and the side of 0 in {100 * self.agreement:.1f} %"
        more = len(self.lines) - MOST_ROWS
        left = (f"And {more:,} columns more, of less weight.",) if more > 0 else ()
        return Table(
            title=f"A line that stands for the {self.explained}: {self.n_rows:,} rows",
            header=("largest first", "a unit"),
            rows=[(name, f"{value:.4g}") for name, value in self.lines[:MOST_ROWS]],
            notes=(*left, f"{near}."),
        )


def surrogate(
    given: Matrix, table: Matrix, *, features: Sequence[Feature], explained: str, classes: bool
) -> Surrogate:
    """Fit a line to what a model gives of encoded rows."""
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
        agreement=float(np.mean((told > 0) == (given > 0))) if classes else None,
    )
