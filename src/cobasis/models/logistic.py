"""Logistic regression: the optimum of scikit-learn's objective, by Newton's method on sums.

Each pass adds up loss, slope and curvature. Steps are exact while the curvature of all weights fits
in a table; with more weights a step is found by conjugate gradients, one pass for each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy
from scipy.linalg import cho_factor, cho_solve

from cobasis.errors import NotFiniteError
from cobasis.linalg.arrays import Matrix
from cobasis.models.chain import Affine, Integers
from cobasis.models.passes import LabelledRows, Labels, Pass, chunks
from cobasis.progress import AGAIN

MOST_WEIGHTS = 2_000
"""With more of them, their curvature is not written down: 32 MB."""

MOST_PASSES = 100
SMALL_STEP = 1e-6
"""Relative to the weights. Newton's steps square each other, so this one is the last."""

_ACCURACY = 1e-4
_MOST_PRODUCTS = 200
_ENOUGH = 1e-4
"""The share of the promised gain that a step must bring."""

_LEAST_SHARE = 2.0**-30


@dataclass(kw_only=True)
class Slopes:
    """The summed loss of some rows, and its first and second derivatives by the weights."""

    loss: float
    gradient: Matrix
    curvature: Matrix

    def __add__(self, other: "Slopes") -> "Slopes":
        """Add up."""
        return Slopes(
            loss=self.loss + other.loss,
            gradient=self.gradient + other.gradient,
            curvature=self.curvature + other.curvature,
        )


def fit_logistic(
    rows: LabelledRows, *, present: Integers, strength: float, start: Matrix, over: Pass
) -> Affine:
    """Minimise the summed loss, plus half the squared weights divided by `strength`.

    `start` has one row for each output, its intercept last: of two classes there is one output, of
    more as many as classes. What is added to all intercepts alike changes no likelihood: it stays
    what it is at the start.
    """
    problem = _Problem(rows=rows, present=present, strength=strength, over=over)
    weights, step, share = start, np.zeros_like(start), 1.0
    before, promised = np.inf, 0.0
    for number in range(MOST_PASSES):
        found = problem.slopes(weights + share * step, number + 1)
        rounding = 1e-12 * abs(found.loss)
        if before - found.loss < _ENOUGH * share * promised - rounding and share > _LEAST_SHARE:
            share /= 2  # too far: the loss is no parabola there
            continue
        weights, before = weights + share * step, found.loss
        step = problem.newton_step(found, weights)
        share, promised = 1.0, -float(np.sum(step * found.gradient))
        if np.abs(step).max() <= SMALL_STEP * (1.0 + np.abs(weights).max()):
            best = weights + step
            return Affine(weights=best[:, :-1].T.copy(), offset=best[:, -1].copy())
    raise NotFiniteError(
        f"logistic regression did not settle within {MOST_PASSES} passes: the rows' scale is too "
        "far from one. Agree on another scale, or choose another family."
    )


@dataclass(frozen=True, kw_only=True)
class _Problem:
    """What is minimised, and where its sums are made."""

    rows: LabelledRows
    present: Integers
    strength: float
    over: Pass

    def slopes(self, weights: Matrix, number: int) -> Slopes:
        """Return loss and slopes of all rows and the penalty, which intercepts are free of."""
        work = partial(_slopes, weights=weights, present=self.present)
        step = f"logistic regression{AGAIN}{number}"
        first, *others = self.over(work, self.rows, step=step)
        found: Slopes = sum(others, start=first)
        found.loss += float(np.sum(weights[:, :-1] ** 2)) / (2 * self.strength)
        found.gradient[:, :-1] += weights[:, :-1] / self.strength
        size = weights.shape[1]
        for table in found.curvature.reshape(-1, *found.curvature.shape[-2:]):
            penalised = np.full(len(table), 1.0 / self.strength)
            # likelihoods of 0 and 1 alone bend nothing, and intercepts have no penalty that does
            penalised[size - 1 :: size] = np.finfo(float).eps * np.trace(table)
            table[np.diag_indices(len(table))] += penalised
        return found

    def newton_step(self, found: Slopes, weights: Matrix) -> Matrix:
        """Return the way to where the quadratic that the slopes describe is least."""
        if found.curvature.shape == (weights.size, weights.size):
            table = found.curvature
            if len(weights) > 1:
                # adding to all intercepts changes nothing: no curvature, no slope, and now no step
                places = np.arange(weights.shape[1] - 1, weights.size, weights.shape[1])
                table[np.ix_(places, places)] += np.trace(table) / len(table)
            solved: Matrix = -cho_solve(cho_factor(table), found.gradient.ravel())
            return solved.reshape(weights.shape)

        def product(direction: Matrix) -> Matrix:
            work = partial(_product, weights=weights, present=self.present, direction=direction)
            sums = self.over(work, self.rows, step="logistic regression, curvature")
            bent: Matrix = sum(sums, start=np.zeros_like(direction))
            bent[:, :-1] += direction[:, :-1] / self.strength
            return bent

        factors = [cho_factor(table) for table in found.curvature]

        def eased(slope: Matrix) -> Matrix:
            solved = [cho_solve(factor, each) for factor, each in zip(factors, slope, strict=True)]
            return np.array(solved)

        step = _conjugate_gradients(product, eased, -found.gradient)
        if len(weights) > 1:
            step[:, -1] -= step[:, -1].mean()  # what the other form gives at once
        return step


def _outputs(rows: Matrix, weights: Matrix, told: Labels) -> tuple[float, Matrix, Matrix]:
    """Return the summed loss, likelihoods, and their excess over what is true."""
    logits = rows @ weights.T
    if len(weights) == 1:
        likely = scipy.special.expit(logits)
        loss = float(np.logaddexp(0.0, np.where(told == 1, -logits[:, 0], logits[:, 0])).sum())
        return loss, likely, likely - told[:, None]
    likely = scipy.special.softmax(logits, axis=1)
    true = (np.arange(len(told)), told)
    loss = float((scipy.special.logsumexp(logits, axis=1) - logits[true]).sum())
    excess = likely.copy()
    excess[true] -= 1.0
    return loss, likely, excess


def _slopes(rows: LabelledRows, index: int, *, weights: Matrix, present: Integers) -> Slopes:
    """Return a block's loss and slopes."""
    n_outputs, size = weights.shape
    dense = weights.size <= MOST_WEIGHTS
    shape = (weights.size, weights.size) if dense else (n_outputs, size, size)
    found = Slopes(loss=0.0, gradient=np.zeros(weights.shape), curvature=np.zeros(shape))
    for chunk in chunks(rows.block(index), width=weights.size):
        table = np.column_stack([chunk.rows, np.ones(len(chunk.rows))])
        told = np.searchsorted(present, chunk.labels)
        loss, likely, excess = _outputs(table, weights, told)
        found.loss += loss
        found.gradient += excess.T @ table
        if n_outputs == 1:
            found.curvature += (table * (likely * (1.0 - likely))).T @ table
            continue
        if not dense:
            for place in range(n_outputs):
                spread = likely[:, [place]] * (1.0 - likely[:, [place]])
                found.curvature[place] += (table * spread).T @ table
            continue
        # p_k (1[k = j] - p_j) x x': the diagonal in one product, all the rest in another
        wide = (likely[:, :, None] * table[:, None]).reshape(len(table), -1)
        own = table.T @ wide
        found.curvature -= wide.T @ wide
        for place in range(0, weights.size, size):
            here = slice(place, place + size)
            found.curvature[here, here] += own[:, here]
    return found


def _product(
    rows: LabelledRows, index: int, *, weights: Matrix, present: Integers, direction: Matrix
) -> Matrix:
    """Return a block's curvature times a direction."""
    found = np.zeros(weights.shape)
    for chunk in chunks(rows.block(index), width=weights.size):
        table = np.column_stack([chunk.rows, np.ones(len(chunk.rows))])
        _, likely, _ = _outputs(table, weights, np.searchsorted(present, chunk.labels))
        moved = table @ direction.T
        if len(weights) == 1:
            found += (likely * (1.0 - likely) * moved).T @ table
        else:
            moved -= np.sum(likely * moved, axis=1, keepdims=True)
            found += (likely * moved).T @ table
    return found


def _conjugate_gradients(
    product: Callable[[Matrix], Matrix], eased: Callable[[Matrix], Matrix], slope: Matrix
) -> Matrix:
    """Solve to four digits of the slope; the next step mends what is left."""
    solved, left = np.zeros_like(slope), slope.copy()
    enough = _ACCURACY * np.linalg.norm(slope)
    direction = near = eased(left)
    size = float(np.sum(left * near))
    for _ in range(_MOST_PRODUCTS):
        if np.linalg.norm(left) <= enough or size == 0.0:
            break
        bent = product(direction)
        pace = size / float(np.sum(direction * bent))
        solved += pace * direction
        left -= pace * bent
        near = eased(left)
        size, last = float(np.sum(left * near)), size
        direction = near + (size / last) * direction
    return solved
