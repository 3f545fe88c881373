"""Imakura-DC and Kawakami-DC as they are published, and as well as NumPy can, with estimates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from sklearn.utils.extmath import randomized_svd

from benchmarks.inputs import Images, Matrix
from benchmarks.published_best import imakura_best, kawakami_best
from cobasis.planning.costs import Size

Changes = dict[str, Matrix]


def imakura_full(images: Images) -> Changes:
    """Full decomposition of the side-by-side images, then a pseudoinverse for each party."""
    first = next(iter(images.values()))
    left, _, _ = np.linalg.svd(np.hstack(list(images.values())))  # full_matrices, as published
    target = left[:, : first.shape[1]]
    return {name: np.linalg.pinv(image) @ target for name, image in images.items()}


def imakura_randomised(images: Images) -> Changes:
    """Randomised decomposition, as the papers time it, then a pseudoinverse for each party."""
    first = next(iter(images.values()))
    beside = np.hstack(list(images.values()))
    target, _, _ = randomized_svd(beside, first.shape[1], random_state=0)
    return {name: np.linalg.pinv(image) @ target for name, image in images.items()}


def kawakami_dense(images: Images) -> Changes:
    """Generalised eigenproblem of order c l: the l smallest of ``S v = lambda T v``."""
    beside = np.hstack(list(images.values()))
    inner = beside.T @ beside
    weights = scipy.linalg.block_diag(*(image.T @ image for image in images.values()))
    differences = 2 * len(images) * weights - 2 * inner
    _, vectors = scipy.linalg.eigh(differences, weights)
    size = next(iter(images.values())).shape[1]
    blocks = np.split(vectors[:, :size], len(images))
    return dict(zip(images, blocks, strict=True))


def kawakami_randomised(images: Images) -> Changes:
    """Randomised decomposition of ``[Q_1 ... Q_c]``, then ``R_i^-1`` times each block."""
    factors = [np.linalg.qr(image) for image in images.values()]
    size = next(iter(images.values())).shape[1]
    beside = np.hstack([each[0] for each in factors])
    _, _, right = randomized_svd(beside, size, random_state=0)
    blocks = np.split(right.T, len(images))
    return {
        name: np.linalg.inv(triangle) @ block
        for name, (_, triangle), block in zip(images, factors, blocks, strict=True)
    }


def algorithm_2(images: Images) -> Changes:
    """Imakura-DC exactly as the ODC paper counts it: a thin decomposition and pseudoinverses."""
    first = next(iter(images.values()))
    left, _, _ = np.linalg.svd(np.hstack(list(images.values())), full_matrices=False)
    target = left[:, : first.shape[1]]
    return {name: np.linalg.pinv(image) @ target for name, image in images.items()}


def algorithm_3(images: Images) -> Changes:
    """Kawakami-DC exactly as the ODC paper counts it: QR, a thin decomposition, inverses."""
    factors = [np.linalg.qr(image) for image in images.values()]
    size = next(iter(images.values())).shape[1]
    beside = np.hstack([each[0] for each in factors])
    right = np.linalg.svd(beside, full_matrices=False)[2]
    blocks = np.split(right[:size].T, len(images))
    return {
        name: np.linalg.inv(triangle) @ block
        for name, (_, triangle), block in zip(images, factors, blocks, strict=True)
    }


@dataclass(frozen=True, kw_only=True)
class Form:
    """One form that is not ours."""

    run: Callable[[Images], Changes]  # from images to changes of basis
    numbers: Callable[[Size], float]
    operations: Callable[[Size], float]  # from a size to operations, for an estimate of time only


def _full_numbers(size: Size) -> float:
    a, l, c = size.letters  # noqa: E741 -- the paper's letter
    wide = c * l
    return 2 * a * wide + a**2 + wide**2 + 4 * min(a, wide) ** 2


def _full_operations(size: Size) -> float:
    a, l, c = size.letters  # noqa: E741
    small, large = sorted((a, c * l))
    return 4 * large**2 * small + 22 * small**3


def _thin_numbers(size: Size) -> float:
    a, l, c = size.letters  # noqa: E741
    small, large = sorted((a, c * l))
    return 2 * a * c * l + (large + small) * small + 4 * small**2


def _thin_operations(size: Size) -> float:
    a, l, c = size.letters  # noqa: E741
    small, large = sorted((a, c * l))
    return 6 * large * small**2 + 20 * small**3 + c * 40 * a * l**2


def _best_numbers(size: Size) -> float:
    a, l, c = size.letters  # noqa: E741
    return 2 * a * c * l + 4 * min(a, c * l) ** 2


def _best_operations(size: Size) -> float:
    a, l, c = size.letters  # noqa: E741
    small, large = sorted((a, c * l))
    return large * small**2 + 4 * small**3 + c * (4 * a * l**2 + 3 * l**3)


def _randomised_numbers(size: Size) -> float:
    a, l, c = size.letters  # noqa: E741
    return 2 * a * c * l + 3 * (a + c * l) * (l + 10)


def _randomised_operations(size: Size) -> float:
    a, l, c = size.letters  # noqa: E741
    power = 16 if l < min(a, c * l) / 10 else 10  # products with the sketch and its LU or QR
    sketch = power * (2 * a * c * l * (l + 10) + 4 * (a + c * l) * (l + 10) ** 2)
    return sketch + 22 * min(a, c * l, l + 10) ** 3 + c * 40 * a * l**2


def _dense_numbers(size: Size) -> float:
    _, l, c = size.letters  # noqa: E741
    return 8 * (c * l) ** 2 + size.n_anchor_rows * c * l


def _dense_operations(size: Size) -> float:
    a, l, c = size.letters  # noqa: E741
    return 2 * a * (c * l) ** 2 + 14 * (c * l) ** 3


FORMS: Mapping[str, Form] = {
    "Imakura, full SVD + pinv": Form(
        run=imakura_full, numbers=_full_numbers, operations=_full_operations
    ),
    "Imakura, thin SVD + pinv": Form(
        run=algorithm_2, numbers=_thin_numbers, operations=_thin_operations
    ),
    "Imakura, randomised SVD + pinv": Form(
        run=imakura_randomised, numbers=_randomised_numbers, operations=_randomised_operations
    ),
    "Kawakami, dense eigenproblem": Form(
        run=kawakami_dense, numbers=_dense_numbers, operations=_dense_operations
    ),
    "Kawakami, randomised SVD": Form(
        run=kawakami_randomised, numbers=_randomised_numbers, operations=_randomised_operations
    ),
    "Imakura, best form": Form(
        run=imakura_best, numbers=_best_numbers, operations=_best_operations
    ),
    "Kawakami, best form": Form(
        run=kawakami_best, numbers=_best_numbers, operations=_best_operations
    ),
}
"""By the name that the tables use; the part before the comma is the method."""
