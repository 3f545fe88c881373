"""The discrete Gaussian, drawn exactly, and what its noise guarantees.

What is released are integers, so noise is one, too: no bit of a float shows what it was added to.
Every decision of the sampler compares a number from a key stream with an exponential. A float
decides where it is surely right, many digits where it may not be, so the law is the discrete
Gaussian's and no approximation of it.

Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020:
Algorithm 3, Theorem 14 and Corollary 13. Kairouz, Liu and Steinke, "The distributed discrete
Gaussian mechanism", ICML 2021, Theorem 1: the noise of several parties added up.
"""

import math
from decimal import Decimal, localcontext

import numpy as np

from cobasis.linalg.arrays import Integers, Mask
from cobasis.linalg.rng import KeyStream
from cobasis.privacy.gaussian import least_enough

LEAST_SCALE, MOST_SCALE = 2**10, 2**50
"""From the first on several parties' noise adds up to one discrete Gaussian, but for exp(-10^7)."""

_SURE = 2.0**-40
"""Within this relative distance a float decides nothing; its own errors are below a hundredth."""

_WORD = 64
_ORDERS = np.logspace(-4, 6, 5001)
"""Orders of divergence, less one, that a guarantee is looked for at; each gives one that holds."""


def discrete_gaussian(stream: KeyStream, *, scale: int, count: int) -> Integers:
    """Draw integers k, each with a probability in proportion to exp(-k^2 / (2 scale^2))."""
    found, done = np.empty(count, dtype=np.int64), 0
    unused = np.uint64(_WORD - max(1, (scale - 1).bit_length()))
    while done < count:
        # a discrete Laplace: a remainder below the scale, then whole multiples of it
        words = stream.words(3 * (count - done) + _WORD) >> unused
        remainders = words[words < scale].astype(np.int64)
        remainders = remainders[_kept(stream, remainders, scale)]
        sizes = remainders + scale * _successes(stream, len(remainders))
        negative = (stream.words(len(sizes)) & np.uint64(1)).astype(bool)
        # zero has one sign; of the others as many stay as a Gaussian has
        kept = ~(negative & (sizes == 0)) & _kept(stream, sizes - scale, scale, squared=True)
        drawn = np.where(negative, -sizes, sizes)[kept][: count - done]
        found[done : done + len(drawn)] = drawn
        done += len(drawn)
    return found


def _successes(stream: KeyStream, count: int) -> Integers:
    """Return how often in a row something of probability 1/e happened."""
    found, alive = np.zeros(count, dtype=np.int64), np.arange(count)
    while len(alive):
        alive = alive[_kept(stream, np.ones(len(alive), dtype=np.int64), 1)]
        found[alive] += 1
    return found


def _kept(stream: KeyStream, sizes: Integers, scale: int, *, squared: bool = False) -> Mask:
    """Tell which of some things of probability exp(-x) happen; x = size / scale, or x^2 / 2."""
    words, exponents = stream.words(len(sizes)), sizes / scale
    shares = np.exp(-(exponents**2) / 2 if squared else -exponents) * 2.0**_WORD
    drawn = words.astype(np.float64)
    kept = drawn + 1 <= shares * (1 - _SURE)
    lost = (drawn >= shares * (1 + _SURE)) & (shares > 0)
    for at in np.flatnonzero(~(kept | lost)):
        kept[at] = _exactly(stream, int(words[at]), int(sizes[at]), scale, squared=squared)
    return kept


def _exactly(stream: KeyStream, word: int, size: int, scale: int, *, squared: bool) -> bool:
    """Decide by as many digits as it takes; whatever a float says, it would say the same."""
    digits, bits = 60, _WORD
    while True:
        with localcontext(prec=digits):
            exponent = Decimal(size) / scale
            share = (-(exponent**2) / 2 if squared else -exponent).exp()
            off = share * Decimal(10) ** (10 - digits)
            one = Decimal(2) ** bits
            if (word + 1) / one <= share - off:
                return True
            if word / one >= share + off:
                return False
        word, bits, digits = word << _WORD | int(stream.words(1)[0]), bits + _WORD, digits + 30


def zcdp_epsilon(*, mu: float, delta: float) -> float:
    """Return an epsilon that holds at a delta for noise that a person moves by mu of its scale."""
    # of zero-concentrated privacy, which is proven of the discrete Gaussian: some 8 % above what
    # the continuous one has at the same scale
    orders = 1 + _ORDERS
    found = orders * mu**2 / 2
    found += (-math.log(delta) + _ORDERS * np.log1p(-1 / orders) - np.log(orders)) / _ORDERS
    return max(0.0, float(found.min()) * (1 + 1e-9))


def zcdp_scale(*, epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the least scale of noise that `zcdp_epsilon` finds enough."""
    return least_enough(
        lambda scale: zcdp_epsilon(mu=sensitivity / scale, delta=delta) <= epsilon, sensitivity
    )
