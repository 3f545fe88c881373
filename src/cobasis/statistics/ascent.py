"""Newton's method on a log-likelihood of which nothing but sums over all rows is known.

Each sum is made at the weights that the one before gave; whoever adds the same numbers gets the
same weights. Beside it what it starts from (the odds, or the rate, of all rows), Cox's partial
likelihood, and least squares in the labels' own units. Columns lie from -1 to 1.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from cobasis.errors import EstimateError
from cobasis.linalg.arrays import Integers, Matrix
from cobasis.models.regressions import RegressionFit

SETTLED = 1e-6
"""A fit has come to rest where a whole step moves no combination of weights by so large a share of
its standard error: what is left is about the square of that, in whatever frame."""

DEPENDENT = 1e-10
"""Columns, each scaled to one, whose information in some direction is so small follow from others;
totals are whole multiples of 2**-20 or less of what a row adds."""

_ROUNDING = 1e-9
"""Of a log-likelihood: a step that loses less has lost nothing."""

Total = TypeVar("Total")


@dataclass(frozen=True, kw_only=True)
class Slopes:
    """A log-likelihood at some weights, its slope, and its curvature: the information."""

    value: float
    slope: Matrix
    curvature: Matrix
    beyond: bool = False  # whether rows were left out that no sum has a bound for


@dataclass(frozen=True, kw_only=True)
class Ascent:
    weights: Matrix  # where the next sums are to be made, or the estimate
    seen: Slopes  # the best so far
    covariance: Matrix  # its inverse information
    settled: bool
    distance: float  # by how many standard errors a whole step moves weights

    def restless(self, model: str, *, steps: int) -> EstimateError:
        return EstimateError(
            f"model='{model}' did not come to rest in {steps} steps: the next would move weights "
            f"by {self.distance:.1e} standard errors. Columns may tell some rows' outcome without "
            "error (separation). Agree on fewer columns, or on more steps, in a new round."
        )


def ascend(
    first: Slopes, start: Matrix, *, later: Iterable[Total], at: Callable[[Total, Matrix], Slopes]
) -> Ascent:
    """Go up from weights of which the slopes are known, sum by sum, by steps or parts of them."""
    seen, base, share = first, start, 1.0
    covariance, _ = inverse_of(seen.curvature)
    step = covariance @ seen.slope
    for total in later:
        found = at(total, base + share * step)
        if found.beyond or not found.value >= seen.value - _ROUNDING * (1 + abs(seen.value)):
            share /= 2  # too far: the likelihood is no parabola there
            continue
        seen, base, share = found, base + share * step, 1.0
        covariance, lost = inverse_of(seen.curvature)
        if lost.shape[1]:
            raise EstimateError(
                "at the weights of this step some columns tell nothing any more, as where they "
                "tell some rows' outcome without error (separation). Agree on fewer columns, or "
                "merge rare levels, in a new round."
            )
        step = covariance @ seen.slope
    distance = float(seen.slope @ step) ** 0.5
    return Ascent(
        weights=base + share * step,
        seen=seen,
        covariance=covariance,
        settled=distance <= SETTLED and share == 1,
        distance=distance,
    )


def inverse_of(curvature: Matrix) -> tuple[Matrix, Matrix]:
    """Return the inverse, and a column for each combination of weights that nothing is told of."""
    sizes = np.sqrt(np.maximum(np.diag(curvature), 0.0))
    scale = 1 / np.where(sizes > 0, sizes, 1.0)  # of a column of zeros
    found, axes = np.linalg.eigh(curvature * np.outer(scale, scale))
    lost = found <= DEPENDENT * max(float(found[-1]), 1.0)
    half = scale[:, None] * axes[:, ~lost] / np.sqrt(found[~lost])
    return half @ half.T, scale[:, None] * axes[:, lost]


def level_of_all(found: Slopes, model: str, *, n_rows: int, told: int) -> tuple[Slopes, float]:
    """Move slopes from even odds, or one common rate, to those of all rows; return their log.

    Without columns every row has the same level, so sums at others follow from sums at this one.
    """
    base = found.curvature[0]
    if model == "logit":
        share = told / n_rows
        level, bend, shift = np.log(share / (1 - share)), 4 * share * (1 - share), 2 - 4 * share
        value = told * np.log(share) + (n_rows - told) * np.log1p(-share)
    else:
        bend = told / base[0]
        level, shift = np.log(bend), 1 - bend
        value = found.value + level * told + shift * base[0]
    slope, curvature = found.slope + shift * base, bend * found.curvature
    return Slopes(value=float(value), slope=slope, curvature=curvature), float(level)


def of_residuals(
    fit: RegressionFit, ascent: Ascent, *, between: tuple[float, float]
) -> RegressionFit:
    """Bring least squares from targets from -1 to 1 to their own units."""
    (low, high), n_rows, seen = between, fit.n_rows, ascent.seen
    half, table = (high - low) / 2, seen.curvature
    left = max(float(seen.value - ascent.weights @ seen.slope), 0.0) * half**2
    whole = float(seen.value - seen.slope[0] ** 2 / table[0, 0]) * half**2
    if left <= 0 or whole <= 0:
        raise EstimateError(
            "all labels are one number, or lie on one line, so no error can be told. Look at the "
            "column of labels."
        )
    variance, weights = left / fit.free, half * fit.weights
    weights[0] += (high + low) / 2
    likelihoods = [
        -n_rows / 2 * float(np.log(2 * np.pi * each / n_rows) + 1) for each in (left, whole)
    ]
    return replace(
        fit,
        weights=weights,
        covariance=variance * fit.covariance,
        dispersion=variance,
        log_likelihood=likelihoods[0],
        null_log_likelihood=likelihoods[1],
    )


def efron(deaths: Integers, at_risk: Matrix, *, tied: Matrix) -> tuple[Slopes, Matrix]:
    """Return a partial likelihood's slopes but for the deaths' own columns, and hazards.

    `at_risk` and `tied` are, time by time, the sums of risk (1, z)(1, z)' over whoever is at risk
    and over whoever dies. Of d deaths at one time the k-th sees all at risk less k/d of the tied.
    """
    width = at_risk.shape[1] - 1
    value, slope, curvature = 0.0, np.zeros(width), np.zeros((width, width))
    hazards = np.zeros(len(deaths))
    for at in np.flatnonzero(deaths):
        count, (whole, some) = int(deaths[at]), (at_risk[at], tied[at])
        left = np.arange(count) / count
        risks = whole[0, 0] - left * some[0, 0]
        means = (whole[0, 1:] - left[:, None] * some[0, 1:]) / risks[:, None]
        value -= float(np.log(risks).sum())
        slope -= means.sum(axis=0)
        curvature += whole[1:, 1:] * (1 / risks).sum() - some[1:, 1:] * (left / risks).sum()
        curvature -= means.T @ means
        hazards[at] = count / whole[0, 0]
    return Slopes(value=value, slope=slope, curvature=curvature), hazards
