"""The analytic Gaussian mechanism: how much noise a privacy budget takes, and never less.

The noise hides one record only where every condition of the guarantee holds: rows clipped
before (`cobasis.privacy.sensitivity`), a basis that no private row has shaped, public constants
for all that was done to the rows, and labels that are public or randomised. These functions
are arithmetic: they cannot see whether that is so.
"""

import math
from collections.abc import Callable

import scipy

from cobasis.errors import OptionError

_ROUNDING = 2.0**-49
"""What a logarithm of the normal distribution is off by, relative, with room to spare."""


def delta_of(*, epsilon: float, noise: float, sensitivity: float) -> float:
    """Return the delta that Gaussian noise reaches at an epsilon: exact, rounded up.

    Parameters
    ----------
    epsilon : float
        Zero or more.
    noise : float
        sigma, the standard deviation of the noise in every coordinate, in the rows' unit.
    sensitivity : float
        D, how far one record can move the release (L2, the rows' unit).

    Returns
    -------
    float
        ``Phi(D / 2s - e s / D) - exp(e) Phi(-D / 2s - e s / D)``, and as much more as rounding
        could have hidden: never below the exact value.

    Raises
    ------
    OptionError
        A number that is not finite, a negative epsilon, or noise or sensitivity not above 0.

    Notes
    -----
    **Who sees what.** Public numbers only.
    **Cost.** Two logarithms of the normal distribution.

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism" (ICML 2018),
    Theorem 8; ODC paper's first version, Theorem 2.3.

    Examples
    --------
    >>> f"{delta_of(epsilon=1, noise=2.575, sensitivity=1):.6f}"
    '0.000999'
    """
    _require(epsilon >= 0, "epsilon", epsilon, "zero or more")
    _require(noise > 0, "noise", noise, "above 0")
    _require(sensitivity > 0, "sensitivity", sensitivity, "above 0")
    # In logarithms: exp(epsilon) overflows from 709 on, and in far tails both terms would be 0.
    # Nearly equal terms cancel (measured: 3e-9 of delta is lost, two times in three downwards), and
    # a delta that is too small is noise that is too small. So each logarithm, which SciPy has to 6
    # units in the last place, is moved by 16 against us; delta is at most 3e-8 of it too large.
    signal = sensitivity / noise
    middle = epsilon / signal if signal else math.inf
    log_share = scipy.special.log_ndtr
    upper, lower = float(log_share(signal / 2 - middle)), float(log_share(-signal / 2 - middle))
    if upper == -math.inf:
        return 0.0
    off = _ROUNDING * (1 + epsilon - upper - lower)
    gap = min(epsilon + lower - upper, 0.0) - off  # log of the second term over the first
    return min(1.0, -math.exp(min(upper + off, 0.0)) * math.expm1(gap))


def noise_scale(*, epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the least noise that satisfies (epsilon, delta): the analytic Gaussian mechanism.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        Between 0 and 1. Any, since this is arithmetic; where people stand behind the rows it
        has to be well below one over their number, at most ``1 / (10 n_i)``.
    sensitivity : float
        D, how far one record can move the release (L2, the rows' unit); see
        `cobasis.privacy.sensitivity.sensitivity_of`.

    Returns
    -------
    float
        sigma, the standard deviation in every coordinate. ``delta_of`` at it is at most
        `delta`, and the exact least sigma is smaller by rounding only.

    Raises
    ------
    OptionError
        A number out of its range or not finite.

    Notes
    -----
    **Who sees what.** Public numbers only.
    **Cost.** About a hundred values of `delta_of`.

    References
    ----------
    Balle and Wang (ICML 2018), Algorithm 1; ODC paper's first version, Algorithm 3. Solved by
    bisection of the condition itself. The classical ``sqrt(2 ln(1.25 / delta)) / epsilon`` is
    too small from epsilon = 8 on.

    Examples
    --------
    >>> f"{noise_scale(epsilon=8, delta=1e-3, sensitivity=1):.6f}"
    '0.480014'
    """
    _require(epsilon > 0, "epsilon", epsilon, "above 0")
    _require(0 < delta < 1, "delta", delta, "between 0 and 1")
    _require(sensitivity > 0, "sensitivity", sensitivity, "above 0")

    def enough(noise: float) -> bool:
        return delta_of(epsilon=epsilon, noise=noise, sensitivity=sensitivity) <= delta

    return least_enough(enough, sensitivity)


def epsilon_of(*, noise: float, delta: float, sensitivity: float) -> float:
    """Return the epsilon that Gaussian noise reaches at a delta: `noise_scale` turned round.

    Parameters
    ----------
    noise : float
        sigma, in the rows' unit.
    delta : float
        Between 0 and 1.
    sensitivity : float
        D, in the rows' unit.

    Returns
    -------
    float
        The least epsilon, rounded up; 0 where the noise reaches `delta` without any.

    Raises
    ------
    OptionError
        A number out of its range or not finite.

    Notes
    -----
    **Who sees what.** Public numbers only. For T releases of the same rows, ask with
    ``sensitivity * sqrt(T)``.
    **Cost.** About a hundred values of `delta_of`.

    Examples
    --------
    >>> f"{epsilon_of(noise=0.480014, delta=1e-3, sensitivity=1):.4f}"
    '8.0000'
    """
    _require(0 < delta < 1, "delta", delta, "between 0 and 1")

    def enough(epsilon: float) -> bool:
        return delta_of(epsilon=epsilon, noise=noise, sensitivity=sensitivity) <= delta

    return 0.0 if enough(0.0) else least_enough(enough, 1.0)


def least_enough(enough: Callable[[float], bool], start: float) -> float:
    """Return the least number that is enough: by doubling, then halving to the last bit."""
    # No root finder: it ends on either side of the root, within a tolerance. Here what is returned
    # was itself found to be enough, and the float below it not.
    high = start
    while not enough(high):
        high *= 2
    low = high / 2
    while low > 0 and enough(low):
        high, low = low, low / 2
    while low < (middle := low + (high - low) / 2) < high:
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def _require(fine: bool, name: str, value: float, wanted: str) -> None:  # noqa: FBT001
    """Raise OptionError for a number that is out of its range, infinite or NaN."""
    if not (fine and math.isfinite(value)):
        raise OptionError(
            f"{name}={value} is no number that noise can be calibrated with: it has to be finite "
            f"and {wanted}. Give the {name} that was agreed on."
        )
