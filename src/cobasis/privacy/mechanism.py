"""The Gaussian mechanism on rows, and randomised response on labels: what noise is added, and how.

A sum of float64 shows in its last bits what the noise was added to (Mironov, "On significance of
the least significant bits", 2012). So what is released stands on a grid, far coarser than these
bits and far finer than the noise, which comes from a key stream. Rounding looks at nothing private
and costs no guarantee; against attacks on arithmetic it is a mitigation, and not a proof.
"""

import math
from dataclasses import dataclass

import numpy as np

from cobasis.errors import OptionError
from cobasis.linalg.arrays import Integers, Matrix
from cobasis.linalg.rng import KeyStream
from cobasis.privacy.gaussian import noise_scale

SAMPLER = "ChaCha20, inverse distribution of 191 bits, rounded to the grid"
"""What the noise is drawn with, in the words of manifests and reports."""

GRID_BITS = 12  # the grid's step is at most the noise's scale divided by 2 to this

_OBLIQUE = 1e-9
"""What a basis that counts as orthonormal may lengthen a row by, relative, with room to spare."""

MAX_LABEL_EPSILON = 16.0  # above it a label is kept so surely that 53 bits hardly tell how surely


@dataclass(frozen=True, kw_only=True)
class Calibration:
    # sigma in every coordinate, in the rows' unit: a whole number of steps of the grid
    noise: float
    grid: float  # a power of two
    mu: float  # sensitivity over noise; those of one person add up as sqrt(mu_1^2 + mu_2^2 + ...)


def calibrated(*, epsilon: float, delta: float, sensitivity: float) -> Calibration:
    """Return noise and grid for a budget, the same numbers on every machine.

    Dong, Roth and Su, "Gaussian differential privacy" (2019), for mu and how it adds up.
    """
    # Columns that count as orthonormal (to 1e-10) may lengthen a row a little: the bound is on what
    # is released, so this is paid for in noise.
    moved = sensitivity * (1 + _OBLIQUE)
    least = noise_scale(epsilon=epsilon, delta=delta, sensitivity=moved)
    # A power of two, so that a whole number of steps is exact in float64. Rounded up, never down;
    # and to 13 bits, in which libraries whose last bits differ agree.
    grid = math.ldexp(1.0, math.frexp(least)[1] - 1 - GRID_BITS)
    noise = math.ceil(least / grid) * grid
    return Calibration(noise=noise, grid=grid, mu=moved / noise)


def noised(values: Matrix, normal: Matrix, *, calibration: Calibration) -> Matrix:
    """Add noise to clipped, projected rows, and put the sum on the grid."""
    # the sum is rounded: noise on the grid and rows beside it would show the rows' last bits again
    steps = np.rint((values + calibration.noise * normal) / calibration.grid)
    return steps * calibration.grid


def keep_probability(*, epsilon: float, n_classes: int) -> float:
    """Return how often randomised response leaves a label as it is."""
    if not (0 < epsilon <= MAX_LABEL_EPSILON and n_classes > 1):
        raise OptionError(
            f"labels of {n_classes} classes cannot be randomised with epsilon={epsilon}: that "
            f"takes two classes, and an epsilon above 0 of at most {MAX_LABEL_EPSILON:g}. Agree "
            "on such, or declare the labels public."
        )
    # Coins are multiples of 2^-53: on such a multiple a coin falls exactly as often as it says. It
    # is rounded down, for one unit too much would be more than exp(epsilon).
    kept = 1 / (1 + (n_classes - 1) * math.exp(-epsilon))
    return math.floor(kept * (1 - 2.0**-50) * 2.0**53) * 2.0**-53


def randomised(labels: Integers, stream: KeyStream, *, epsilon: float, n_classes: int) -> Integers:
    """Randomise labels: each stays with a known probability, and else is any of the others.

    Warner, "Randomized response" (1965); Kairouz, Oh and Viswanath, "Extremal mechanisms for
    local differential privacy" (2014), Section 4.
    """
    kept = keep_probability(epsilon=epsilon, n_classes=n_classes)
    coins, others = stream.uniform((2, len(labels)))
    away = 1 + np.floor(others * (n_classes - 1)).astype(np.int64)
    return np.where(coins < kept, labels, (labels + away) % n_classes)
