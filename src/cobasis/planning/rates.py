"""How fast this machine does what an alignment is made of: measured, in about a second."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk

from cobasis.algorithms.fits import factored
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.polar import polar
from cobasis.linalg.threads import one_blas_thread
from cobasis.planning import work

ROWS = 1000
SIZES = (10, 50, 200, 400)
ORDERS = (200, 800)
BATCH = 10
FRESH = 2000
"""Columns of all images of one product: 16 MB."""

LARGE = 40_000_000
"""Bytes that no cache holds."""
SHARES = 3 * len(SIZES) + len(ORDERS) + 3


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A rate that depends on a size."""

    sizes: tuple[float, ...]  # increasing
    rates: tuple[float, ...]  # operations a second at each

    def at(self, size: float) -> float:
        """Return the rate between two sizes; beyond the ends, that of the end."""
        found = np.interp(np.log(size), np.log(self.sizes), np.log(self.rates))
        return float(np.exp(found))


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What one thread of this machine does in a second."""

    product: Curve  # operations of A_i' Z, by l
    factor: Curve  # of polar factors in stacks, by l
    triangle: Curve  # of a party's thin QR factorisation, by l
    eigen: Curve  # of the leading tenth of a symmetric eigendecomposition, by its order
    outer: float  # of half of W W', which is all that a symmetric product needs
    copied: float  # bytes a second that one pass over memory reads
    step: float  # seconds that Python takes between two arrays


def calibrate(*, seconds: float = 1.0) -> Rates:
    """Time each kernel on a few sizes, one BLAS thread."""
    rng = np.random.default_rng(0)
    share = seconds / SHARES
    tables = {size: rng.standard_normal((ROWS, size)) for size in SIZES}
    stacks = {size: rng.standard_normal((_batch(size), size, size)) for size in SIZES}
    grams = {size: _gram(rng.standard_normal((size, size))) for size in ORDERS}
    with one_blas_thread():
        return Rates(
            product=_curve(SIZES, share, _product),
            factor=_curve(SIZES, share, lambda size: _factor(stacks[size])),
            triangle=_curve(SIZES, share, lambda size: _triangle(tables[size])),
            eigen=_curve(ORDERS, share, lambda size: _eigen(grams[size])),
            outer=_outer_rate(tables[SIZES[-1]], share),
            copied=_copied_rate(share),
            step=_best(lambda: np.isfinite(np.ones(2)).all(), share / 4),
        )


Timed = tuple[float, Callable[[], object]]


def _curve(sizes: tuple[int, ...], share: float, kernel: Callable[[int], Timed]) -> Curve:
    """Time a kernel at every size."""
    rates = []
    for size in sizes:
        operations, call = kernel(size)
        rates.append(operations / _best(call, share))
    return Curve(sizes=sizes, rates=tuple(rates))


def _best(call: Callable[[], object], share: float) -> float:
    """Return the median time of a call, repeated for a while; the first run warms the others."""
    began = time.perf_counter()
    runs: list[float] = []
    while len(runs) < 2 or time.perf_counter() - began < share:  # noqa: PLR2004 -- warm and timed
        started = time.perf_counter()
        call()
        runs.append(time.perf_counter() - started)
        if runs[0] > share:
            break
    return float(np.median(runs[1:] or runs))


def _product(size: int) -> Timed:
    """Multiply many images with one target: more of them than a cache holds."""
    images = np.ones((FRESH // size, ROWS, size))
    target = images[0].copy()

    def multiplied() -> None:
        for image in images:
            _ = target.T @ image

    return len(images) * work.product(rows=size, inner=ROWS, columns=size), multiplied


def _factor(stack: Matrix) -> Timed:
    count, size, _ = stack.shape
    return count * 18.0 * size**3, lambda: polar(stack)


def _triangle(table: Matrix) -> Timed:
    rows, columns = table.shape
    return 4.0 * rows * columns**2, lambda: factored("calibration", table)


def _eigen(gram: Matrix) -> Timed:
    order = len(gram)
    wanted = (order - order // 10, order - 1)
    return float(order) ** 3, lambda: eigh(gram, subset_by_index=wanted, driver="evr")


def _outer_rate(table: Matrix, share: float) -> float:
    rows, columns = table.shape
    seconds = _best(lambda: dsyrk(1.0, table.T, trans=1, lower=1), share)
    return float(rows**2 * columns / seconds)


def _copied_rate(share: float) -> float:
    table = np.ones(LARGE // 8)
    return float(LARGE / _best(lambda: float(table.sum()), share))


def _batch(size: int) -> int:
    """Return how many small matrices go into one call: few large ones, more small ones."""
    return max(1, min(BATCH, 500 // size))


def _gram(table: Matrix) -> Matrix:
    return table @ table.T
