"""Leading singular vectors: of a Gram matrix, of columns, of a table visited block by block.

One pass and one small eigenproblem where that is accurate. A Gram matrix squares singular
values, so where the wanted ones lie too far apart a second pass of QR factorisations follows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
from scipy.linalg import eigh

from cobasis.linalg.arrays import Blocks, Matrix, WholeTable, gathered, numerical_rank
from cobasis.linalg.threads import one_blas_thread

ACCURATE = 1e-3
"""Smallest ratio of the wanted singular values that survives being squared: error 2e-9."""


@dataclass(frozen=True)
class Leading:
    """Leading singular vectors of one side of a table, and how strong each is."""

    directions: Matrix  # orthonormal, strongest first
    singular_values: Matrix

    def first(self, count: int) -> "Leading":
        return Leading(self.directions[:, :count], self.singular_values[:count])


def right_singular(table: Matrix, *, shape: tuple[int, int] | None = None) -> Leading:
    """Return the right singular vectors of a table, or of one of `shape` that it is R of."""
    _, values, right = np.linalg.svd(table, full_matrices=False)
    rank = numerical_rank(values, shape or table.shape)  # what follows is LAPACK's filling
    return Leading(right.T, values).first(rank)


def of_gram(gram: Matrix, count: int, *, against: float = 0.0) -> Leading | None:
    """Return the leading eigenvectors of ``W W'`` and the roots of their values, if exact."""
    size = len(gram)
    if not (1 <= count <= size and np.isfinite(np.trace(gram))):
        return None
    squares, vectors = eigh(
        gram, subset_by_index=(size - count, size - 1), lower=True, check_finite=False
    )
    # An eigenvalue is off by rounding of the largest, or of what was subtracted from the matrix
    # (`against`). Of the root of a small one, and of its vector, less and less is then right.
    if not squares[0] > ACCURATE**2 * max(squares[-1], against):
        return None
    return Leading(np.ascontiguousarray(vectors[:, ::-1]), np.sqrt(squares[::-1]))


def of_columns(table: Matrix, count: int) -> Leading | None:
    """Return what `of_gram` does for a table with fewer columns than rows: through ``W' W``."""
    found = of_gram(table.T @ table, count)
    if found is None:
        return None
    # W V / S is orthonormal to 2e-9 only, and QR makes it so to rounding. R is nearly I but for
    # the signs that LAPACK chooses, so that multiplying by its diagonal's brings each vector back.
    directions, triangle = np.linalg.qr(table @ (found.directions / found.singular_values))
    return replace(found, directions=directions * np.sign(np.diag(triangle)))


def stacked(*tables: Matrix) -> Matrix:
    """Return R of tables on top of each other: their singular values, and nothing is squared."""
    return np.asarray(np.linalg.qr(np.vstack(tables), mode="r"))


STEP = "reading rows for the basis"


def leading_directions(rows: Matrix | Blocks, *, n_wanted: int, centred: bool = False) -> Leading:
    """Return the leading right singular vectors and values of a table, real directions only."""
    blocks = rows if isinstance(rows, Blocks) else WholeTable(rows)
    n_rows, n_columns = blocks.shape
    with one_blas_thread():
        if n_rows > n_columns:
            total, gram = np.zeros(n_columns), np.zeros((n_columns, n_columns))
            # Parts are added in the rows' order: the same sum to the last bit, however many
            # threads there are.
            for part_total, part_gram in blocks.over(_moments, step=STEP):
                total += part_total
                gram += part_gram
            mean = total / n_rows if centred else np.zeros(n_columns)
            rounding = float(np.trace(gram))  # what the Gram matrix is rounded against, with mean
            gram -= n_rows * np.outer(mean, mean)
            found = of_gram(gram, n_wanted, against=rounding)
            if found is None:  # what is left about the mean, of which nothing is squared
                parts = blocks.over(partial(_triangle, mean), step=f"{STEP}, precisely")
                found = right_singular(reduce(stacked, parts), shape=blocks.shape).first(n_wanted)
        else:  # from X X', or from a thin SVD where that is not safe
            table = gathered(blocks, step=STEP)
            if centred:
                table -= table.mean(axis=0)
            found = of_columns(table.T, n_wanted) or right_singular(table).first(n_wanted)
    return Leading(in_one_sense(found.directions), found.singular_values)


def in_one_sense(directions: Matrix) -> Matrix:
    """Turn each direction round that points against a fixed vector."""
    # LAPACK's signs depend on its version and on the route. No direction is square to this vector
    # but by chance.
    weights = np.cos(np.arange(len(directions)))
    return directions * np.where(weights @ directions < 0, -1.0, 1.0)


def _moments(_: int, blocks: Iterator[Matrix]) -> tuple[Matrix, Matrix]:
    total, gram = np.zeros(()), np.zeros(())
    for block in blocks:
        total = total + block.sum(axis=0)
        gram = gram + block.T @ block
    return total, gram


def _triangle(mean: Matrix, _: int, blocks: Iterator[Matrix]) -> Matrix:
    return reduce(stacked, (block - mean for block in blocks), np.zeros((0, len(mean))))
