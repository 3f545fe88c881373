"""Imakura-DC and Kawakami-DC in the best form that plain NumPy and SciPy have, without checks.

No pseudoinverse and no decomposition of all images: the Gram matrix of the smaller side, only the
eigenvectors that are wanted, and Cholesky factors for the parties.
"""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, lstsq, solve_triangular
from scipy.linalg.blas import dsyrk

from benchmarks.inputs import Images, Matrix


def imakura_best(images: Images) -> dict[str, Matrix]:
    """Solve ``A_i' A_i G_i = A_i' U`` for the leading directions U of all images."""
    target, _ = leading(np.hstack(list(images.values())), next(iter(images.values())).shape[1])
    return {name: fit(image, target) for name, image in images.items()}


def kawakami_best(images: Images) -> dict[str, Matrix]:
    """As above for ``Q_i = A_i R_i^-1``; its G_i are ``R_i^-1`` times blocks of V' = S^-1 U' Q."""
    size = next(iter(images.values())).shape[1]
    factors = {name: triangle(image) for name, image in images.items()}
    tables = {
        name: solve_triangular(factors[name], image.T, trans=1, check_finite=False).T
        for name, image in images.items()
    }
    target, values = leading(np.hstack(list(tables.values())), size)
    return {
        name: solve_triangular(factors[name], table.T @ target / values, check_finite=False)
        for name, table in tables.items()
    }


def leading(beside: Matrix, size: int) -> tuple[Matrix, Matrix]:
    """Return the top left singular vectors and the values, from the smaller Gram matrix."""
    order, wide = min(beside.shape), beside.shape[0] <= beside.shape[1]
    gram = dsyrk(1.0, beside.T, trans=int(wide))
    last = (order - size, order - 1)
    squares, vectors = eigh(
        gram, lower=False, subset_by_index=last, overwrite_a=True, check_finite=False
    )
    values = np.sqrt(squares)
    return (vectors if wide else beside @ vectors / values), values


def fit(image: Matrix, target: Matrix) -> Matrix:
    """Solve least squares by normal equations, and where they are not definite by `lstsq`."""
    try:
        factor = cho_factor(dsyrk(1.0, image.T), check_finite=False)
    except LinAlgError:
        found: Matrix = lstsq(image, target)[0]
        return found
    solved: Matrix = cho_solve(factor, image.T @ target, check_finite=False)
    return solved


def triangle(image: Matrix) -> Matrix:
    """Return R of ``A = Q R`` from the Gram matrix, and where that is not definite from QR."""
    try:
        found: Matrix = cho_factor(dsyrk(1.0, image.T), check_finite=False)[0]
    except LinAlgError:
        return np.asarray(np.linalg.qr(image, mode="r"))
    return found
