"""A line or a shallow tree in raw columns, the nearer to what a model gives: interpretable DC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cobasis.algorithms.readable import MOST_ROWS, Readable, Table
from cobasis.errors import ShapeError
from cobasis.features.contract import CategoryFeature, Feature
from cobasis.features.encoder import EncodedColumn, encoded_columns
from cobasis.linalg.arrays import Matrix

_FEWEST, _FOLDS, _DEPTH = 20, 5, 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Surrogate(Readable):
    """What stands for a model in raw columns, and how near it is where it was not fitted."""

    explained: str  # in words, as log-odds of a class
    form: str  # line or tree
    lines: tuple[tuple[str, float], ...] = field(repr=False)  # slopes a unit; means behind splits
    n_rows: int
    fidelity: float  # R2
    other: float  # of the other form
    agreement: float | None  # how often on the same side of 0; None of what is no class

    def table(self) -> Table:
        near = f"On rows that it was not fitted to it meets the model with R2 {self.fidelity:.3f}"
        if self.agreement is not None:
            near += f", and the side of 0 in {100 * self.agreement:.1f} %"
        more = len(self.lines) - MOST_ROWS
        left = (f"And {more:,} columns more, of less weight.",) if more > 0 else ()
        return Table(
            title=f"A {self.form} that stands for the {self.explained}: {self.n_rows:,} rows",
            header=("largest first", "a unit") if self.form == "line" else ("where", "mean"),
            rows=[(name, f"{value:.4g}") for name, value in self.lines[:MOST_ROWS]],
            notes=(
                *left,
                f"{near}; a {'tree' if self.form == 'line' else 'line'} with {self.other:.3f}.",
            ),
        )


def surrogate(
    given: Matrix, table: Matrix, *, features: Sequence[Feature], explained: str, classes: bool
) -> Surrogate:
    """Fit both forms to what a model gives of encoded rows, and return the nearer."""
    from sklearn.linear_model import RidgeCV
    from sklearn.metrics import r2_score
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    if len(table) < _FEWEST:
        raise ShapeError(f"a surrogate takes {_FEWEST} rows or more, not {len(table)}. Give more.")
    columns = encoded_columns(features)
    raw = table * [each.scale for each in columns] + [each.centre for each in columns]
    for at, each in enumerate(columns):
        if each.of:  # a product of raw columns, and not of centred ones
            raw[:, at] = raw[:, each.of].prod(axis=1)
    line = make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(-9, 3, 13)))
    tree = DecisionTreeRegressor(max_depth=_DEPTH, min_samples_leaf=5, random_state=0)
    folds = KFold(_FOLDS, shuffle=True, random_state=0)
    told = [cross_val_predict(each, raw, given, cv=folds) for each in (line, tree)]
    near = [float(r2_score(given, each)) for each in told]
    best = int(near[1] > near[0])
    scaler, ridge = line.fit(raw, given)[0], line[-1]
    slopes = ridge.coef_ / scaler.scale_
    lines = [(columns[at].name, float(slopes[at])) for at in np.argsort(-np.abs(ridge.coef_))]
    return Surrogate(
        explained=explained,
        form=("line", "tree")[best],
        lines=tuple(_branches(tree.fit(raw, given).tree_, columns) if best else lines),
        n_rows=len(table),
        fidelity=near[best],
        other=near[1 - best],
        agreement=float(np.mean((told[best] > 0) == (given > 0))) if classes else None,
    )


def _branches(
    tree: Any,  # noqa: ANN401 -- scikit-learn is untyped
    columns: Sequence[EncodedColumn],
    node: int = 0,
    bars: str = "",
) -> Iterator[tuple[str, float]]:
    """Yield both sides of each split, what lies deeper behind its own, with the mean there."""
    if (low := tree.children_left[node]) < 0:
        return
    column, split = columns[tree.feature[node]], f"{tree.threshold[node]:.4g}"
    sides = (f"{column.name} <= {split}", f"{column.name} > {split}")
    if isinstance(column.feature, CategoryFeature):
        sides = (f"not {column.name}", column.name)
    for side, child in zip(sides, (low, tree.children_right[node]), strict=True):
        yield bars + side, float(tree.value[child].item())
        yield from _branches(tree, columns, child, f"{bars}| ")
