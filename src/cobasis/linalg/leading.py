"""Leading singular vectors: of a Gram matrix, of columns, of a table visited block by block.

One pass and one small eigenproblem where that is accurate. A Gram matrix squares singular
values, so where the wanted ones lie too far apart a second pass of QR factorisations follows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.linalg import eigh

from cobasis.linalg.arrays import Matrix, numerical_rank, right_singular
from cobasis.linalg.blocks import Blocks, WholeTable
from cobasis.linalg.rng import KeyStream
from cobasis.linalg.threads import one_blas_thread

ACCURATE = 1e-3
"""Smallest ratio of the wanted singular values that survives being squared: error 2e-9."""


def of_gram(gram: Matrix, count: int, *, against: float = 0.0) -> tuple[Matrix, Matrix] | None:
    """Return the leading eigenvectors of ``W W'`` and the roots of their values, if exact."""
    size = len(gram)
    if not (1 <= count <= size and np.isfinite(np.trace(gram))):
        return None
    squares, vectors = eigh(
        gram, subset_by_index=(size - count, size - 1), lower=True, check_finite=False
    )
    if not squares[0] > ACCURATE**2 * max(squares[-1], against):
        return None
    return np.ascontiguousarray(vectors[:, ::-1]), np.sqrt(squares[::-1])


def of_columns(table: Matrix, count: int) -> tuple[Matrix, Matrix] | None:
    """Return what `of_gram` does for a table with fewer columns than rows: through ``W' W``."""
    found = of_gram(table.T @ table, count)
    if found is None:
        return None
    vectors, values = found
    directions, triangle = np.linalg.qr(table @ (vectors / values))
    return directions * np.sign(np.diag(triangle)), values


def stacked(*tables: Matrix) -> Matrix:
    """Return R of tables on top of each other: their singular values, and nothing is squared."""
    return np.asarray(np.linalg.qr(np.vstack(tables), mode="r"))


def by_iteration(
    product: Callable[[int, Matrix], Matrix],
    start: Matrix,
    *,
    count: int,
    passes: int,
    still: float,
) -> tuple[Matrix, Matrix]:
    """Return the leading left singular vectors and values of W by subspace iteration.

    A pass shrinks the error of direction j by the squared ratio of value ``k + 1`` to value j.
    """
    basis, before = np.linalg.qr(start)[0], np.zeros(count)
    for number in range(1, passes + 1):
        image = product(number, basis)
        squares, turn = np.linalg.eigh(basis.T @ image)
        values = np.sqrt(np.maximum(squares[::-1], 0.0))
        directions = basis @ turn[:, ::-1]
        if np.allclose(values[:count], before, rtol=still, atol=0.0):
            break
        before, basis = values[:count], np.linalg.qr(image)[0]
    return directions, values


LARGEST_GRAM = 4096
"""With more rows and columns than this, the span is found by a randomised range finder."""

RANGE_PASSES = 5
"""Passes of the range finder; the last one only measures."""

RANGE_RANK = 1e-6
"""Directions that are weaker than this, against the strongest, it cannot tell from rounding."""

STEP = "reading rows for the basis"


@dataclass(frozen=True)
class Leading:
    """The leading right singular vectors of a table, and how strong each is."""

    directions: Matrix  # orthonormal, strongest first
    singular_values: Matrix


def leading_directions(rows: Matrix | Blocks, *, n_wanted: int, centred: bool = False) -> Leading:
    """Return the leading right singular vectors and values of a table, real directions only.

    Of a table with more rows than columns they come from its Gram matrix, in one pass, and from
    a triangle in a second pass where that is not safe.
    """
    blocks = rows if isinstance(rows, Blocks) else WholeTable(rows)
    n_rows, n_columns = blocks.shape
    with one_blas_thread():
        if min(n_rows, n_columns) > LARGEST_GRAM:
            found = _by_range(blocks, n_wanted, centred=centred)
        elif n_rows <= n_columns:
            found = _wide(_gathered(blocks), n_wanted, centred=centred)
        else:
            total, gram = np.zeros(n_columns), np.zeros((n_columns, n_columns))
            for part_total, part_gram in blocks.over(partial(_moments, centred), step=STEP):
                total += part_total
                gram += part_gram
            mean = total / n_rows  # zero where it is not asked for
            rounding = float(np.trace(gram))  # what the Gram matrix is rounded against, with mean
            gram -= n_rows * np.outer(mean, mean)
            exact = of_gram(gram, n_wanted, against=rounding)
            found = Leading(*exact) if exact else _by_triangle(blocks, n_wanted, mean=mean)
    weights = np.cos(np.arange(n_columns))  # any fixed vector that no direction is square to
    turned = found.directions * np.where(weights @ found.directions < 0, -1.0, 1.0)
    return Leading(turned, found.singular_values)


def _by_triangle(blocks: Blocks, n_wanted: int, *, mean: Matrix) -> Leading:
    """Return directions of what is left about `mean`, and square nothing."""
    triangle: Matrix = np.zeros((0, blocks.shape[1]))
    for part in blocks.over(partial(_triangle, mean), step=f"{STEP}, precisely"):
        triangle = stacked(triangle, part)
    return _real(triangle, n_wanted, shape=blocks.shape)


def _wide(table: Matrix, n_wanted: int, *, centred: bool) -> Leading:
    """Return directions from X X', or from a thin SVD where that is not safe."""
    if centred:
        table = table - table.mean(axis=0)
    found = of_columns(table.T, n_wanted)
    return Leading(*found) if found else _real(table, n_wanted, shape=table.shape)


def _real(table: Matrix, n_wanted: int, *, shape: tuple[int, ...]) -> Leading:
    """Return the leading real directions of a table that stands for one of `shape`."""
    if not table.any():
        return Leading(np.empty((shape[1], 0)), np.empty(0))
    found = right_singular(table)
    kept = min(n_wanted, numerical_rank(found.singular_values, shape))
    return Leading(found.directions[:, :kept], found.singular_values[:kept])


def _by_range(blocks: Blocks, n_wanted: int, *, centred: bool) -> Leading:
    """Return directions by subspace iteration from a random start, the same every time."""
    n_rows, n_columns = blocks.shape
    width = min(n_columns, n_wanted + max(10, n_wanted // 4))
    start = KeyStream(bytes(32), "range finder").normal((n_columns, width))
    mean = np.zeros(n_columns)
    if centred:
        mean = sum(blocks.over(_total, step=f"{STEP}, mean"), start=mean) / n_rows

    def product(number: int, basis: Matrix) -> Matrix:
        parts = blocks.over(partial(_image, basis), step=f"{STEP}, pass {number}")
        return sum(parts, start=-n_rows * np.outer(mean, mean @ basis))

    directions, values = by_iteration(
        product, start, count=n_wanted, passes=RANGE_PASSES, still=0.0
    )
    real = int(np.count_nonzero(values[:n_wanted] > RANGE_RANK * values[0]))
    return Leading(directions[:, :real], values[:real])


def _gathered(blocks: Blocks) -> Matrix:
    """Return a table that is small enough as one array."""
    return np.vstack(list(blocks.over(_copied, step=STEP)))


def _copied(_: int, blocks: Iterator[Matrix]) -> Matrix:
    return np.vstack(list(map(np.array, blocks)))


def _moments(summed: bool, _: int, blocks: Iterator[Matrix]) -> tuple[Matrix, Matrix]:  # noqa: FBT001
    """Return a part's column sums, if asked for, and its Gram matrix."""
    total: Matrix | float = 0.0
    gram: Matrix | float = 0.0
    for block in blocks:
        gram = gram + block.T @ block
        if summed:
            total = total + block.sum(axis=0)
    return np.asarray(total), np.asarray(gram)


def _total(_: int, blocks: Iterator[Matrix]) -> Matrix:
    return np.asarray(sum(block.sum(axis=0) for block in blocks))


def _triangle(mean: Matrix, _: int, blocks: Iterator[Matrix]) -> Matrix:
    """Return R of a part about `mean`."""
    triangle: Matrix = np.zeros((0, len(mean)))
    for block in blocks:
        triangle = stacked(triangle, block - mean)
    return triangle


def _image(basis: Matrix, _: int, blocks: Iterator[Matrix]) -> Matrix:
    """Return X'X Q of a part."""
    return np.asarray(sum(block.T @ (block @ basis) for block in blocks))
