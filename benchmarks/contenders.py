"""Ways to align that are not ours: the loops people write, and what the papers publish.

The best forms are those of plain NumPy and SciPy without checks: no pseudoinverse and no
decomposition of all images, but the Gram matrix of the smaller side, only the eigenvectors that
are wanted, and Cholesky factors for the parties.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, lstsq, solve_triangular
from scipy.linalg.blas import dsyrk
from sklearn.utils.extmath import randomized_svd

from benchmarks.inputs import Images, Matrix
from cobasis import ODC, align

Changes = dict[str, Matrix]


def ours(images: Images, *, workers: int = 1, aligner: Any = ODC()) -> Changes:  # noqa: B008
    """Align as a user does, all checks included, and read every G_i."""
    return dict(align(aligner, images, workers=workers).changes_of_basis)


def scipy_loop(images: Images) -> Changes:
    """Align as most people would write it."""
    first = next(iter(images.values()))
    found: dict[str, Any] = {}
    for name, image in images.items():
        found[name], _ = scipy.linalg.orthogonal_procrustes(image, first)
    return found


def svd_loop(images: Images) -> Changes:
    """Align as the papers' Algorithm 4 does: product, decomposition, product."""
    first = next(iter(images.values()))
    found = {}
    for name, image in images.items():
        left, _, right = np.linalg.svd(image.T @ first)
        found[name] = left @ right
    return found


def floor(images: Images) -> Callable[[], Matrix]:
    """Prepare all cross products as one product of the side-by-side images."""
    first = np.ascontiguousarray(next(iter(images.values())).T)
    beside = np.hstack(list(images.values()))
    return lambda: first @ beside


def n_components(images: Images) -> int:
    return len(next(iter(images.values()))[0])


def imakura(target: Callable[[Matrix, int], Matrix]) -> Callable[[Images], Changes]:
    """Return Imakura-DC: a target from the side-by-side images, then pseudoinverses."""

    def aligned(images: Images) -> Changes:
        leading = target(np.hstack(list(images.values())), n_components(images))
        return {name: np.linalg.pinv(image) @ leading for name, image in images.items()}

    return aligned


def kawakami(right: Callable[[Matrix, int], Matrix]) -> Callable[[Images], Changes]:
    """Return Kawakami-DC: QR factors, the leading V of all Q, then ``R_i^-1`` times each block."""

    def aligned(images: Images) -> Changes:
        factors = [np.linalg.qr(image) for image in images.values()]
        leading = right(np.hstack([each[0] for each in factors]), n_components(images))
        blocks = np.split(leading.T, len(images))
        return {
            name: np.linalg.inv(triangle) @ block
            for name, (_, triangle), block in zip(images, factors, blocks, strict=True)
        }

    return aligned


imakura_full = imakura(lambda beside, size: np.linalg.svd(beside)[0][:, :size])
imakura_thin = imakura(lambda beside, size: np.linalg.svd(beside, full_matrices=False)[0][:, :size])
imakura_randomised = imakura(lambda beside, size: randomized_svd(beside, size, random_state=0)[0])
kawakami_thin = kawakami(lambda beside, size: np.linalg.svd(beside, full_matrices=False)[2][:size])
kawakami_randomised = kawakami(lambda beside, size: randomized_svd(beside, size, random_state=0)[2])


def kawakami_dense(images: Images) -> Changes:
    """Generalised eigenproblem of order c l: the l smallest of ``S v = lambda T v``."""
    beside = np.hstack(list(images.values()))
    weights = scipy.linalg.block_diag(*(image.T @ image for image in images.values()))
    differences = 2 * len(images) * weights - 2 * (beside.T @ beside)
    _, vectors = eigh(differences, weights)
    blocks = np.split(vectors[:, : n_components(images)], len(images))
    return dict(zip(images, blocks, strict=True))


def imakura_best(images: Images) -> Changes:
    """Solve ``A_i' A_i G_i = A_i' U`` for the leading directions U of all images."""
    target, _ = leading(np.hstack(list(images.values())), n_components(images))
    return {name: fit(image, target) for name, image in images.items()}


def kawakami_best(images: Images) -> Changes:
    """As above for ``Q_i = A_i R_i^-1``; its G_i are ``R_i^-1`` times blocks of V' = S^-1 U' Q."""
    factors = {name: triangle(image) for name, image in images.items()}
    tables = {
        name: solve_triangular(factors[name], image.T, trans=1, check_finite=False).T
        for name, image in images.items()
    }
    target, values = leading(np.hstack(list(tables.values())), n_components(images))
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


Cost = Callable[[int, int, int], float]


def _of_sides(cost: Cost) -> Cost:
    """Return a cost by a, l and c from one by the shorter and the longer side, and l."""
    return lambda a, l, c: cost(min(a, c * l), max(a, c * l), l)


def _randomised(short: int, long: int, l: int) -> float:
    power = 16 if l < short / 10 else 10  # products with the sketch and its LU or QR
    sketch = power * (2 * short * long * (l + 10) + 4 * (short + long) * (l + 10) ** 2)
    return sketch + 22 * min(short, l + 10) ** 3 + 40 * l * short * long


_thin = _of_sides(lambda s, b, l: 6 * b * s**2 + 20 * s**3 + 40 * l * s * b)
_best = _of_sides(lambda s, b, l: b * s**2 + 4 * s**3 + 7 * l * s * b)
_stacked = _of_sides(lambda s, b, _: 2 * s * b + 4 * s**2)


@dataclass(frozen=True)
class Form:
    """One form that is not ours, and what it takes at a, l and c, both an estimate."""

    run: Callable[[Images], Changes]
    operations: Cost
    numbers: Cost = _stacked  # that it holds


FORMS: Mapping[str, Form] = {
    "Imakura, full SVD + pinv": Form(
        imakura_full,
        _of_sides(lambda s, b, _: 4 * b**2 * s + 22 * s**3),
        lambda a, l, c: a**2 + (c * l) ** 2 + _stacked(a, l, c),
    ),
    "Imakura, thin SVD + pinv": Form(imakura_thin, _thin),
    "Imakura, randomised SVD + pinv": Form(imakura_randomised, _of_sides(_randomised)),
    "Kawakami, dense eigenproblem": Form(
        kawakami_dense,
        lambda a, l, c: 2 * a * (c * l) ** 2 + 14 * (c * l) ** 3,
        lambda a, l, c: 8 * (c * l) ** 2 + a * c * l,
    ),
    "Kawakami, randomised SVD": Form(kawakami_randomised, _of_sides(_randomised)),
    "Imakura, best form": Form(imakura_best, _best),
    "Kawakami, best form": Form(kawakami_best, _best),
}
"""By the name that the tables use; the part before the comma is the method."""
