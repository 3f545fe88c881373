"""Ridge, plain or over random Fourier features: sums over rows, and their penalty by one more pass.

The penalty is the one with the smallest mean squared error when each row in turn is left out, all
targets together; that follows exactly from the sums and the row itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg.blas import dsyr, dsyrk

from cobasis.linalg.arrays import Matrix
from cobasis.models.chain import Affine, Head, Integers, Layer
from cobasis.models.passes import Block, LabelledRows, Labels, Pass, chunks

PENALTIES = np.logspace(-4, 4, 25)

N_FEATURES = 1_000
"""Random features, as many cosines."""


@dataclass(frozen=True, kw_only=True)
class Waves:
    """Random Fourier features, ``sqrt(2 / D) cos(rows @ weights + offset)``."""

    weights: Matrix
    offset: Matrix

    def of(self, rows: Matrix) -> Matrix:
        """Map rows, in one new table and in place."""
        mapped: Matrix = rows @ self.weights
        mapped += self.offset
        np.cos(mapped, out=mapped)
        mapped *= np.sqrt(2.0 / len(self.offset))
        return mapped

    @property
    def layers(self) -> list[Layer]:
        """The same map as a model's first layers."""
        n_features = len(self.offset)
        factor = np.eye(n_features) * np.sqrt(2.0 / n_features)
        return [
            Affine(weights=self.weights, offset=self.offset),
            "Cos",
            Affine(weights=factor, offset=np.zeros(n_features)),
        ]


def draw_waves(axes: Matrix, *, variance: float, seed: int) -> Waves:
    """Draw the features for rows that have a variance of all their numbers, along their axes."""
    from sklearn.kernel_approximation import RBFSampler

    gamma = 1.0 / (len(axes) * variance) if variance > 0 else 1.0
    drawn = RBFSampler(gamma=gamma, n_components=N_FEATURES, random_state=seed)
    drawn.fit(np.zeros((1, len(axes))))
    return Waves(weights=axes @ drawn.random_weights_, offset=drawn.random_offset_)


@dataclass(frozen=True, kw_only=True)
class Design:
    """What ridge is linear in, and what it is to meet."""

    width: int
    waves: Waves | None
    n_classes: int
    present: Integers

    def columns(self, rows: Matrix) -> Matrix:
        """Return a new table that may be changed."""
        return rows.copy() if self.waves is None else self.waves.of(rows)

    def targets(self, labels: Labels) -> Matrix:
        """Return numbers as they are; +1 for a row's class and -1 for others, one of two alone."""
        if not self.n_classes:
            return labels.astype(np.float64)[:, None]
        told = self.present[1:] if len(self.present) == 2 else self.present  # noqa: PLR2004
        return np.where(labels[:, None] == told, 1.0, -1.0)


@dataclass(kw_only=True)
class Moments:
    """Second moments about the mean, of columns among themselves and with targets.

    Rows are centred before they are multiplied, and sets of rows are joined by the exact update
    (Chan, Golub and LeVeque 1983). Moments about zero, less ``n mu mu'`` at the end, would lose all
    digits of columns that vary little around a large mean.
    """

    n_rows: int
    means: Matrix
    target_means: Matrix
    scatter: Matrix
    cross: Matrix

    @classmethod
    def none(cls, n_columns: int, n_targets: int) -> "Moments":
        """Return those of no rows."""
        return cls(
            n_rows=0,
            means=np.zeros(n_columns),
            target_means=np.zeros(n_targets),
            scatter=np.zeros((n_columns, n_columns), order="F"),  # as BLAS adds to it in place
            cross=np.zeros((n_columns, n_targets)),
        )

    def take(self, columns: Matrix, targets: Matrix) -> None:
        """Add rows; the table of columns is changed."""
        means = columns.mean(axis=0)
        columns -= means
        self.scatter = dsyrk(1.0, columns.T, beta=1.0, c=self.scatter, lower=1, overwrite_c=1)
        self.cross += columns.T @ targets
        self._join(len(columns), means, targets.mean(axis=0))

    def join(self, others: Iterable["Moments"]) -> "Moments":
        """Add what others have, one after the other."""
        for other in others:
            if other.n_rows:
                self.scatter += other.scatter
                self.cross += other.cross
                self._join(other.n_rows, other.means, other.target_means)
        return self

    def _join(self, n_more: int, means: Matrix, target_means: Matrix) -> None:
        """Account for the distance of two sets' means, and move to the mean of both."""
        gap, target_gap = means - self.means, target_means - self.target_means
        n_rows = self.n_rows + n_more
        weight = self.n_rows * n_more / n_rows
        self.scatter = dsyr(weight, gap, lower=1, a=self.scatter, overwrite_a=1)
        self.cross += weight * np.outer(gap, target_gap)
        self.means = self.means + gap * (n_more / n_rows)
        self.target_means = self.target_means + target_gap * (n_more / n_rows)
        self.n_rows = n_rows


def fit_ridge(rows: LabelledRows, *, design: Design, over: Pass) -> tuple[Affine, float]:
    """Fit all rows, and say which penalty was chosen."""
    if rows.n_blocks == 1 and rows.n_rows < design.width:
        return _fitted_by_rows(rows.block(0), design)
    n_targets = design.targets(np.zeros(0)).shape[1]
    found = Moments.none(design.width, n_targets)
    found.join(over(partial(_moments, design=design), rows, step="sums"))
    sizes, axes = np.linalg.eigh(found.scatter, UPLO="L")
    shrink = 1.0 / (np.maximum(sizes, 0.0) + PENALTIES[:, None])
    along = axes.T @ found.cross
    work = partial(
        _errors, design=design, found=_Fitted(found, axes=axes, along=along, shrink=shrink)
    )
    errors = sum(over(work, rows, step="penalty"), start=np.zeros(len(PENALTIES)))
    best = _smallest(errors)
    weights = axes @ (shrink[best][:, None] * along)
    return _affine(weights, found.means, found.target_means), float(PENALTIES[best])


def _moments(rows: LabelledRows, index: int, *, design: Design) -> Moments:
    """Return a block's moments."""
    block = rows.block(index)
    found = Moments.none(design.width, design.targets(block.labels[:0]).shape[1])
    for chunk in chunks(block, width=design.width):
        found.take(design.columns(chunk.rows), design.targets(chunk.labels))
    return found


class _Fitted:
    """All penalties' models at once, along the moments' eigenvectors."""

    def __init__(self, found: Moments, *, axes: Matrix, along: Matrix, shrink: Matrix) -> None:
        self.n_rows, self.means, self.target_means = found.n_rows, found.means, found.target_means
        self.axes = axes
        self.squared_shrink = shrink.T.copy()
        n_columns, n_targets = along.shape
        self.weights = (shrink.T[:, :, None] * along[:, None]).reshape(n_columns, -1)
        self.n_targets = n_targets


def _errors(rows: LabelledRows, index: int, *, design: Design, found: _Fitted) -> Matrix:
    """Return each penalty's squared errors on a block's rows, each of which is left out in turn.

    The error of a row that was left out is its residual over one minus its leverage. The intercept
    is fitted too, without a penalty: it adds 1/n to the leverage.
    """
    errors = np.zeros(len(PENALTIES))
    for chunk in chunks(rows.block(index), width=design.width):
        columns = design.columns(chunk.rows)
        columns -= found.means
        along = columns @ found.axes
        fits = (along @ found.weights).reshape(len(along), -1, found.n_targets)
        np.multiply(along, along, out=along)
        free = 1.0 - 1.0 / found.n_rows - along @ found.squared_shrink
        residuals = (design.targets(chunk.labels) - found.target_means)[:, None] - fits
        residuals /= free[:, :, None]
        errors += np.einsum("rpt,rpt->p", residuals, residuals)
    return errors


def _smallest(errors: Matrix) -> int:
    """Return the first penalty with the smallest error; the first where no row can be left out."""
    return int(np.argmin(np.where(np.isfinite(errors), errors, np.inf)))


def _fitted_by_rows(block: Block, design: Design) -> tuple[Affine, float]:
    """Fit fewer rows than columns by their products with each other: n by n, and not D by D.

    The constant is the one direction that has no penalty. It is an eigenvector of the centred
    products, of eigenvalue 0 as others may be; a large one tells it from those, and it is dropped.
    """
    columns, targets = design.columns(block.rows), design.targets(block.labels)
    means, target_means = columns.mean(axis=0), targets.mean(axis=0)
    columns -= means
    products = columns @ columns.T
    products += (1.0 + np.trace(products)) / len(products)
    sizes, axes = np.linalg.eigh(products)
    sizes, axes = np.maximum(sizes[:-1], 0.0), axes[:, :-1]
    shrink = 1.0 / (sizes + PENALTIES[:, None])
    along = axes.T @ (targets - target_means)
    with np.errstate(divide="ignore", invalid="ignore"):  # of a single row
        left_out = axes @ (shrink[:, :, None] * along) / ((axes * axes) @ shrink.T).T[:, :, None]
    best = _smallest(np.einsum("prt,prt->p", left_out, left_out))
    weights = columns.T @ (axes @ (shrink[best][:, None] * along))
    return _affine(weights, means, target_means), float(PENALTIES[best])


def _affine(weights: Matrix, means: Matrix, target_means: Matrix) -> Affine:
    """Return the map from columns, as they are, to targets."""
    return Affine(weights=weights, offset=target_means - means @ weights)


def head_of(design: Design) -> Head:
    """Say what the last numbers are."""
    return "decision" if design.n_classes else "prediction"
