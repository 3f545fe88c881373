"""What our streamed aligners do and hold: by kernel, because kernels differ in speed by ten.

The paper's count is in :mod:`cobasis.planning.work` and :mod:`cobasis.planning.memory`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from cobasis.algorithms.fits import ROWS_A_COMPONENT, WORTH
from cobasis.algorithms.images import LARGEST_BATCH, batch_bytes
from cobasis.algorithms.stacked import GRAM_ROWS, HELD_BYTES
from cobasis.errors import OptionError
from cobasis.planning import work
from cobasis.planning.memory import BYTES_PER_NUMBER
from cobasis.planning.rates import Rates
from cobasis.planning.work import Size

POLAR = 18.0
"""Operations of one polar factor, in l^3: a Gram matrix, its eigenvectors and one correction."""

STEPS = 8.0
"""How many small array operations Python starts for each party."""

SKETCH_PASSES = 6
"""Passes of the sketch that the largest inputs need, about; it is capped at 12."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Operations by kernel."""

    product: float = 0.0
    factor: float = 0.0
    triangle: float = 0.0
    eigen: float = 0.0
    outer: float = 0.0
    eigen_order: float = 1.0  # of the eigenproblem
    copied: float = 0.0  # bytes that are read from memory
    steps: float = 0.0  # small array operations


def _odc(size: Size) -> Work:
    """Count one product and one polar factor a party: ``2 a c l^2 + 18 c l^3``."""
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    return Work(
        product=c * work.product(rows=l, inner=a, columns=l),
        factor=c * POLAR * l**3,
        copied=BYTES_PER_NUMBER * a * c * l,
        steps=STEPS * c,
    )


def _odc_of_one_span(size: Size) -> Work:
    """Count what images that are Z turned take: ``2 a l^2`` once, then ``2 a l + 8 l^3`` each.

    The product with a vector takes as long as reading the image, which is counted as such. Where
    few rows would not be fewer, products are made, and found to be orthogonal by a Gram matrix.
    """
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    few = a >= WORTH * ROWS_A_COMPONENT * l
    product = work.product(rows=l, inner=a, columns=l) + c * 8 * l**3
    whole = c * (work.product(rows=l, inner=a, columns=l) + 2 * l**3)
    return replace(_odc(size), product=product if few else whole, factor=0.0)


def _whitened(size: Size, *, then: Callable[[Size], Work] = _odc) -> Work:
    """Count ODC on the Q of each image."""
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    odc = then(size)
    return replace(odc, triangle=c * 4 * a * l**2, copied=2 * odc.copied, steps=2 * odc.steps)


def _least_squares(size: Size, *, factored: int) -> Work:
    """Count target and fits; `factored` is how many factorisations a party needs."""
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    wide = c * l
    fits = c * work.product(rows=l, inner=a, columns=l)
    if a > GRAM_ROWS and BYTES_PER_NUMBER * a * wide > HELD_BYTES:
        sketch = SKETCH_PASSES * 4 * a * wide * (l + 20)
        target = Work(product=fits + sketch)
    else:
        order = a if wide > a <= GRAM_ROWS else wide
        back = work.product(rows=a, inner=wide, columns=l) if order == wide else 0.0
        outer = float(order) * a * wide
        target = Work(product=fits + back, outer=outer, eigen=float(order) ** 3, eigen_order=order)
    return replace(
        target,
        triangle=c * factored * 4 * a * l**2,
        copied=BYTES_PER_NUMBER * 2 * a * wide,
        steps=2 * STEPS * c,
    )


METHODS: Mapping[str, Callable[[Size], Work]] = {
    "odc": _odc,
    "whitened": _whitened,
    "imakura": partial(_least_squares, factored=1),
    "kawakami": partial(_least_squares, factored=2),
}
"""By the name that the agreement uses. GOPP is not here: who knows how often it iterates?"""

OF_ONE_SPAN: Mapping[str, Callable[[Size], Work]] = {
    **METHODS,
    "odc": _odc_of_one_span,
    "whitened": partial(_whitened, then=_odc_of_one_span),
}
"""The same where all parties have one span, and ODC an isometric anchor."""


def work_of(method: str, size: Size, *, one_span: bool = False) -> Work:
    """Return what a method does."""
    if method not in METHODS:
        raise OptionError(
            f"method={method!r} has no known work. Choose one of {', '.join(METHODS)}."
        )
    return (OF_ONE_SPAN if one_span else METHODS)[method](size)


def peak_bytes(method: str, size: Size, *, workers: int = 1, sink_on_disk: bool = False) -> int:
    """Return what a method holds at its peak, beside the program itself."""
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    work_of(method, size)
    image = BYTES_PER_NUMBER * a * l
    few = min(8, c // 8, LARGEST_BATCH // image)
    batch = image * min(c, max(1, batch_bytes(c * image) // image, few))
    small = 10 * (batch // image) * BYTES_PER_NUMBER * l**2
    under_way = (workers + 1) * batch + workers * small
    kept = 0 if sink_on_disk else c * BYTES_PER_NUMBER * l**2
    gram = 0
    if method in {"imakura", "kawakami"}:
        order = min(a, c * l)
        together = min(BYTES_PER_NUMBER * a * c * l, HELD_BYTES)
        gram = 4 * BYTES_PER_NUMBER * order**2 if a <= GRAM_ROWS else 2 * together
    return image + under_way + kept + gram


def predict_alignment(
    size: Size, *, rates: Rates, method: str = "odc", workers: int = 1, one_span: bool = False
) -> float:
    """Return how many seconds an alignment of arrays in memory will take, within a factor of 3."""
    found = work_of(method, size, one_span=one_span)
    columns = size.n_components
    shared = (
        found.product / rates.product.at(columns)
        + found.factor / rates.factor.at(columns)
        + found.triangle / rates.triangle.at(columns)
        + found.copied / rates.copied
    )
    alone = (
        found.eigen / rates.eigen.at(found.eigen_order)
        + found.outer / rates.outer
        + found.steps * rates.step
    )
    return shared / workers + alone
