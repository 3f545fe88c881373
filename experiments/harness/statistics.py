"""Means with intervals, and the tests that the papers use."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import stdtrit

ROUNDING = 1e-12  # of the largest value: differences that spread by less are one and the same
LARGE = 1e5  # from here on a number without a margin is printed whole


@dataclass(frozen=True, kw_only=True)
class Summary:
    mean: float  # of all repeats
    margin: float  # half of the 95 % interval by Student's t; NaN for a single repeat
    repeats: int

    def __str__(self) -> str:
        """Print the mean with its margin, to two digits of the margin."""
        if np.isnan(self.margin):
            return f"{self.printed(self.mean)} (1)"
        if self.margin == 0:
            return self.printed(self.mean)
        return f"{self.printed(self.mean)} ± {self.printed(self.margin)}"

    def printed(self, value: float) -> str:
        """Print a value of this kind, to two digits of the margin."""
        if np.isnan(self.margin) or self.margin == 0:
            return f"{value:,.5g}" if abs(value) < LARGE else f"{value:,.0f}"
        digits = int(max(0, 1 - np.floor(np.log10(self.margin))))
        return f"{value:,.{min(digits, 4)}f}"


def summary(values: Sequence[float]) -> Summary:
    """Return mean and 95 % interval of repeats; what only rounding tells apart is one number."""
    count = len(values)
    mean = float(np.mean(values))
    if count == 1:
        return Summary(mean=mean, margin=float("nan"), repeats=1)
    spread = float(np.std(values, ddof=1))
    error = spread / np.sqrt(count) if spread > ROUNDING * np.abs(values).max() else 0.0
    return Summary(mean=mean, margin=float(stdtrit(count - 1, 0.975) * error), repeats=count)


@dataclass(frozen=True)
class Paired:
    """A one-sided paired t-test of the second being worse than the first."""

    difference: float  # mean of second minus first
    p: float  # one-sided: small where the second is worse
    effect: float  # cohen's d of the differences


def paired(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Compare two series of the same repeats, as the ODC paper's section 8; NaN of one repeat."""
    differences = np.subtract(second, first)
    if len(differences) < 2:
        return Paired(float(np.mean(differences)), np.nan, np.nan)
    spread = float(np.std(differences, ddof=1))
    mean = float(np.mean(differences))
    rounding = ROUNDING * np.abs([first, second]).max()
    if spread <= rounding:
        mean = mean if abs(mean) > rounding else 0.0
        p = 1.0 if mean >= 0 else 0.0
        return Paired(mean, p, float(np.sign(mean) * np.inf) if mean else 0.0)
    p = float(stats.ttest_rel(second, first, alternative="less").pvalue)
    return Paired(mean, p, mean / spread)


@dataclass(frozen=True)
class Variance:
    f: float  # F and its p-value
    p: float
    effect: float


UNKNOWN = Variance(np.nan, np.nan, np.nan)


def one_way(groups: Sequence[Sequence[float]]) -> Variance:
    """Ask whether a factor's levels differ, as Tables 17 and 18 do; NaN of a single repeat."""
    if min(map(len, groups)) < 2:
        return UNKNOWN
    found = stats.f_oneway(*groups)
    within = sum(map(len, groups)) - len(groups)
    effect = float(np.sqrt(found.statistic * (len(groups) - 1) / within))
    return Variance(float(found.statistic), float(found.pvalue), effect)


def first_of_two(cells: Sequence[Sequence[Sequence[float]]]) -> Variance:
    """Ask the same of the first of two factors that may interact, cells of one size (Table 19)."""
    table = np.asarray(cells, dtype=np.float64)
    first, second, repeats = table.shape
    if repeats < 2:
        return UNKNOWN
    within = first * second * (repeats - 1)
    rest = np.sum((table - table.mean(axis=2, keepdims=True)) ** 2) / within
    squares = second * repeats * np.sum((table.mean(axis=(1, 2)) - table.mean()) ** 2)
    f = float(squares / (first - 1) / rest)
    p = float(stats.f.sf(f, first - 1, within))
    return Variance(f, p, float(np.sqrt(f * (first - 1) / within)))
