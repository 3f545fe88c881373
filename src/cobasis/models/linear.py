"""Linear families, from sums over rows: ridge, random Fourier features, logistic regression.

Ridge's penalty is the one with the smallest mean squared error when each row in turn is left out,
all targets together; that follows exactly from the sums and the row itself, by one more pass.
Logistic regression is the optimum of scikit-learn's objective, by Newton's method. Each pass adds
up loss, slope and curvature. Steps are exact while the curvature of all weights fits in a table;
with more weights a step is found by conjugate gradients, one pass for each.
"""

from dataclasses import dataclass
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
import scipy
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from cobasis.errors import NotFiniteError
from cobasis.linalg.arrays import EPS, Integers, Matrix
from cobasis.models.chain import Affine, Held
from cobasis.models.passes import Block, LabelledRows, Labels, Pass, chunks
from cobasis.progress import AGAIN

PENALTIES = np.logspace(-4, 4, 25)

HELD_ROWS = 10_000
"""So many rows, evenly chosen and each left out, tell how far scores are likelihoods."""

N_FEATURES = 1_000

FACTOR = np.sqrt(2.0 / N_FEATURES)


def draw_waves(axes: Matrix, *, variance: float, seed: int) -> Affine:
    """Draw the features for rows that have a variance of all their numbers, along their axes."""
    from sklearn.kernel_approximation import RBFSampler

    # scikit-learn's gamma="scale", from moments: the rows are nowhere in one table whose variance
    # it could take. Rows that are all alike have none, and any gamma does.
    gamma = 1.0 / (len(axes) * variance) if variance > 0 else 1.0
    drawn = RBFSampler(gamma=gamma, n_components=N_FEATURES, random_state=seed)
    drawn.fit(np.zeros((1, len(axes))))
    return Affine(weights=axes @ drawn.random_weights_, offset=drawn.random_offset_)


@dataclass(frozen=True, kw_only=True)
class Design:
    width: int
    waves: Affine | None
    n_classes: int
    present: Integers

    def table(self, block: Block) -> Matrix:
        """Return a new table of so many columns, and the targets behind them."""
        columns = block.rows
        if self.waves is not None:
            columns = self.waves.apply(columns)
            np.cos(columns, out=columns)
            columns *= FACTOR
        return np.column_stack([columns, self.targets(block.labels)])

    def targets(self, labels: Labels) -> Matrix:
        """Return numbers as they are; +1 for a row's class and -1 for others, one of two alone."""
        if not self.n_classes:
            return labels.astype(np.float64)[:, None]
        told = self.present[1:] if len(self.present) == 2 else self.present  # noqa: PLR2004
        return np.where(labels[:, None] == told, 1.0, -1.0)


class Moments(NamedTuple):
    """Second moments of a table about its mean."""

    # Rows are centred before they are multiplied, and sets of rows are joined by the exact update
    # (Chan, Golub and LeVeque 1983). Moments about zero, less n mu mu' at the end, would lose all
    # digits of columns that vary little around a large mean: 1e8 + N(0, 1) squares to 1e16, and
    # float64 rounds that to whole numbers.

    n_rows: int
    means: Matrix
    scatter: Matrix

    def joined(self, more: "Moments") -> "Moments":
        n_rows, gap = self.n_rows + more.n_rows, more.means - self.means
        share = more.n_rows / max(1, n_rows)
        apart = self.n_rows * share * np.outer(gap, gap)
        return Moments(n_rows, self.means + share * gap, self.scatter + more.scatter + apart)


def fit_ridge(rows: LabelledRows, *, design: Design, over: Pass) -> tuple[Affine, float, Held]:
    """Fit with the penalty that leaving each row out finds best; of some return what it held."""
    width = design.width
    if rows.n_blocks == 1 and rows.n_rows < width:
        table = design.table(rows.block(0))
        means = table.mean(axis=0)
        sizes, axes, along = _axes_by_rows(table - means, width)
    else:
        each = over(partial(_moments, design=design), rows, step="sums")
        _, means, scatter = reduce(Moments.joined, each)
        sizes, axes = np.linalg.eigh(scatter[:width, :width])
        along = axes.T @ scatter[:width, width:]
    shrink = 1.0 / (np.maximum(sizes, 0.0)[:, None] + PENALTIES)
    work = partial(_errors, design=design, means=means, axes=axes, shrink=shrink, along=along)
    errors, held = np.zeros(len(PENALTIES)), []
    for more, some in over(work, rows, step="penalty"):
        errors += more
        held += some
    best = int(np.argmin(np.where(np.isfinite(errors), errors, np.inf)))
    weights = axes @ (shrink[:, [best]] * along)
    fitted = Affine(weights=weights, offset=means[width:] - means[:width] @ weights)
    one = int(weights.shape[1] == 1)  # the second of two classes, beside zero
    logits = [np.pad(taken[:, best], ((0, 0), (one, 0))) for taken, _ in held]
    places = [np.searchsorted(design.present, labels) for _, labels in held]
    return fitted, float(PENALTIES[best]), list(zip(logits, places, strict=True))


def _moments(rows: LabelledRows, index: int, *, design: Design) -> Moments:
    found = Moments(0, np.zeros(1), np.zeros(1))
    for chunk in chunks(rows.block(index), width=design.width):
        table = design.table(chunk)
        means = table.mean(axis=0)
        table -= means
        found = found.joined(Moments(len(table), means, table.T @ table))
    return found


def _errors(
    rows: LabelledRows,
    index: int,
    *,
    design: Design,
    means: Matrix,
    axes: Matrix,
    shrink: Matrix,
    along: Matrix,
) -> tuple[Matrix, list[Block]]:
    """Return each penalty's squared errors on rows that are left out in turn, and some fits."""
    # The error of a row that was left out is its residual over one minus its leverage: no model is
    # fitted again. The intercept is fitted too, without a penalty: it adds 1/n to the leverage.
    # Generalised cross-validation, which takes the mean leverage for all, chooses another penalty
    # where a few rows weigh much.
    errors, parts = np.zeros(len(PENALTIES)), []
    weights, every = shrink[:, :, None] * along[:, None], -(-rows.n_rows // HELD_ROWS)
    for chunk in chunks(rows.block(index), width=design.width):
        columns, targets = np.split(design.table(chunk) - means, [design.width], axis=1)
        turned = columns @ axes
        residuals = targets[:, None] - np.tensordot(turned, weights, 1)
        np.multiply(turned, turned, out=turned)
        free = 1.0 - 1.0 / rows.n_rows - turned @ shrink
        with np.errstate(divide="ignore", invalid="ignore"):  # of a single row
            residuals /= free[:, :, None]
        errors += np.einsum("rpt,rpt->p", residuals, residuals)
        own = targets + means[design.width :]
        parts.append(Block(own[::every, None] - residuals[::every], chunk.labels[::every]))
    return errors, parts


def _axes_by_rows(table: Matrix, width: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return the scatter's sizes and axes, and targets along them, from fewer rows than columns."""
    columns, targets = np.split(table, [width], axis=1)
    sizes, sides = np.linalg.eigh(columns @ columns.T)
    # Centred rows have one direction fewer than rows; along it there is rounding, and no axis.
    kept = sizes > EPS * len(columns) * sizes[-1]
    axes = (columns.T @ sides[:, kept]) / np.sqrt(sizes[kept])
    return sizes[kept], axes, axes.T @ (columns.T @ targets)


# ---------------------------------------------------------------- logistic regression

MOST_WEIGHTS = 2_000
"""With more of them, their curvature is not written down: 32 MB."""

MOST_PASSES = 100
SMALL_STEP = 1e-6
"""Relative to the weights. Newton's steps square each other, so this one is the last."""

_ACCURACY, _MOST_PRODUCTS = 1e-4, 200
"""Of a step by conjugate gradients; the next step mends what is left."""

_ENOUGH = 1e-4
"""The share of the promised gain that a step must bring."""

_LEAST_SHARE = 2.0**-30
_STEP = "logistic regression"


Slopes = tuple[float, Matrix, Matrix]
"""The summed loss of some rows, and its first and second derivatives by the weights."""


def fit_logistic(
    rows: LabelledRows, *, present: Integers, strength: float, start: Matrix, over: Pass
) -> Affine:
    """Minimise the summed loss, plus half the squared weights divided by `strength`."""
    # `start` has a row for each output, its intercept last: of two classes one, else one a class.
    # What is added to all intercepts alike changes no likelihood, and stays what it is there.
    problem = _Problem(rows=rows, present=present, strength=strength, over=over)
    weights, step, share = start, np.zeros_like(start), 1.0
    before, promised = np.inf, 0.0
    for number in range(MOST_PASSES):
        found = problem.slopes(weights + share * step, number + 1)
        loss, gradient, _ = found
        rounding = 1e-12 * abs(loss)
        if before - loss < _ENOUGH * share * promised - rounding and share > _LEAST_SHARE:
            share /= 2  # too far: the loss is no parabola there
            continue
        weights, before = weights + share * step, loss
        step = problem.newton_step(found, weights)
        share, promised = 1.0, -float(np.sum(step * gradient))
        if np.abs(step).max() <= SMALL_STEP * (1.0 + np.abs(weights).max()):
            best = weights + step
            return Affine(weights=best[:, :-1].T.copy(), offset=best[:, -1].copy())
    raise NotFiniteError(
        f"logistic regression did not settle within {MOST_PASSES} passes: the rows' scale is too "
        "far from one. Agree on another scale, or choose another family."
    )


@dataclass(frozen=True, kw_only=True)
class _Problem:
    rows: LabelledRows
    present: Integers
    strength: float
    over: Pass

    def slopes(self, weights: Matrix, number: int) -> Slopes:
        """Return loss and slopes of all rows and the penalty, which intercepts are free of."""
        work = partial(_slopes, weights=weights, present=self.present)
        loss, gradient, curvature = 0.0, np.zeros(weights.shape), np.zeros(0)
        for more, slope, bend in self.over(work, self.rows, step=f"{_STEP}{AGAIN}{number}"):
            loss, gradient = loss + more, gradient + slope
            curvature = curvature + bend if curvature.size else bend
        loss += float(np.sum(weights[:, :-1] ** 2)) / (2 * self.strength)
        gradient[:, :-1] += weights[:, :-1] / self.strength
        size = weights.shape[1]
        for table in curvature.reshape(-1, *curvature.shape[-2:]):
            penalised = np.full(len(table), 1.0 / self.strength)
            # likelihoods of 0 and 1 alone bend nothing, and intercepts have no penalty that does
            penalised[size - 1 :: size] = EPS * np.trace(table)
            table[np.diag_indices(len(table))] += penalised
        return loss, gradient, curvature

    def newton_step(self, found: Slopes, weights: Matrix) -> Matrix:
        """Return the way to where the quadratic that the slopes describe is least."""
        _, gradient, curvature = found
        if curvature.shape == (weights.size, weights.size):
            if len(weights) > 1:
                # adding to all intercepts changes nothing: no curvature, no slope, and now no step
                places = np.arange(weights.shape[1] - 1, weights.size, weights.shape[1])
                curvature[np.ix_(places, places)] += np.trace(curvature) / len(curvature)
            exact: Matrix = -cho_solve(cho_factor(curvature), gradient.ravel())
            return exact.reshape(weights.shape)
        factors = [cho_factor(table) for table in curvature]

        def product(vector: Matrix) -> Matrix:
            direction = vector.reshape(weights.shape)
            work = partial(_product, weights=weights, present=self.present, direction=direction)
            sums = self.over(work, self.rows, step=f"{_STEP}, curvature")
            bent: Matrix = sum(sums, start=np.zeros_like(direction))
            bent[:, :-1] += direction[:, :-1] / self.strength
            return bent.ravel()

        def eased(vector: Matrix) -> Matrix:
            slopes = vector.reshape(weights.shape)
            return np.concatenate([cho_solve(*each) for each in zip(factors, slopes, strict=True)])

        square, goal = (weights.size,) * 2, -gradient.ravel()
        bends = LinearOperator(square, matvec=product, dtype=np.float64)
        eases = LinearOperator(square, matvec=eased, dtype=np.float64)
        solved, _ = cg(bends, goal, rtol=_ACCURACY, maxiter=_MOST_PRODUCTS, M=eases)
        step: Matrix = solved.reshape(weights.shape)
        if len(weights) > 1:
            step[:, -1] -= step[:, -1].mean()  # what the other form gives at once
        return step


def _told(chunk: Block, weights: Matrix, present: Integers) -> tuple[Matrix, float, Matrix, Matrix]:
    """Return rows with a one behind, their loss, likelihoods, and their excess over the truth."""
    table = np.column_stack([chunk.rows, np.ones(len(chunk.rows))])
    true, logits = np.searchsorted(present, chunk.labels), table @ weights.T
    if len(weights) == 1:
        likely = scipy.special.expit(logits)
        loss = np.logaddexp(0.0, np.where(true == 1, -logits[:, 0], logits[:, 0])).sum()
        return table, float(loss), likely, likely - true[:, None]
    likely, own = scipy.special.softmax(logits, axis=1), (np.arange(len(true)), true)
    excess = likely.copy()
    excess[own] -= 1.0
    loss = (scipy.special.logsumexp(logits, axis=1) - logits[own]).sum()
    return table, float(loss), likely, excess


def _slopes(rows: LabelledRows, index: int, *, weights: Matrix, present: Integers) -> Slopes:
    n_outputs, size = weights.shape
    dense = weights.size <= MOST_WEIGHTS
    shape = (weights.size, weights.size) if dense else (n_outputs, size, size)
    loss, gradient, curvature = 0.0, np.zeros(weights.shape), np.zeros(shape)
    for chunk in chunks(rows.block(index), width=weights.size):
        table, more, likely, excess = _told(chunk, weights, present)
        loss += more
        gradient += excess.T @ table
        if n_outputs == 1:
            curvature += (table * (likely * (1.0 - likely))).T @ table
        elif not dense:
            for place in range(n_outputs):
                spread = likely[:, [place]] * (1.0 - likely[:, [place]])
                curvature[place] += (table * spread).T @ table
        else:
            # p_k (1[k = j] - p_j) x x': the diagonal in one product, all the rest in another
            wide = (likely[:, :, None] * table[:, None]).reshape(len(table), -1)
            own = table.T @ wide
            curvature -= wide.T @ wide
            for place in range(0, weights.size, size):
                here = slice(place, place + size)
                curvature[here, here] += own[:, here]
    return loss, gradient, curvature


def _product(
    rows: LabelledRows, index: int, *, weights: Matrix, present: Integers, direction: Matrix
) -> Matrix:
    """Return a block's curvature times a direction."""
    found = np.zeros(weights.shape)
    for chunk in chunks(rows.block(index), width=weights.size):
        table, _, likely, _ = _told(chunk, weights, present)
        moved = table @ direction.T
        # of two classes the other's logit is zero
        moved -= np.sum(likely * moved, axis=1, keepdims=True)
        found += (likely * moved).T @ table
    return found
